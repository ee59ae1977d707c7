"""Rules that operands, results and attributes of `tf` and `tfl` ops keep beyond what their definitions say.

Shapes that follow from operands are inferred, see `tfconvert.ops`; here is what the verifier checks besides: ranks,
ranges, element types, signatures of functions that are called.
"""
