"""Shapes and elements of values that are known at compile time."""
