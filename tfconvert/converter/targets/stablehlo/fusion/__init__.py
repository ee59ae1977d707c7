"""Fusion: chooses ops of StableHLO that one kernel computes, and outlines them into a function."""
