"""Processes: children, stack space, memory and signals."""
