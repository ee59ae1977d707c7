"""The client of the service: what to ask and how to go on is told once, for programs that wait and those that don't."""
