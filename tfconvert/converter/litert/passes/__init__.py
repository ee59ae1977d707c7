"""Passes that know LiteRT, one a file, named as the pass."""
