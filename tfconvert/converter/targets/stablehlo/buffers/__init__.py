"""From values to buffers: allocation, sizes, and the cost of programs as formulas."""
