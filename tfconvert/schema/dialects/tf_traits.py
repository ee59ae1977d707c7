"""Traits of `tf` ops, as sets of names in TensorFlow's registry.

Lists elsewhere are such a set, with or without some ops for a reason that is stated there.
"""

from __future__ import annotations

from collections.abc import Iterable

UNARY_IDENTITIES = frozenset({"Identity", "PreventGradient", "Snapshot", "StopGradient"})
"""Ops whose result is their operand."""

IDENTITIES = UNARY_IDENTITIES | {"IdentityN"}
"""Ops whose results are their operands, one by one."""

SAME_ELEMENTS = UNARY_IDENTITIES | {"EnsureShape", "ExpandDims", "Reshape", "Squeeze"}
"""Ops whose result has the elements of their first operand, in the same order."""

ZERO_PRESERVING = SAME_ELEMENTS | {"BroadcastTo", "Cast", "Tile"}
"""Ops whose result is zeros if their first operand is."""

ELEMENTWISE_UNARY = frozenset(
    {
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "BesselI0",
        "BesselI0e",
        "BesselI1",
        "BesselI1e",
        "Ceil",
        "Conj",
        "Cos",
        "Cosh",
        "Digamma",
        "Elu",
        "Erf",
        "Erfc",
        "Erfinv",
        "Exp",
        "Expm1",
        "Floor",
        "Inv",
        "Invert",
        "LeakyRelu",
        "Lgamma",
        "Log",
        "Log1p",
        "LogicalNot",
        "Ndtri",
        "Neg",
        "OnesLike",
        "Reciprocal",
        "Relu",
        "Relu6",
        "Rint",
        "Round",
        "Rsqrt",
        "Selu",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Square",
        "Tan",
        "Tanh",
        "ZerosLike",
    }
)
"""Ops that compute each element of their result from that of their one operand; both have one type."""

ELEMENTWISE_BINARY = frozenset(
    {
        "Add",
        "AddV2",
        "Atan2",
        "BitwiseAnd",
        "BitwiseOr",
        "BitwiseXor",
        "Div",
        "DivNoNan",
        "FloorDiv",
        "FloorMod",
        "Igamma",
        "Igammac",
        "LeftShift",
        "LogicalAnd",
        "LogicalOr",
        "Maximum",
        "Minimum",
        "Mod",
        "Mul",
        "MulNoNan",
        "NextAfter",
        "Polygamma",
        "Pow",
        "RealDiv",
        "RightShift",
        "SquaredDifference",
        "Sub",
        "TruncateDiv",
        "TruncateMod",
        "Xdivy",
        "Xlog1py",
        "Xlogy",
        "Zeta",
    }
)
"""Ops of two operands that are broadcast to each other; both and the result have one element type."""

SAME_TYPE = IDENTITIES | ELEMENTWISE_UNARY
"""Ops whose results have the types of their operands, one by one."""


def full_names(names: Iterable[str]) -> frozenset[str]:
    """Returns the names that ops have in the IR, `tf.Relu`."""
    return frozenset([f"tf.{name}" for name in names])
