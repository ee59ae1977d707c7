"""Tries forms of operators on accelerators and other runtimes, and writes the tables of what they accept."""
