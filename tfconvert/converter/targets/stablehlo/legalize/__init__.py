"""Legalizations of `tf` ops to StableHLO, a file for each family."""
