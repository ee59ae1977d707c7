"""Families of fusions: marked functions that LiteRT's operators implement."""
