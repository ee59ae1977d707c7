"""Relations that many ops have alike: operands that broadcast, operands and results of one shape."""

from __future__ import annotations

from collections.abc import Mapping

from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.relations.rules import Rule, broadcast, contradict, same_shapes
from tfconvert.schema.dialects.relations.view import View
from tfconvert.schema.dialects.types import Shape

# Ops whose operands and results all have one shape.
_ONE_SHAPE = """
Abs Acos Acosh Angle AsString Asin Asinh Atan Atanh BesselI0e BesselI1e Bucketize Cast Ceil CheckNumerics
CollectiveReduce ComplexAbs Conj Cos Cosh Cross DataFormatDimMap DataFormatVecPermute DebugIdentity Digamma Elu EluGrad
Erf Erfc Exp Expm1 FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient Floor Identity Imag Inv Invert IsFinite IsInf
IsNan LeakyRelu LeakyReluGrad Lgamma Log Log1p LogSoftmax LogicalNot MergeSummary NcclAllReduce Neg OnesLike
PopulationCount PreventGradient QuantizeAndDequantize RandomShuffle Real Reciprocal ReciprocalGrad Relu Relu6 Relu6Grad
ReluGrad Rint Round Rsqrt RsqrtGrad Selu SeluGrad Sigmoid SigmoidGrad Sign Sin Sinh Snapshot Softmax Softplus
SoftplusGrad Softsign SoftsignGrad Sqrt SqrtGrad Square StaticRegexFullMatch StringStrip Tan Tanh TanhGrad
ZerosLike _UnaryOpsComposition
"""

# Ops whose operands broadcast to the shape of their results.
_BROADCAST = """
Add AddV2 Atan2 BitwiseAnd BitwiseOr BitwiseXor Complex Div DivNoNan FloorDiv FloorMod Greater GreaterEqual Igamma
IgammaGradA Igammac LeftShift Less LessEqual LogicalAnd LogicalOr Maximum Minimum Mod Mul MulNoNan NextAfter Polygamma
Pow RandomGammaGrad RealDiv RightShift SelectV2 SquaredDifference Sub TruncateDiv TruncateMod Xdivy Xlogy Zeta
"""


def one_shape(view: View) -> None:
    """Refuses an op whose operands and results have shapes that contradict each other."""
    op = view.op
    known = [
        (value, shape) for value in (*op.operands, *op.results) if (shape := types.shape_of(value.type)) is not None
    ]
    for value, shape in known[1:]:
        if contradict(known[0][1], shape):
            view.fail(f"its operands and results must have one shape, found {known[0][0].type} and {value.type}")


def broadcasts(view: View) -> None:
    """Refuses an op whose operands don't broadcast to each other, or not to its results."""
    op = view.op
    both: Shape | None = ()
    shapes = [shape for value in op.operands if (shape := types.shape_of(value.type)) is not None]
    for shape in shapes:
        both = broadcast(both or (), shape)
        if both is None:
            view.fail(f"its operands must broadcast, found {' and '.join(map(str, op.operand_types))}")
    for result in op.results if shapes else ():
        made = types.shape_of(result.type)
        # An operand of unknown rank may add dimensions in front of those that the others determine.
        if made is not None and contradict(both or (), made[max(0, len(made) - len(both or ())) :] if both else ()):
            view.fail(f"its result must have the shape to which its operands broadcast, {both}, found {result.type}")


# Ops of which an operand and a result have one shape.
_EQUAL: Mapping[str, tuple[str, str]] = {
    "CrossReplicaSum": ("input", "output"),
    "Cumprod": ("x", "out"),
    "CumulativeLogsumexp": ("x", "out"),
    "Cumsum": ("x", "out"),
    "InplaceAdd": ("x", "y"),
    "MatrixBandPart": ("input", "band"),
    "StopGradient": ("input", "output"),
}

RULES: Mapping[str, Rule] = {
    **{name: same_shapes(*pair) for name, pair in _EQUAL.items()},
    **dict.fromkeys(_ONE_SHAPE.split(), one_shape),
    **dict.fromkeys(_BROADCAST.split(), broadcasts),
}
"""Op -> the rule that its operands and results keep; other tables may have further ones."""
