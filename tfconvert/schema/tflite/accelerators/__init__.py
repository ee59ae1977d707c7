"""The forms that accelerators and other runtimes accept: tables made by running each, and what reads them.

`python -m benchmarks.accelerator_probe` writes the tables.
"""
