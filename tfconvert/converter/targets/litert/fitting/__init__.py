"""Rewrites operators to forms that the kernels accept: with fewer dimensions, or of wider types."""
