"""Finds out which calls LiteRT's kernels take and compute correctly, operator by operator, and writes a table."""
