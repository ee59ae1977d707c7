"""Functions that implement something known, and the fused operators that take their place (design §7)."""
