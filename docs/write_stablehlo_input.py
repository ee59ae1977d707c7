"""Writes docs/stablehlo_input.md: what the ops of StableHLO and CHLO become, seen on one example of each.

python docs/write_stablehlo_input.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import tfconvert
from tfconvert.converter.from_stablehlo.control_flow import HANDLED
from tfconvert.converter.from_stablehlo.raising import Raising
from tfconvert.converter.from_stablehlo.rows import NAMES
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.dialects.parsing import IRParser

PAGE = Path(__file__).parent / "stablehlo_input.md"

_HEAD = """# StableHLO as input

What each op of StableHLO and CHLO becomes in a model from JAX, Keras on JAX, or a file of StableHLO: first TensorFlow
ops, then, with all optimizations, LiteRT operators. Each row was observed on one small example of fixed sizes. Other
types, attributes and dynamic sizes may become other ops, and neighbouring ops may be fused with it.
[From JAX](jax.md) explains how to save models, and `tfconvert inspect MODEL` says whether a model will convert.

A dynamic size is at least 1 in modules of JAX, which requires this: those with the attributes
`jax.uses_shape_polymorphism = true` and `mhlo.num_partitions`, and those in SavedModels. In modules of other producers
it may be 0, so a comparison such as `batch > 0` stays. Ops of Shardy (`sdy.mesh`, `sdy.sharding_constraint`,
`sdy.manual_computation` and others) and collectives are for one device: there they are their operands, and modules for
several devices are refused.

"""

_MATRIX, _PIXELS, _FLAGS, _INTEGERS = "tensor<2x3xf32>", "tensor<1x8x8x4xf32>", "tensor<2x3xi1>", "tensor<2x3xi32>"
_INDEX, _SCALAR = "tensor<i32>", "tensor<f32>"


class Example(NamedTuple):
    """A program of one op.

    Attributes:
        op: The op on `%a`, `%b` and so on, with its properties and regions, without its type.
        operands: The types of its operands.
        results: Those of its results.
        before: The constant that is its last operand, if it has one.
    """

    op: str
    operands: tuple[str, ...] = (_MATRIX,)
    results: tuple[str, ...] = (_MATRIX,)
    before: str = ""

    def text(self) -> str:
        """Returns the module."""
        names = [f"%{letter}" for letter in "abcdefgh"[: len(self.operands)]]
        taken = [name for name in names if name in self.op.partition(")")[0]]
        kinds = dict(zip(names, self.operands, strict=True))
        arguments = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
        results = ", ".join(self.results)
        values = ", ".join(f"%r#{index}" for index in range(len(self.results)))
        made = f"%r:{len(self.results)}"
        types = ", ".join([*(kinds[name] for name in taken), *([_SCALAR] if self.before else [])])
        return (
            f"module {{\n  func.func public @main({arguments}) -> ({results}) {{\n    {self.before}\n"
            f"    {made} = {self.op} : ({types}) -> ({results})\n    return {values} : {results}\n  }}\n}}\n"
        )


def _init(value: str) -> str:
    """Returns the constant that is an op's last operand."""
    return f"%init = stablehlo.constant dense<{value}> : {_SCALAR}"


def _reducer(name: str, element: str = _SCALAR) -> str:
    return (
        f"{{^bb0(%x: {element}, %y: {element}):\n      %z = stablehlo.{name} %x, %y : {element}\n"
        f"      stablehlo.return %z : {element}\n    }}"
    )


def _plain(name: str, dialect: str = "stablehlo", operands: int = 1, kind: str = _MATRIX, result: str = "") -> Example:
    names = ", ".join(["%a", "%b", "%c"][:operands])
    return Example(f'"{dialect}.{name}"({names})', (kind,) * operands, (result or kind,))


