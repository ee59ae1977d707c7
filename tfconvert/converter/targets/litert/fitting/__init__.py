"""Other forms of operators whose kernels don't take them as they are: with fewer dimensions, or of wider types."""
