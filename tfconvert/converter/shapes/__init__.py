"""Shapes and elements of values, as far as they are known at compile time."""
