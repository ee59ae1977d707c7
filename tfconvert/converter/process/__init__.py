"""Processes: children, stack room, memory and signals."""
