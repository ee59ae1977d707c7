"""Products of matrices against TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ops.cases import KernelCase, ShapeCase, by_op, check_contradiction, check_refused, check_shapes
from tests.ops.comparison import Agree
from tests.ops.tiny_graphs import Inferred

ROWS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *[
        ("MatMul", (f"{dtype}[3,4]", f"{dtype}[4,5]"), {})
        for dtype in ("f32", "f64", "f16", "bf16", "i32", "i64", "c64")
    ],
    ("MatMul", ("f32[4,3]", "f32[4,5]"), {"transpose_a": True}),
    ("MatMul", ("c64[3,4]", "c64[5,4]"), {"transpose_b": True}),
    ("MatMul", ("f32[4,3]", "f32[5,4]"), {"transpose_a": True, "transpose_b": True}),
    ("MatMul", ("f32[3,0]", "f32[0,5]"), {}),
    ("BatchMatMul", ("f32[2,3,4]", "f32[2,4,5]"), {}),
    ("BatchMatMulV2", ("f32[2,1,3,4]", "f32[3,4,5]"), {}),
    ("BatchMatMulV2", ("f32[2,4,3]", "f32[2,5,4]"), {"adj_x": True, "adj_y": True}),
    ("BatchMatMulV2", ("c64[2,4,3]", "c64[2,5,4]"), {"adj_x": True, "adj_y": True}),
    ("BatchMatMulV2", ("bf16[2,3,4]", "bf16[4,5]"), {}),
    ("BatchMatMulV3", ("f32[2,3,4]", "f32[4,5]"), {"Tout": np.dtype(np.float32)}),
    ("BatchMatMulV3", ("i8[2,3,4]", "i8[2,4,5]"), {"Tout": np.dtype(np.int32)}),
    ("Einsum", ("f32[2,3,4]", "f32[4,5]"), {"equation": "abc,cd->abd"}),
    ("Einsum", ("f32[2,3,4]", "f32[2,5,4]"), {"equation": "abc,adc->abd"}),
    ("Einsum", ("f32[2,3,4,5]", "f32[5,6]"), {"equation": "...a,ab->...b"}),
    ("Einsum", ("f32[2,7,3,4]", "f32[2,9,3,4]"), {"equation": "BTNH,BSNH->BNTS"}),
    ("Einsum", ("f32[3,3]",), {"equation": "ii->i"}),
    ("Einsum", ("f32[3,3]",), {"equation": "ii->"}),
    ("Einsum", ("f32[3,4]",), {"equation": "ij->ji"}),
    ("Einsum", ("i32[3,4]", "i32[4,3]"), {"equation": "ij,jk->ik"}),
    ("Einsum", ("bf16[3,4]", "bf16[4,3]"), {"equation": "ij,jk->ik"}),
    *[("BiasAdd", (f"{dtype}[2,3,4,5]", f"{dtype}[5]"), {}) for dtype in ("f32", "bf16", "i32")],
    ("BiasAdd", ("f32[2,3,4,5]", "f32[3]"), {"data_format": "NCHW"}),
    ("BiasAdd", ("f32[2,3,4]", "f32[3]"), {"data_format": "NCHW"}),
    ("BiasAdd", ("f32[2,3]", "f32[3]"), {"data_format": "NCHW"}),
    ("BiasAddV1", ("f32[2,5]", "f32[5]"), {}),
    ("Cross", ("f32[2,3]", "f32[2,3]"), {}),
    *[("TridiagonalMatMul", (*(f"{dtype}[2,1,4]",) * 3, f"{dtype}[2,4,3]"), {}) for dtype in ("f32", "f64", "c64")],
    ("TridiagonalMatMul", ("f32[1,1]",) * 4, {}),
    ("TridiagonalMatMul", ([[1.0, 2.0, np.nan]], [[3.0, 4.0, 5.0]], [[np.inf, 6.0, 7.0]], "f32[3,2]"), {}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), ROWS)
def test_product(agree: Agree, op: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    narrow = isinstance(inputs[0], str) and inputs[0].startswith(("f16", "bf16"))
    wide = isinstance(inputs[0], str) and inputs[0].startswith(("f32", "c64"))
    agree(op, inputs, attributes, tolerance=2e-2 if narrow else 1e-5 if wide else None)


SHAPES: list[ShapeCase] = [
    ("BiasAdd", ["f32[?,?,?,?]", "f32[7]"], {}),
    ("BiasAdd", ["f32[?,?,?,?]", "f32[7]"], {"data_format": "NCHW"}),
    ("BiasAdd", ["f32[*]", "f32[7]"], {}),
    ("MatMul", ["f32[?,4]", "f32[4,5]"], {}),
    ("MatMul", ["f32[4,?]", "f32[5,4]"], {"transpose_a": True, "transpose_b": True}),
    ("BatchMatMulV2", ["f32[?,1,3,4]", "f32[7,4,5]"], {}),
    ("BatchMatMulV2", ["f32[2,4,3]", "f32[2,5,4]"], {"adj_x": True, "adj_y": True}),
    ("BatchMatMul", ["f32[?,3,4]", "f32[2,4,5]"], {}),
    ("Einsum", [["f32[?,3,4]", "f32[4,5]"]], {"equation": "abc,cd->abd"}),
    ("Einsum", [["f32[2,?,3,4]", "f32[7,4,5]"]], {"equation": "...bc,...cd->...bd"}),
    ("Einsum", [["f32[3,3]"]], {"equation": "ii->i"}),
    ("MatrixTriangularSolve", ["f32[2,3,3]", "f32[2,3,4]"], {}),
    ("Qr", ["f32[2,3,4]"], {}),
    ("MatrixDeterminant", ["f32[2,3,3]"], {}),
    ("BatchMatMulV2", ["f32[*]", "f32[7,4,5]"], {}),
    ("Einsum", [["f32[*]", "f32[4,5]"]], {"equation": "...c,cd->...d"}),
    ("Einsum", [["f32[*]", "f32[4,5]"]], {"equation": "bc,cd->bd"}),
    ("MatrixTriangularSolve", ["f32[*]", "f32[2,3,4]"], {}),
    ("MatrixTriangularSolve", ["f32[7,1,3,3]", "f32[2,3,4]"], {}),
    ("MatrixSolve", ["f32[?,3,3]", "f32[2,3,4]"], {}),
    ("Qr", ["f32[*]"], {}),
    ("Qr", ["f32[2,3,4]"], {"full_matrices": True}),
    ("Svd", ["f32[*]"], {}),
    ("Svd", ["f32[2,3,4]"], {}),
    ("Svd", ["f32[2,?,4]"], {"full_matrices": True}),
    ("Svd", ["f32[2,3,4]"], {"compute_uv": False}),
    ("TridiagonalMatMul", [*["f32[?,1,4]"] * 3, "f32[2,?,3]"], {}),
    ("TridiagonalMatMul", ["f32[*]", "f32[2,1,4]", "f32[*]", "f32[*]"], {}),
    ("TridiagonalMatMul", [*["f32[*]"] * 3, "f32[2,?,3]"], {}),
]


@by_op(SHAPES)
def test_shape_function(inferred: Inferred, case: ShapeCase) -> None:
    check_shapes(case, inferred)


CONTRADICTIONS: list[ShapeCase] = [
    ("BatchMatMulV2", ["f32[2,3,4]", "f32[2,5,4]"], {}),
    ("Einsum", [["f32[2,3]"]], {"equation": "a->a"}),
    ("Einsum", [["f32[2]"]], {"equation": "a...b->ab"}),
    ("MatMul", ["f32[2,3]", "f32[2,3]"], {}),
    ("TridiagonalMatMul", [*["f32[1,4]"] * 3, "f32[5,3]"], {}),
    ("TridiagonalMatMul", ["f32[4,4]", *["f32[1,4]"] * 2, "f32[4,3]"], {}),
]


@by_op(CONTRADICTIONS)
def test_what_tensorflow_refuses_is_refused(tmp_path: Path, case: ShapeCase) -> None:
    check_contradiction(case, tmp_path)


BAD: list[KernelCase] = [("MatMul", (np.zeros((2, 3)), np.zeros((2, 3))), {})]


@by_op(BAD)
def test_operands_that_do_not_fit_are_an_error(case: KernelCase) -> None:
    check_refused(case)


@pytest.mark.parametrize(
    ("dtypes", "attributes"),
    [(("f32[2,3]", "f32[4,3]"), {"transpose_b": True}), (("bf16[3,2]", "f32[3,4]"), {"transpose_a": True})],
)
def test_product_of_matrices_with_many_zeros(agree: Agree, dtypes: tuple[str, str], attributes: dict[str, Any]) -> None:
    agree("SparseMatMul", dtypes, attributes)