_UNARY = (
    "abs cbrt ceil cosine exponential exponential_minus_one floor log log_plus_one logistic negate "
    "optimization_barrier round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh"
)
_BINARY = "add atan2 divide maximum minimum multiply power remainder subtract"
_BITWISE = "and or xor shift_left shift_right_arithmetic shift_right_logical"
_CHLO = "acos acosh asin asinh atan atanh bessel_i1e cosh digamma erf erf_inv erfc lgamma sinh square"
_CONVOLUTION = (
    "<{batch_group_count = 1 : i64, feature_group_count = 1 : i64, dimension_numbers = "
    "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, padding = dense<1> : tensor<2x2xi64>}>"
)
_WINDOW = (
    "<{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>, "
    "padding = dense<0> : tensor<4x2xi64>}>"
)
_LOOP = f"""({{
    ^bb0(%i: {_INDEX}, %x: {_MATRIX}):
      %n = stablehlo.constant dense<5> : {_INDEX}
      %z = stablehlo.compare LT, %i, %n : ({_INDEX}, {_INDEX}) -> tensor<i1>
      stablehlo.return %z : tensor<i1>
    }}, {{
    ^bb0(%i: {_INDEX}, %x: {_MATRIX}):
      %n = stablehlo.constant dense<1> : {_INDEX}
      %y = stablehlo.add %i, %n : {_INDEX}
      %z = stablehlo.tanh %x : {_MATRIX}
      stablehlo.return %y, %z : {_INDEX}, {_MATRIX}
    }})"""
_BRANCHES = f"""({{
      %x = stablehlo.tanh %b : {_MATRIX}
      stablehlo.return %x : {_MATRIX}
    }}, {{
      %x = stablehlo.sine %b : {_MATRIX}
      stablehlo.return %x : {_MATRIX}
    }})"""
_GATHER = (
    "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
    "index_vector_dim = 1>, indices_are_sorted = false"
)
_SCATTER = (
    "<{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
    "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}>"
)
_SORTER = """({^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %z : tensor<i1>
    })"""

_BATCH_NORM = "<{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}>"

