"""Fused activations in LiteRT: which it computes, and what files with others become."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.importers.tflite.written_files import Tree, build_file
from tests.support.litert import RunTFLite
from tfconvert.converter.targets.litert.passes.separate_activations import CODE
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.tflite.operators import computed_activations, having, lookup

_MEANING: dict[str, Callable[[Array], Array]] = {
    "NONE": lambda x: x,
    "RELU": lambda x: np.maximum(x, 0),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "TANH": np.tanh,
    "SIGN_BIT": lambda x: np.signbit(x).astype(np.float32),
}
_NUMBERS = np.random.default_rng(0)
_IMAGE = (1, 4, 4, 3)
_WINDOW = {"stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
_STRIDE = {"stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}


def _floats(*shape: int) -> Array:
    return (3 * _NUMBERS.normal(size=shape)).astype(np.float32)


# By operator: the shape of the input, further operands, the shape of the result, and options.
_CALLS: dict[str, tuple[tuple[int, ...], list[Array | None], tuple[int, ...], Tree]] = {
    **{name: (_IMAGE, [_floats(*_IMAGE)], _IMAGE, {}) for name in ("add", "sub", "mul", "div")},
    **{
        name: (_IMAGE, [], (1, 2, 2, 3), _WINDOW)
        for name in ("average_pool_2d", "max_pool_2d", "l2_pool_2d")
    },
    "concatenation": (_IMAGE, [_floats(*_IMAGE)], (1, 4, 4, 6), {"axis": 3}),
    "l2_normalization": (_IMAGE, [], _IMAGE, {}),
    "conv_2d": (_IMAGE, [_floats(5, 3, 3, 3), _floats(5)], (1, 4, 4, 5), _STRIDE),
    "depthwise_conv_2d": (
        _IMAGE, [_floats(1, 3, 3, 3), _floats(3)], _IMAGE, {**_STRIDE, "depth_multiplier": 1},
    ),
    "conv_3d": (
        (1, 4, 4, 4, 2), [_floats(2, 2, 2, 2, 3), _floats(3)], (1, 4, 4, 4, 3),
        {**_STRIDE, "stride_d": 1, "dilation_d_factor": 1},
    ),
    "transpose_conv": (_IMAGE, [_floats(5, 3, 3, 3), _floats(5)], (1, 8, 8, 5), {"stride_w": 2, "stride_h": 2}),
    "fully_connected": ((2, 6), [_floats(4, 6), _floats(4)], (2, 4), {}),
    "svdf": ((2, 6), [_floats(4, 6), _floats(4, 5), None, np.zeros((2, 20), np.float32)], (2, 4), {"rank": 1}),
    "rnn": ((2, 6), [_floats(4, 6), _floats(4, 4), _floats(4), np.zeros((2, 4), np.float32)], (2, 4), {}),
}  # fmt: skip


def _file(name: str, kind: str, **fields: Any) -> bytes:
    shape, operands, result, options = _CALLS[name]
    tensors: list[Tree] = [{"shape": shape, **fields}, {"shape": result, **fields}]
    buffers: list[bytes] = []
    inputs = [0]
    for operand in operands:
        inputs.append(-1 if operand is None else len(tensors))
        if operand is None:
            continue
        if operand.any():
            buffers.append(operand.tobytes())
        tensors.append(
            {"shape": operand.shape, **({"buffer": len(buffers)} if operand.any() else {"is_variable": True})}
        )
    if name == "transpose_conv":
        buffers.append(np.array(result, np.int32).tobytes())
        tensors.append({"shape": (4,), "type": "INT32", "buffer": len(buffers)})
        inputs = [len(tensors) - 1, inputs[1], 0, inputs[2]]
    operator = lookup(name)
    assert operator is not None
    call = {
        "inputs": tuple(inputs),
        "outputs": (1,),
        "builtin_options": (operator.options, {**options, "fused_activation_function": kind}),
    }
    codes = [{"builtin_code": name.upper(), "version": 3 if name == "transpose_conv" else 1}]
    return build_file(tensors, [call], codes, buffers=buffers)


def test_all_operators_of_the_table_are_tried() -> None:
    assert having("fuses").keys() == set(_CALLS)


@pytest.mark.parametrize("kind", [kind for kind in _MEANING if kind != "NONE"])
@pytest.mark.parametrize("name", _CALLS)
def test_activations_are_computed(run_tflite: RunTFLite, tmp_path: Path, name: str, kind: str) -> None:
    x = _floats(*_CALLS[name][0])
    (plain,) = run_tflite(_file(name, "NONE"), [x])
    expected = _MEANING[kind](plain)
    try:
        (found,) = run_tflite(_file(name, kind), [x])
    except RuntimeError:
        found = np.full_like(expected, np.nan)
    is_computed = bool(np.allclose(found, expected, atol=1e-4))
    computed = computed_activations(name)
    assert computed is not None
    assert (kind in computed) is is_computed
    path = tmp_path / "model.tflite"
    path.write_bytes(_file(name, kind))
    model = tfconvert.convert(path)
    (again,) = run_tflite(bytes(model), [x])
    np.testing.assert_allclose(again, expected, atol=1e-4)
    assert (CODE in [note.code for note in model.report.notes]) is not is_computed


def test_integers_before_an_unknown_function_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    quantization = {"scale": (0.1,), "zero_point": (0,)}
    path.write_bytes(_file("max_pool_2d", "TANH", type="INT8", quantization=quantization))
    with pytest.raises(ConversionError, match="without the fused activation TANH"):
        tfconvert.convert(path)
