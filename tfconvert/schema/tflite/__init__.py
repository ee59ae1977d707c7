"""LiteRT's file format, its operators and their versions."""
