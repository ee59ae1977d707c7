"""LiteRT's operators for recurrent layers, in the place of loops and of equal steps."""
