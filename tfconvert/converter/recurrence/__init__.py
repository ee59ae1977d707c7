"""Recognises unmarked recurrent networks by their computation: cells, loops and chains of steps."""
