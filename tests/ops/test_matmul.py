"""Products of matrices against TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Agree = Callable[..., None]

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
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), ROWS)
def test_product(agree: Agree, op: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    narrow = isinstance(inputs[0], str) and inputs[0].startswith(("f16", "bf16"))
    wide = isinstance(inputs[0], str) and inputs[0].startswith(("f32", "c64"))
    agree(op, inputs, attributes, tolerance=2e-2 if narrow else 1e-5 if wide else None)
