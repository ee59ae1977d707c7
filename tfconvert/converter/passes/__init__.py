"""Passes: one a file, the file named as the pass."""
