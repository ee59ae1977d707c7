"""Rewrites LiteRT ops to fewer, faster ones: one family of patterns per file."""
