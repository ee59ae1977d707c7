"""Recurrent networks that nothing marks as such, recognised by what they compute: cells, loops and chains of steps."""
