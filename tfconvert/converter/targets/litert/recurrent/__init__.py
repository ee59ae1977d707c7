"""LiteRT's operators for recurrent layers, in place of loops and of equal steps."""
