"""Shapes and elements of values, as far as they are known before the model runs."""
