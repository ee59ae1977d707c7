"""Tests of the whole repository: layers, sizes, docstrings, pages, releases."""
