"""Graphs of nodes, with their functions and variables, as IR."""
