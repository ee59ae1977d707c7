"""LiteRT, the target: how its operators are chosen, fused and made fast, and how its runtime is called."""
