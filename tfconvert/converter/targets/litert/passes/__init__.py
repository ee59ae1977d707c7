"""LiteRT's passes, one per file."""
