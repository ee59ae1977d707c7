"""Files with every feature of the format, most of which converters rarely use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importers.tflite.written_files import File, RoundTrip
from tfconvert.exporters.tflite.model import export
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.dialects import tensor_data, tfl
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.sources import FileSlice
from tfconvert.schema.dialects.tensor_data import TensorData
from tfconvert.schema.tflite import operators
from tfconvert.schema.tflite.tables import SCALARS, TFLITE, Field

CALL = {"opcode_index": 0, "inputs": (0,), "outputs": (1,)}


def _value(field: Field) -> Any:
    """Returns a value of a field that is not its default."""
    kind = field.kind
    if kind == "[ubyte]":
        return b"\x01\x02\xff"
    if kind[0] == "[":
        return [_value(Field(field.name, 0, kind[1:-1], 0, field.refers, 0))] * 3
    if kind == "string":
        return 'a "name"'
    if field.refers:
        return list(TFLITE.enums[field.refers])[-1]
    return not field.default if kind == "bool" else field.default + (2.5 if kind in ("float", "double") else 1)


@pytest.mark.parametrize("name", [name for name in operators.names() if name != "custom"])
def test_every_operator_with_every_option(file: File, round_trip: RoundTrip, name: str) -> None:
    operator = operators.lookup(name)
    assert operator is not None
    calls = set(tfl.SUBGRAPHS.get(name, {}).values())
    fields = TFLITE.fields(operator.options) if operator.options else {}
    options = {
        key: (_value(field) if key not in calls else 1 if field.kind in SCALARS else (1, 1))
        for key, field in fields.items()
    }
    call = {
        "opcode_index": 0,
        "inputs": (0,) * operator.operand_range[0],
        "outputs": tuple(range(1, 1 + operator.result_range[0])),
        "mutating_variable_inputs": (True, False),
        **({operator.union: (operator.options, options)} if operator.options else {}),
    }
    tensors: list[dict[str, Any]] = [
        {"shape": (2,), "type": "FLOAT32", "name": f"t{index}", "has_rank": True} for index in range(5)
    ]
    main = {"tensors": tensors, "inputs": (0,), "outputs": (0,), "operators": [call], "name": "main"}
    other = {"tensors": tensors, "inputs": (0,), "outputs": (0,), "operators": [], "name": "other"}
    module = round_trip(file([], [], [name.upper()], subgraphs=[main, other]))
    op = next(op for op in module.walk() if isinstance(op, tfl.TFLOp))
    assert op.op_name == name
    symbols = tfl.SUBGRAPHS.get(name, {})
    assert set(op.properties) == {*symbols, *(set(options) - calls)}
    assert all("other" in str(op.properties[symbol]) for symbol in symbols)


TENSORS: dict[str, dict[str, Any]] = {
    "unknown dimension": {"shape": (1, 3), "shape_signature": (-1, 3)},
    "another first shape": {"shape": (4, 3), "shape_signature": (-1, 3)},
    "unknown rank": {"shape": ()},
    "scalar": {"shape": (), "has_rank": True},
    "quantised": {"type": "INT8", "quantization": {"scale": (0.1,), "zero_point": (-3,)}},
    "quantised by axis": {
        "type": "UINT8",
        "quantization": {"scale": (1e-30, 2.0), "zero_point": (0, 7), "quantized_dimension": 0},
    },
    "last of two axes": {
        "shape": (3, 2),
        "type": "INT4",
        "quantization": {"scale": (0.25, 3.0), "zero_point": (0, 0), "quantized_dimension": 1},
    },
    "statistics": {"quantization": {"min": (-1.5,), "max": (2.5,)}},
    "odd quantisation": {"type": "INT16", "quantization": {"scale": (0.5,), "quantized_dimension": 3}},
    "variant": {"type": "VARIANT", "variant_tensors": [{"shape": (1, 2), "type": "INT64", "has_rank": True}]},
    "no name": {"name": ""},
    "a name with a comma": {"name": "a,b"},
    "a name with an at": {"name": "a@b"},
    "the same name": {"name": "t0"},
    "float8": {"type": "FLOAT8_E4M3FN"},
    "state": {"is_variable": True},
}


@pytest.mark.parametrize("role", ["input", "result", "intermediate"])
@pytest.mark.parametrize("fields", TENSORS.values(), ids=TENSORS)
def test_tensors(file: File, round_trip: RoundTrip, fields: dict[str, Any], role: str) -> None:
    tensors = [{}, fields] if role == "result" else [fields, {}]
    call: dict[str, Any] = {**CALL, "intermediates": (0,)} if role == "intermediate" else CALL
    if role == "intermediate":
        call = {**call, "inputs": (2,)}
        tensors.append({})
    round_trip(file(tensors, [call], ["ABS"], inputs=(2,) if role == "intermediate" else (0,)))


CONSTANTS: dict[str, tuple[dict[str, Any], bytes]] = {
    "float": ({}, b"\0\0\x80?\0\0\0@"),
    "scalar without rank": ({"shape": ()}, b"\0\0\x80?"),
    "large": ({"shape": (40, 10)}, np.arange(400, dtype=np.float32).tobytes()),
    "int4": ({"shape": (3,), "type": "INT4"}, b"\x8f\x07"),
    "uint4": ({"shape": (2, 2), "type": "UINT4"}, b"\x8f\x17"),
    "int2": ({"shape": (5,), "type": "INT2"}, b"\xe4\x02"),
    "strings": ({"type": "STRING"}, b"\x02\0\0\0\x10\0\0\0\x11\0\0\0\x13\0\0\0a\xff\0"),
    "quantised": ({"type": "INT8", "quantization": {"scale": (0.5,), "zero_point": (1,)}}, b"\x01\xff"),
    "quantised int4": ({"type": "INT4", "quantization": {"scale": (0.5,), "zero_point": (1,)}}, b"\x1f"),
    "bool": ({"type": "BOOL"}, b"\0\1"),
    "complex": ({"type": "COMPLEX64", "shape": (1,)}, b"\0\0\x80?\0\0\0@"),
    "sparse": (
        {
            "shape": (2, 4),
            "sparsity": {
                "traversal_order": (0, 1),
                "dim_metadata": [
                    {"dense_size": 2},
                    {
                        "format": "SPARSE_CSR",
                        "array_segments": ("Uint8Vector", {"values": (0, 1, 2)}),
                        "array_indices": ("Int32Vector", {"values": (3, 0)}),
                    },
                ],
            },
        },
        b"\0\0\x80?\0\0\0@",
    ),
}


@pytest.mark.parametrize("returned", [False, True])
@pytest.mark.parametrize(("fields", "data"), CONSTANTS.values(), ids=CONSTANTS)
def test_constants(file: File, round_trip: RoundTrip, fields: dict[str, Any], data: bytes, returned: bool) -> None:
    tensors = [{**fields, "buffer": 1}, {}, {**fields, "buffer": 1, "name": "t0"}]
    round_trip(file(tensors, [CALL], ["ABS"], inputs=(), outputs=(1, 0, 0, 2) if returned else (1,), buffers=[data]))


def test_values(file: File) -> None:
    tensors = [{"shape": (3,), "type": "INT4", "buffer": 1}, {"type": "STRING", "buffer": 2}]
    data = CONSTANTS["int4"][1], CONSTANTS["strings"][1]
    module = import_tflite(file(tensors, [], [], inputs=(), outputs=(0, 1), buffers=data))
    narrow, strings = (tensor_data.to_array(op.properties["value"]) for op in module.walk() if "value" in op.properties)
    assert narrow.astype(int).tolist() == [-1, -8, 7]
    assert strings.tolist() == [b"a", b"\xff\0"]


def test_other_fields_of_operators(file: File, round_trip: RoundTrip) -> None:
    code = {"builtin_code": "CUSTOM", "deprecated_builtin_code": 32, "custom_code": "Mine", "version": 3}
    round_trip(file([{"is_variable": True}, {}], [{**CALL, "custom_options": b"\1\2"}], [code], inputs=()))
    round_trip(file([{}, {}], [{**CALL, "inputs": (0, -1, -1), "outputs": (-1, 1)}], [code]))
    round_trip(file([{}, {}], [{**CALL, "custom_options": b"abc", "debug_metadata_index": 4}], ["ABS"]))
    round_trip(file([{}, {}], [{**CALL, "builtin_options": ("ReshapeOptions", {"new_shape": (2,)})}], ["ABS"]))
    old = {"deprecated_builtin_code": 101, "version": 9}
    round_trip(file([{}, {}], [CALL], [old]))


def test_weights_beside_the_model(file: File, round_trip: RoundTrip) -> None:
    beside = {"id": 7, "group": 0, "offset": 64, "length": 8, "packing": "none"}
    content = file(
        [{"external_buffer": 7}, {}],
        [CALL],
        ["ABS"],
        inputs=(),
        external_buffer_groups=[{"name": "weights.bin"}],
        external_buffers=[beside],
    )
    assert "tfl.external_const" in str(round_trip(content))


@pytest.mark.parametrize(
    "maps",
    [
        [("a", ["x"], ["y"])],
        [("a", ["x"], ["y"]), ("b", ["x"], ["y"])],
        [("a", ["x"], ["y"]), ("b", ["other"], ["y"])],
        [("a", [], ["y", "z"])],
        [("", ["x"], ["y"])],
    ],
)
def test_signatures(file: File, round_trip: RoundTrip, maps: list[tuple[str, list[str], list[str]]]) -> None:
    signatures = [
        {
            "signature_key": key,
            "inputs": [{"name": name, "tensor_index": 0} for name in inputs],
            "outputs": [{"name": name, "tensor_index": 1} for name in outputs],
        }
        for key, inputs, outputs in maps
    ]
    round_trip(file([{}, {}], [CALL], ["ABS"], signature_defs=signatures))


def test_metadata(file: File, round_trip: RoundTrip) -> None:
    entries = [{"name": name, "buffer": index + 1} for index, name in enumerate(("text", "bytes", "none"))]
    content = file(
        [{}, {}], [CALL], ["ABS"], buffers=[b"1.2\0", b"\xff\0", b""], metadata=entries, description='a "model"'
    )
    module = round_trip(content)
    assert 'text = "1.2\\00"' in str(module)


def test_functions_have_names_of_their_own(file: File, round_trip: RoundTrip) -> None:
    tensors = [{"shape": (2,), "type": "FLOAT32", "name": "x", "has_rank": True}]
    subgraphs = [{"tensors": tensors, "inputs": (0,), "outputs": (0,), "name": name} for name in ("", "f", "f", "")]
    module = round_trip(file([], [], [], subgraphs=subgraphs))
    assert [op.sym_name for op in module.ops if isinstance(op, FuncOp)] == ["main", "f", "f_2", "subgraph_3"]


def test_weights_stay_in_the_file(file: File, tmp_path: Path) -> None:
    weights = np.arange(100_000, dtype=np.float32)
    tensors: list[dict[str, Any]] = [{}, {"shape": weights.shape, "buffer": 1}, {"shape": weights.shape, "buffer": 1}]
    path = tmp_path / "model.tflite"
    path.write_bytes(file(tensors, [], [], outputs=(1, 2), buffers=[weights.tobytes()]))
    first, second = (op.properties["value"] for op in import_tflite(path).walk() if "value" in op.properties)
    assert isinstance(first, TensorData)
    assert isinstance(second, TensorData)
    assert isinstance(first.source, FileSlice)
    assert first.source is second.source
    np.testing.assert_array_equal(first.array(), weights)


def test_large_files(file: File, round_trip: RoundTrip) -> None:
    data = np.arange(400, dtype=np.float32).tobytes()
    module = import_tflite(file([{"shape": (400,), "buffer": 1}], [], [], inputs=(), outputs=(0,), buffers=[data]))
    large = export(module, large=1).to_bytes()
    assert "dense_resource" in str(round_trip(large))
    assert "buffer_location" not in str(import_tflite(large))
