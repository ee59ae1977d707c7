"""LiteRT ops to fewer, faster ones: one family of rewrites a file."""
