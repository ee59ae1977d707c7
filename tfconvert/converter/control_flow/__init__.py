"""V1 control flow in executor graphs: what the passes that make it functional know and do in common (design §5)."""
