"""Tests of the rows that raise StableHLO to `tf` ops."""
