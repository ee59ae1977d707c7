"""The ops of each module, separated by spaces. Made by `python -m tfconvert.ops.generate`; don't edit."""

from __future__ import annotations

from collections.abc import Mapping

MODULES: Mapping[str, str] = {
    "colors": "AdjustContrastv2 AdjustHue AdjustSaturation HSVToRGB RGBToHSV",
    "elementwise": (
        "Abs AccumulateNV2 Add AddN AddV2 Angle ApproximateEqual Atan2 BitwiseAnd BitwiseOr BitwiseXor Cast Ceil "
        "CheckNumerics CheckNumericsV2 ClipByValue Complex ComplexAbs Conj Div DivNoNan Equal Floor FloorDiv FloorMod "
        "Greater GreaterEqual Imag Inv Invert IsFinite IsInf IsNan LeftShift Less LessEqual LogicalAnd LogicalNot "
        "LogicalOr Maximum Minimum Mod Mul MulNoNan Neg NextAfter NotEqual PopulationCount Pow Real RealDiv Reciprocal "
        "Relu Relu6 RightShift Rint Round Select SelectV2 Sign Square SquaredDifference Sub ToBool TruncateDiv "
        "TruncateMod Xdivy Xlog1py Xlogy"
    ),
    "resampling": (
        "ResizeArea ResizeBicubic ResizeBilinear ResizeBilinearGrad ResizeNearestNeighbor ResizeNearestNeighborGrad "
        "ScaleAndTranslate"
    ),
    "special_functions": (
        "Acos Acosh Asin Asinh Atan Atanh BesselI0 BesselI0e BesselI1 BesselI1e Betainc Cos Cosh Digamma Elu Erf Erfc "
        "Erfinv Exp Expm1 Igamma Igammac LeakyRelu Lgamma Log Log1p Ndtri Polygamma Rsqrt Selu Sigmoid Sin Sinh "
        "Softplus Softsign Sqrt Tan Tanh Zeta"
    ),
    "training": (
        "BiasAddGrad EluGrad InvGrad L2Loss LeakyReluGrad ReciprocalGrad Relu6Grad ReluGrad RsqrtGrad SeluGrad "
        "SigmoidGrad SoftplusGrad SoftsignGrad SqrtGrad TanhGrad"
    ),
}