EXAMPLES: Mapping[str, Example] = {
    **{name: _plain(name) for name in _UNARY.split()},
    **{name: _plain(name, operands=2) for name in _BINARY.split()},
    **{name: _plain(name, operands=2, kind=_INTEGERS) for name in _BITWISE.split()},
    **{name: _plain(name, kind=_INTEGERS) for name in ("not", "popcnt", "count_leading_zeros")},
    **{name: _plain(name, "chlo") for name in _CHLO.split()},
    **{name: _plain(name, "chlo", 2) for name in ("next_after", "polygamma", "zeta")},
    **{name: _plain(name, "chlo", result=_FLAGS) for name in ("is_inf", "is_neg_inf", "is_pos_inf")},
    "batch_norm_inference": Example(
        f'"stablehlo.batch_norm_inference"(%a, %b, %c, %d, %e) {_BATCH_NORM}', (_MATRIX, *["tensor<3xf32>"] * 4)
    ),
    "batch_norm_training": Example(
        f'"stablehlo.batch_norm_training"(%a, %b, %c) {_BATCH_NORM}',
        (_MATRIX, *["tensor<3xf32>"] * 2),
        (_MATRIX, *["tensor<3xf32>"] * 2),
    ),
    "batch_norm_grad": Example(
        f'"stablehlo.batch_norm_grad"(%a, %b, %c, %d, %e) {_BATCH_NORM}',
        (_MATRIX, *["tensor<3xf32>"] * 3, _MATRIX),
        (_MATRIX, *["tensor<3xf32>"] * 2),
    ),
    "bitcast_convert": Example('"stablehlo.bitcast_convert"(%a)', results=(_INTEGERS,)),
    "broadcast": Example(
        '"stablehlo.broadcast"(%a) <{broadcast_sizes = array<i64: 4>}>', results=("tensor<4x2x3xf32>",)
    ),
    "broadcast_in_dim": Example(
        '"stablehlo.broadcast_in_dim"(%a) <{broadcast_dimensions = array<i64: 1>}>', ("tensor<3xf32>",)
    ),
    "case": Example(f'"stablehlo.case"(%a) {_BRANCHES}', (_INDEX, _MATRIX)),
    "cholesky": Example('"stablehlo.cholesky"(%a) <{lower = true}>', ("tensor<2x2xf32>",), ("tensor<2x2xf32>",)),
    "clamp": Example('"stablehlo.clamp"(%a, %b, %c)', (_SCALAR, _MATRIX, _SCALAR)),
    "compare": Example(
        '"stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}>',
        (_MATRIX,) * 2,
        (_FLAGS,),
    ),
    "complex": _plain("complex", operands=2, result="tensor<2x3xcomplex<f32>>"),
    "concatenate": Example(
        '"stablehlo.concatenate"(%a, %b) <{dimension = 0 : i64}>', (_MATRIX,) * 2, ("tensor<4x3xf32>",)
    ),
    "conj": _plain("conj", "chlo", kind="tensor<2x3xcomplex<f32>>"),
    "convert": _plain("convert", result=_INTEGERS),
    "convolution": Example(
        f'"stablehlo.convolution"(%a, %b) {_CONVOLUTION}', (_PIXELS, "tensor<3x3x4x2xf32>"), ("tensor<1x8x8x2xf32>",)
    ),
    "dot": Example('"stablehlo.dot"(%a, %b)', (_MATRIX, "tensor<3x4xf32>"), ("tensor<2x4xf32>",)),
    "dot_general": Example(
        '"stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], '
        "rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}>",
        ("tensor<5x2x3xf32>", "tensor<5x3x4xf32>"),
        ("tensor<5x2x4xf32>",),
    ),
    "dynamic_slice": Example(
        '"stablehlo.dynamic_slice"(%a, %b, %c) <{slice_sizes = array<i64: 1, 2>}>',
        (_MATRIX, _INDEX, _INDEX),
        ("tensor<1x2xf32>",),
    ),
    "dynamic_update_slice": Example(
        '"stablehlo.dynamic_update_slice"(%a, %b, %c, %d)', (_MATRIX, "tensor<1x2xf32>", _INDEX, _INDEX)
    ),
    "fft": Example(
        '"stablehlo.fft"(%a) <{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 8>}>',
        ("tensor<2x8xf32>",),
        ("tensor<2x5xcomplex<f32>>",),
    ),
    "gather": Example(
        f'"stablehlo.gather"(%a, %b) <{{{_GATHER}, slice_sizes = array<i64: 1, 3>}}>',
        ("tensor<9x3xf32>", "tensor<4x1xi32>"),
        ("tensor<4x3xf32>",),
    ),
    "get_dimension_size": Example(
        '"stablehlo.get_dimension_size"(%a) <{dimension = 0 : i64}>', ("tensor<?x3xf32>",), (_INDEX,)
    ),
    "if": Example(f'"stablehlo.if"(%a) {_BRANCHES}', ("tensor<i1>", _MATRIX)),
    "imag": _plain("imag", kind="tensor<2x3xcomplex<f32>>", result=_MATRIX),
    "is_finite": _plain("is_finite", result=_FLAGS),
    "pad": Example(
        '"stablehlo.pad"(%a, %init) <{edge_padding_low = array<i64: 1, 0>, edge_padding_high = array<i64: 0, 2>, '
        "interior_padding = array<i64: 0, 0>}>",
        results=("tensor<3x5xf32>",),
        before=_init("0.0"),
    ),
    "rng_bit_generator": Example(
        '"stablehlo.rng_bit_generator"(%a) <{rng_algorithm = #stablehlo<rng_algorithm PHILOX>}>',
        ("tensor<2xui64>",),
        ("tensor<2xui64>", "tensor<4xui32>"),
    ),
    "real": _plain("real", kind="tensor<2x3xcomplex<f32>>", result=_MATRIX),
    "reduce": Example(
        f'"stablehlo.reduce"(%a, %init) <{{dimensions = array<i64: 1>}}> ({_reducer("add")})',
        results=("tensor<2xf32>",),
        before=_init("0.0"),
    ),
    "reduce_precision": Example(
        '"stablehlo.reduce_precision"(%a) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}>'
    ),
    "reduce_window": Example(
        f'"stablehlo.reduce_window"(%a, %init) {_WINDOW} ({_reducer("maximum")})',
        (_PIXELS,),
        ("tensor<1x4x4x4xf32>",),
        _init("0xFF800000"),
    ),
    "reshape": _plain("reshape", result="tensor<6xf32>"),
    "reverse": Example('"stablehlo.reverse"(%a) <{dimensions = array<i64: 0>}>'),
    "scatter": Example(
        f'"stablehlo.scatter"(%a, %b, %c) {_SCATTER} ({_reducer("add")})',
        ("tensor<9x3xf32>", "tensor<4x1xi32>", "tensor<4x3xf32>"),
        ("tensor<9x3xf32>",),
    ),
    "select": Example('"stablehlo.select"(%a, %b, %c)', (_FLAGS, _MATRIX, _MATRIX)),
    "select_and_scatter": Example(
        '"stablehlo.select_and_scatter"(%a, %b, %init) <{window_dimensions = array<i64: 1, 2, 2, 1>, '
        "window_strides = array<i64: 1, 2, 2, 1>, padding = dense<0> : tensor<4x2xi64>}> ({^bb0(%x: tensor<f32>, "
        "%y: tensor<f32>):\n      %z = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        f"      stablehlo.return %z : tensor<i1>\n    }}, {_reducer('add')})",
        (_PIXELS, "tensor<1x4x4x4xf32>"),
        (_PIXELS,),
        _init("0.0"),
    ),
    "slice": Example(
        '"stablehlo.slice"(%a) <{start_indices = array<i64: 0, 1>, limit_indices = array<i64: 2, 3>, '
        "strides = array<i64: 1, 1>}>",
        results=("tensor<2x2xf32>",),
    ),
    "sort": Example(f'"stablehlo.sort"(%a) <{{dimension = 1 : i64, is_stable = true}}> {_SORTER}'),
    "top_k": Example('"chlo.top_k"(%a) <{k = 2 : i64}>', results=("tensor<2x2xf32>", "tensor<2x2xi32>")),
    "transpose": Example('"stablehlo.transpose"(%a) <{permutation = array<i64: 1, 0>}>', results=("tensor<3x2xf32>",)),
    "triangular_solve": Example(
        '"stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, '
        "transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>",
        ("tensor<2x2xf32>", "tensor<2x3xf32>"),
    ),
    "while": Example(f'"stablehlo.while"(%a, %b) {_LOOP}', (_INDEX, _MATRIX), (_INDEX, _MATRIX)),
}
"""Op, without its prefix -> its example."""

