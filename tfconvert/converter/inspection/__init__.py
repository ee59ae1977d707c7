"""Looks at a model without converting it: what it holds, whether it will convert, and what that will give."""
