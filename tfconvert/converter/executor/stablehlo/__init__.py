"""What ops of StableHLO compute, by its specification, in numpy: families of kernels and the table of them all."""
