"""Families of fusions: what LiteRT's operators compute of marked functions."""
