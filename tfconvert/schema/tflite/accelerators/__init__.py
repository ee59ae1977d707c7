"""What accelerators and other runtimes accept: tables made by running each form of each operator, and what reads them.

`python -m benchmarks.accelerator_probe` writes the tables.
"""
