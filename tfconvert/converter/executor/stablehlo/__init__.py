"""Ops of StableHLO in numpy, by its specification: families of kernels and the table of them all."""