_ON_ONE_DEVICE = "its operand, on one device"

WITHOUT_EXAMPLES: Mapping[str, str] = {
    "@ApproxTopK": "as `top_k`, exactly",
    "@LayoutConstraint": "its operand",
    "@MoveToDevice": "its operand",
    "@MoveToHost": "its operand",
    "@SPMDFullToShardShape": _ON_ONE_DEVICE,
    "@SPMDShardToFullShape": _ON_ONE_DEVICE,
    "@Sharding": _ON_ONE_DEVICE,
    "@annotate_device_placement": "its operand",
    "@lapack_sgeqrf_ffi": "a QR decomposition, row by row",
    "@lapack_sgetrf_ffi": "an LU decomposition, row by row",
    "@lapack_sorgqr_ffi": "the Q of a QR decomposition, column by column",
    "@lapack_spotrf_ffi": "as `cholesky`",
    "@lapack_strsm_ffi": "as `triangular_solve`",
    "@local_xla.sdy.GlobalToLocalShape": _ON_ONE_DEVICE,
    "@local_xla.sdy.LocalToGlobalShape": _ON_ONE_DEVICE,
    "@shape_assertion": "nothing: sizes are checked by the ops that need them",
    "@stablehlo.dynamic_reduce_window": "as `reduce_window`",
    "@stablehlo.dynamic_rng_bit_generator": "as `rng_bit_generator`, where sizes are fixed",
    "@stablehlo.dynamic_top_k": "as `top_k`",
    "@xla.sdy.FuncResultSharding": _ON_ONE_DEVICE,
    "@xla.sdy.GlobalToLocalShape": _ON_ONE_DEVICE,
    "@xla.sdy.LocalToGlobalShape": _ON_ONE_DEVICE,
    "@xla.sdy.PropagationBarrier": _ON_ONE_DEVICE,
    "@xla.sdy.ShardingGroup": "nothing",
    "all_gather": _ON_ONE_DEVICE,
    "all_reduce": _ON_ONE_DEVICE,
    "all_to_all": _ON_ONE_DEVICE,
    "annotate_device_placement": "its operand",
    "collective_broadcast": _ON_ONE_DEVICE,
    "collective_permute": _ON_ONE_DEVICE,
    "collective_reduce": _ON_ONE_DEVICE,
    "constant": "a constant",
    "dynamic_broadcast_in_dim": "as `broadcast_in_dim`",
    "dynamic_conv": "as `convolution`",
    "dynamic_gather": "as `gather`",
    "dynamic_iota": "as `iota`",
    "dynamic_pad": "as `pad`",
    "dynamic_reshape": "as `reshape`",
    "einsum": "`tf.Einsum`",
    "iota": "a constant, or a range along a dynamic size",
    "partition_id": "0, on one device",
    "real_dynamic_slice": "as `slice`",
    "reduce_scatter": _ON_ONE_DEVICE,
    "replica_id": "0, on one device",
    "set_dimension_size": "its operand, or a slice of it",
    "topk": "as `top_k`",
    "unary_einsum": "`tf.Einsum`",
}
"""Ops that need no example -> what they become."""


