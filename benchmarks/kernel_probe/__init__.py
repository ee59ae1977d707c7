"""Tries what LiteRT's kernels take and compute right, operator by operator, and writes it down as a table."""
