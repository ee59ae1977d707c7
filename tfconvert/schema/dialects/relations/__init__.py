"""Relations between operands, results and attributes of `tf` and `tfl` ops, as tables of rules by op.

They are what an OpDef or the operator table doesn't tell: ranks, equal dimensions, counts that follow from shapes,
signatures of functions that are called. Only the verifier of modules loads them; imported graphs are not verified.
"""
