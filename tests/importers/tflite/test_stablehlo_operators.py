"""Operators of StableHLO in files, for which LiteRT has no kernel, become those that it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.importers.tflite.written_files import Tree, build_file
from tests.support.litert import RunTFLite

_X = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
_Y = np.random.default_rng(1).uniform(0.5, 2, (3, 8)).astype(np.float32)
_SCALAR = {"shape": (), "type": "FLOAT32"}


def _case(name: str, inputs: list[Any], result: Any, options: tuple[str, Tree] | None = None, body: str = "") -> Any:
    return pytest.param(name, inputs, result, options, body, id=f"{name} {body}".strip())


_CASES = [
    _case("ABS", [_X], np.abs(_X)),
    _case("CBRT", [_Y], np.cbrt(_Y)),
    _case("CLAMP", [np.float32(-0.5), _X, np.float32(0.5)], np.clip(_X, -0.5, 0.5)),
    _case("COSINE", [_X], np.cos(_X)),
    _case("DIVIDE", [_X, _Y], _X / _Y),
    _case("EXPONENTIAL", [_X], np.exp(_X)),
    _case("FLOOR", [_X], np.floor(_X)),
    _case("LOG", [_Y], np.log(_Y)),
    _case("LOGISTIC", [_X], 1 / (1 + np.exp(-_X))),
    _case("NEGATE", [_X], -_X),
    _case("POWER", [_Y, _X], _Y**_X),
    _case("REMAINDER", [_X, _Y], np.fmod(_X, _Y)),
    _case("RESHAPE", [_X], _X.reshape(4, 6)),
    _case("RSQRT", [_Y], 1 / np.sqrt(_Y)),
    _case("SUBTRACT", [_X, _Y], _X - _Y),
    _case("TANH", [_X], np.tanh(_X)),
    _case("SELECT", [_X > 0, _X, _Y], np.where(_X > 0, _X, _Y)),
    _case("CONVERT", [_X * 9], (_X * 9).astype(np.int32)),
    _case("TRANSPOSE", [_X], _X.T, ("StablehloTransposeOptions", {"permutation": (1, 0)})),
    _case("CONCATENATE", [_X, _Y], np.concatenate([_X, _Y], 1), ("StablehloConcatenateOptions", {"dimension": 1})),
    _case(
        "BROADCAST_IN_DIM", [_X[0]], np.broadcast_to(_X[0], (5, 8)),
        ("StablehloBroadcastInDimOptions", {"broadcast_dimensions": (1,)}),
    ),
    _case(
        "SLICE", [_X], _X[1:3, 1:8:2],
        ("StablehloSliceOptions", {"start_indices": (1, 1), "limit_indices": (3, 8), "strides": (1, 2)}),
    ),
    _case(
        "DYNAMIC_SLICE", [_X, np.int32(1), np.int32(2)], _X[1:3, 2:6],
        ("StablehloDynamicSliceOptions", {"slice_sizes": (2, 4)}),
    ),
    _case(
        "COMPARE", [_X, _Y], _X >= _Y,
        ("StablehloCompareOptions", {"comparison_direction": "STABLEHLO_COMPARISON_DIRECTION_GE"}),
    ),
    _case(
        "DOT_GENERAL", [_X, _Y], _X @ _Y.T,
        ("StablehloDotGeneralOptions", {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (1,)}),
    ),
    _case("SORT", [_X], np.sort(_X, 1), ("StablehloSortOptions", {"dimension": 1}), "LESS"),
    _case("SORT", [_X], -np.sort(-_X, 0), ("StablehloSortOptions", {"dimension": 0}), "GREATER"),
    _case("REDUCE", [_X, np.float32(0)], _X.sum(1), ("StablehloReduceOptions", {"dimensions": (1,)}), "ADD"),
    _case(
        "REDUCE", [_X, np.float32(-np.inf)], _X.max(0), ("StablehloReduceOptions", {"dimensions": (0,)}),
        "STABLEHLO_MAXIMUM",
    ),
]  # fmt: skip

_FIELDS = {"SORT": "comparator_subgraph_index", "REDUCE": "body_subgraph_index"}
_TYPES = {"float32": "FLOAT32", "int32": "INT32", "bool": "BOOL"}


@pytest.mark.parametrize(("name", "inputs", "result", "options", "body"), _CASES)
def test_results(
    run_tflite: RunTFLite,
    tmp_path: Path,
    name: str,
    inputs: list[Any],
    result: Any,
    options: tuple[str, Tree] | None,
    body: str,
) -> None:
    values = [*map(np.asarray, inputs), np.asarray(result)]
    tensors: list[Tree] = [
        {"shape": each.shape, "type": _TYPES[each.dtype.name], "name": f"t{number}", "has_rank": True}
        for number, each in enumerate(values)
    ]
    count = len(inputs)
    # Initial values are constants.
    constant = np.asarray(inputs[-1]).tobytes() if name == "REDUCE" else b""
    if constant:
        tensors[-2]["buffer"] = 1
    call: Tree = {"opcode_index": 0, "inputs": tuple(range(count)), "outputs": (count,)}
    if options is not None:
        further = {_FIELDS[name]: 1} if name in _FIELDS else {}
        call["builtin_options2"] = (options[0], {**options[1], **further})
    taken = tuple(range(count - bool(constant)))
    main = {"tensors": tensors, "inputs": taken, "outputs": (count,), "operators": [call]}
    subgraphs: list[Tree] = [{**main, "name": "main"}]
    if body:
        kind = "BOOL" if name == "SORT" else "FLOAT32"
        inner = [{**_SCALAR, "name": "a"}, {**_SCALAR, "name": "b"}, {"shape": (), "type": kind, "name": "c"}]
        step = {"opcode_index": 1, "inputs": (0, 1), "outputs": (2,)}
        subgraphs.append({"tensors": inner, "inputs": (0, 1), "outputs": (2,), "operators": [step], "name": "body"})
    codes = [f"STABLEHLO_{name}", *([body] if body else [])]
    content = build_file([], [], codes, subgraphs=subgraphs, buffers=[constant] if constant else [])
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    fed = [np.asarray(each) for each in inputs[: len(taken)]]
    with pytest.raises((RuntimeError, ValueError)):
        run_tflite(content, fed)
    model = tfconvert.convert(path)
    assert not any(each.startswith("STABLEHLO") for each in model.report.operators)
    np.testing.assert_allclose(run_tflite(bytes(model), fed)[0], result, rtol=1e-5, atol=1e-5)
