"""Passes specific to LiteRT, one per file, which is named after the pass."""
