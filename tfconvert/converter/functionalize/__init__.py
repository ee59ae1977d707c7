"""V1 control flow in executor graphs, as functions."""