# Ops that LiteRT can't compute, but that JAX doesn't export: it writes the formula instead.
_FORMULA_IN_JAX = {"bessel_i1e": "jax.scipy.special.i1e", "zeta": "jax.scipy.special.zeta"}


def form(name: str, example: Example) -> str:
    """Returns what the example of an op becomes, as cells of a row."""
    module = IRParser(example.text()).parse_module()
    raising = Raising()
    raising.run(functions_of(module))
    made: dict[str, None] = {}
    for op in module.walk():
        if op.name.startswith("tf.") and op.name not in ("tf.Const", "tf.Yield"):
            made.setdefault(f"`{op.name}`")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.mlir")
        path.write_text(example.text(), "utf-8")
        try:
            operators = tfconvert.convert(str(path)).report.operators
        except ConversionError as problem:
            function = _FORMULA_IN_JAX.get(name)
            but = f"; `{function}` converts, since JAX exports it as a formula" if function else ""
            return f"{' '.join(made) or 'its operand'} | refused: {problem.diagnostics[0].message}{but}"
    litert = " ".join(f"`{name}`" for name in sorted(operators)) or "nothing"
    return f"{' '.join(made) or 'its operand'} | {litert}"


def page() -> str:
    """Returns the page."""
    rows = [f"| `{name}` | {form(name, example)} |" for name, example in sorted(EXAMPLES.items())]
    others = [f"| `{name}` | {what} |" for name, what in sorted(WITHOUT_EXAMPLES.items())]
    return (
        f"{_HEAD}| op | TensorFlow ops | LiteRT operators |\n|---|---|---|\n"
        + "\n".join(rows)
        + "\n\nForms with a dynamic size, annotations, and custom calls (`@`), become what their operands and sizes "
        "allow:\n\n| op | |\n|---|---|\n" + "\n".join(others) + "\n"
    )


def missing() -> set[str]:
    """Returns the ops that have a row in the converter and none on the page, or the other way round."""
    return (EXAMPLES.keys() | WITHOUT_EXAMPLES.keys()) ^ (NAMES | HANDLED)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
