"""Inspects a model without converting it: its contents, whether it will convert, and the expected result."""
