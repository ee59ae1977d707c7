"""Recognises unmarked recurrent networks by what they compute: cells, loops and chains of steps."""
