"""Replaces recurrent loops and repeated steps by LiteRT's operators for recurrent layers."""
