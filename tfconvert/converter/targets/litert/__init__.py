"""LiteRT, the target: how its operators are chosen, fused and optimized, and how its runtime is called."""
