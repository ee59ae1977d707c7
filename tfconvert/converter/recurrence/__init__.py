"""Recurrent networks that nothing marks as such: found by what they compute, made one operator each (design §7)."""
