"""The contents of the files that we write, and how they are written."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import google_crc32c
import ml_dtypes
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as official
from tensorflow.lite.python.conversion_metadata_schema_py_generated import ConversionMetadataT

from tfconvert.converter.targets.litert.quantize.weights import quantize_symmetric
from tfconvert.exporters.tflite.file import BufferWriter, FileBuffer, TFLiteFile
from tfconvert.exporters.tflite.model import Origin, export
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.quant import Uniform
from tfconvert.schema.dialects.sources import DataSource, FileSlice
from tfconvert.schema.dialects.tensor_data import TensorData
from tfconvert.schema.files import InputFile
from tfconvert.schema.ir.locations import FusedLoc, NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import I8
from tfconvert.schema.tflite.reader import View, read_model

F32 = types.F32


def tensor(*shape: int, element: Any = F32) -> Any:
    return types.tensor(element, shape)


@pytest.fixture
def chain(modules: Any) -> Any:
    """Returns a module of a few ops with large and small constants, some of them equal."""
    weights = np.arange(3000, dtype=np.float32)

    def body(f: Any) -> Any:
        value = f.args[0]
        for position in range(6):
            constant = f.constant(weights + position // 2)
            value = f.op("add", [value, constant], (3000,), {"fused_activation_function": "RELU"})
        return [f.op("mul", [value, f.constant(np.float32(3))], (3000,))]

    return modules().function("main", [tensor(3000)], body, signatures=["serve"], paths=(["x"], ["y"])).module


def test_layout(chain: Any) -> None:
    file = export(chain, origin=Origin())
    content = file.to_bytes()
    assert len(content) == file.size
    model = read_model(content)
    buffers = model["buffers"]
    assert list(buffers[0].stored()) == []
    ends = []
    for buffer in buffers[1:]:
        data = buffer["data"]
        start = data.__array_interface__["data"][0] - np.frombuffer(content, np.uint8).__array_interface__["data"][0]
        assert start % 16 == 0
        ends.append(start + len(data))
    assert max(ends) == file.size
    large = [buffer for buffer in buffers if buffer["data"] is not None and len(buffer["data"]) == 12000]
    assert len(large) == 3


def test_official_reader_sees_the_model(chain: Any) -> None:
    model = official.ModelT.InitFromPackedBuf(export(chain, description="hello").to_bytes())
    assert (model.version, model.description) == (3, b"hello")
    (subgraph,) = model.subgraphs
    assert subgraph.name == b"main"
    assert [code.builtinCode for code in model.operatorCodes] == [0, 18]
    assert [code.deprecatedBuiltinCode for code in model.operatorCodes] == [0, 18]
    for operator in subgraph.operators[:-1]:
        assert operator.builtinOptions.fusedActivationFunction == official.ActivationFunctionType.RELU
        assert operator.builtinOptions.potScaleInt16
    for item in subgraph.tensors:
        assert item.hasRank
        assert item.shapeSignature is None
    assert [list(subgraph.tensors[index].shape) for index in subgraph.inputs] == [[3000]]


def test_metadata(chain: Any) -> None:
    origin = Origin("KERAS_MODEL", "2.21.0", ("PTQ_FLOAT16",), allow_custom_ops=True)
    model = read_model(export(chain, origin=origin, metadata={"mine": b"abc"}).to_bytes())
    entries = {item["name"]: bytes(model["buffers"][item["buffer"]]["data"]) for item in model["metadata"]}
    assert list(entries) == ["min_runtime_version", "CONVERSION_METADATA", "mine"]
    assert entries["min_runtime_version"] == b"1.5.0".ljust(16, b"\0")
    assert entries["mine"] == b"abc"
    conversion = ConversionMetadataT.InitFromPackedBuf(entries["CONVERSION_METADATA"])
    assert conversion.environment.tensorflowVersion == b"2.21.0"
    assert (conversion.environment.apiVersion, conversion.environment.modelType) == (2, 2)
    assert list(conversion.options.modelOptimizationModes) == [1001]
    assert (conversion.options.allowCustomOps, conversion.options.enableSelectTfOps) == (True, False)


def test_statistics(chain: Any) -> None:
    file = export(chain)
    assert file.operators == {"ADD": 6, "MUL": 1}
    assert file.bytes_by_operator == {"ADD": 3 * 12000, "MUL": 4}


def test_custom_operator(modules: Any) -> None:
    def body(f: Any) -> Any:
        first = f.add(tfl.custom("Mine", b"\1\2", [f.args[0]], [tensor(2)])).results[0]
        second = f.add(tfl.custom("Other", b"", [first], [tensor(2)])).results[0]
        return [f.add(tfl.custom("Mine", b"\3", [second], [tensor(2)])).results[0]]

    file = export(modules().function("f", [tensor(2)], body).module)
    assert file.operators == {"Mine": 2, "Other": 1}
    model = read_model(file.to_bytes())
    codes = [(code["custom_code"], code["builtin_code"], code["version"]) for code in model["operator_codes"]]
    assert codes == [("Mine", 32, 1), ("Other", 32, 1)]
    calls = [(call["opcode_index"], bytes(call["custom_options"])) for call in model["subgraphs"][0]["operators"]]
    assert calls == [(0, b"\1\2"), (1, b""), (0, b"\3")]
    runtime = model["buffers"][model["metadata"][0]["buffer"]]["data"]
    assert bytes(runtime) == bytes(16)


def tensors(content: bytes) -> list[View]:
    result: list[View] = read_model(content)["subgraphs"][0]["tensors"]
    return result


def test_names_are_unique_and_come_from_locations(modules: Any) -> None:
    def body(f: Any) -> Any:
        first = f.op("neg", [f.args[0]], (2,), at="node")
        second = f.op("neg", [first], (2,), at="node")
        fused = FusedLoc.get([NameLoc.get("conv"), NameLoc.get("relu")])
        third = f.add(tfl.build("neg", [second], [tensor(2)], location=fused)).results[0]
        parts = f.add(
            tfl.build("split", [f.constant(np.int32(0), at="axis"), third], [tensor(1), tensor(1)], {"num_splits": 2})
        )
        return parts.results

    content = export(modules().function("f", [tensor(2)], body, names=("x", "a,node")).module).to_bytes()
    assert [item["name"] for item in tensors(content)] == ["x", "node_1", "node_2", "relu", "axis", "a", "node"]


def names(content: bytes) -> list[list[str]]:
    return [[item["name"] for item in view["tensors"]] for view in read_model(content)["subgraphs"]]


def signatures(content: bytes) -> dict[str, tuple[list[str], list[str]]]:
    sides = {
        view["signature_key"]: tuple([item["name"] for item in view[side]] for side in ("inputs", "outputs"))
        for view in read_model(content)["signature_defs"]
    }
    return {key: (inputs, outputs) for key, (inputs, outputs) in sides.items()}


def test_no_two_tensors_of_a_file_have_one_name(modules: Any) -> None:
    def main(f: Any) -> Any:
        calls = {"cond": attrs.symbol("more"), "body": attrs.symbol("step")}
        inner = f.op("neg", [f.args[0]], (2,), at="y")
        return [f.add(tfl.build("while", [inner], [tensor(2)], calls, NameLoc.get("loop"))).results[0]]

    def other(f: Any) -> Any:
        return [f.op("neg", [f.constant(np.zeros(2, np.float32), at="arg0")], (2,), at="x"), f.args[0]]

    builder = modules()
    builder.function("first", [tensor(2)], main, ["first"], ("x", "out"))
    builder.function("second", [tensor(2)], other, ["second"], ("x", "y"))
    builder.function("third", [tensor(2)], other, ["third"], ("x", "y"), (["x"], ["y", "z"]))
    builder.function("step", [tensor(2)], lambda f: [f.op("neg", [f.args[0]], (2,), at="loop")])
    builder.function("more", [tensor(2)], lambda f: [f.constant(np.zeros(2, np.bool_), at="loop")])
    content = export(builder.module).to_bytes()
    assert content == export(builder.module).to_bytes()
    assert names(content) == [
        ["x", "y_2", "out"],
        ["x_1", "arg0_2", "y"],
        ["x_2", "arg0_3", "y_1"],
        ["arg0", "loop"],
        ["arg0_1", "loop_1"],
    ]
    # Signatures name their tensors as each subgraph would by itself.
    assert signatures(content) == {
        "first": (["x"], ["out"]),
        "second": (["x"], ["y", "x"]),
        "third": (["x"], ["y", "z"]),
    }


def test_unknown_dimensions_and_ranks(modules: Any) -> None:
    def body(f: Any) -> Any:
        return [f.op("neg", [f.args[0]], (-1, 3, -1)), f.op("neg", [f.args[1]], None), f.op("neg", [f.args[2]], ())]

    inputs = [tensor(-1, 3, -1), types.tensor(F32, None), tensor()]
    dynamic, unranked, scalar = tensors(export(modules().function("f", inputs, body).module).to_bytes())[:3]
    assert (dynamic["shape"].tolist(), dynamic["shape_signature"].tolist()) == ([1, 3, 1], [-1, 3, -1])
    assert (unranked["shape"].tolist(), unranked["has_rank"]) == ([], False)
    assert (scalar["shape"].tolist(), scalar["has_rank"], scalar["shape_signature"]) == ([], True, None)


def test_versions_are_the_highest_of_all_uses(modules: Any) -> None:
    def body(f: Any) -> Any:
        return [
            f.op("transpose", [f.args[0], f.constant(np.array([1, 0], np.int32))], (3, 2)),
            f.op("transpose", [f.args[1], f.constant(np.arange(5, dtype=np.int32))], (1,) * 5),
            f.op("add", [f.args[2], f.args[2]], (2,), element=types.I64),
        ]

    inputs = [tensor(2, 3), tensor(*(1,) * 5), tensor(2, element=types.I64)]
    model = read_model(export(modules().function("f", inputs, body).module).to_bytes())
    assert [(code.name("builtin_code"), code["version"]) for code in model["operator_codes"]] == [
        ("TRANSPOSE", 4),
        ("ADD", 4),
    ]
    assert bytes(model["buffers"][model["metadata"][0]["buffer"]]["data"]).rstrip(b"\0") == b"2.6.0"


def test_equal_bytes_are_stored_once_and_colliding_ones_twice(modules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_data.BufferSource, "fingerprint", lambda self: "the same")
    first, second = np.zeros(500, np.float32), np.ones(500, np.float32)

    def body(f: Any) -> Any:
        value = f.args[0]
        for constant in (first, second, first.copy(), second.copy()):
            value = f.op("add", [value, f.constant(constant)], (500,))
        return [value]

    model = read_model(export(modules().function("f", [tensor(500)], body).module).to_bytes())
    large = [bytes(item["data"]) for item in model["buffers"] if item["data"] is not None and len(item["data"]) == 2000]
    assert large == [first.tobytes(), second.tobytes()]


def test_bytes_are_compared_whatever_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (tensor_data.BufferSource, tensor_data.Deferred):
        monkeypatch.setattr(kind, "fingerprint", lambda self: "the same")
    value = np.arange(3_000_000, dtype=np.float32).reshape(1500, 2000)
    other = value.copy()
    other[-1, -1] = 0
    flipped = tensor_data.of_array(value.T.copy())
    transposed = tensor_data.defer("transpose", (flipped,), value.shape, (1, 0))
    shared = BufferWriter()
    constants = [*map(tensor_data.of_array, (value, other, value.reshape(3, -1), value[:-1])), transposed, flipped]
    assert [shared.add(constant, "FLOAT32") for constant in constants] == [1, 2, 1, 3, 1, 4]
    assert b"".join(shared.entries[0].blocks()) == value.tobytes()


def test_a_table_and_its_transposed_copy_are_stored_once() -> None:
    table = np.random.default_rng(0).normal(size=(1500, 100)).astype(np.float32)
    other = table.copy()
    other[-1] = 0
    copied = tensor_data.defer("transpose", (tensor_data.of_array(table.T.copy()),), table.shape, (1, 0))
    shared = BufferWriter()
    constants = [*map(tensor_data.of_array, (table, other)), copied]
    assert [shared.add(constant, "FLOAT32") for constant in constants] == [1, 2, 1]


def test_equal_integers_are_stored_once_whatever_they_were_made_from() -> None:
    random = np.random.default_rng(0)
    tiny = [tensor_data.of_array(random.normal(0, 1e-9, (60, 50)).astype(np.float32)) for _ in range(2)]
    other = tensor_data.of_array(np.where(np.arange(3000) == 2999, 1, 0).astype(np.float32).reshape(60, 50))
    mappings = [Uniform(I8, (scale,), (0,)) for scale in (0.5, 0.25, 0.5)]
    shared = BufferWriter()
    constants = [quantize_symmetric(each, own).stored for each, own in zip((*tiny, other), mappings, strict=True)]
    assert [shared.add(constant, "INT8") for constant in constants] == [1, 1, 2]
    assert [b"".join(buffer.blocks()).count(b"\0") for buffer in shared.entries] == [3000, 2999]


@pytest.mark.parametrize(("kind", "dtype", "bits"), [("INT4", ml_dtypes.int4, 4), ("INT2", ml_dtypes.int2, 2)])
@pytest.mark.parametrize("size", [4000, 4001, 4003])
def test_narrow_integers_are_packed_block_by_block(
    monkeypatch: pytest.MonkeyPatch, kind: str, dtype: Any, bits: int, size: int
) -> None:
    limit = 2 ** (bits - 1)
    whole = np.random.default_rng(0).integers(-limit, limit, size)
    constant = tensor_data.of_array(whole.astype(dtype))
    reverse = tensor_data.defer("reverse", (tensor_data.of_array(whole[::-1].astype(dtype)),), (size,))
    shared = BufferWriter()
    assert [shared.add(each, kind) for each in (constant, reverse, reverse, constant)] == [1, 2, 2, 1]
    blocks = DataSource.blocks
    monkeypatch.setattr(DataSource, "blocks", lambda self, dtype, shape, size=7: blocks(self, dtype, shape, 7))
    expected = bytearray(-(-size * bits // 8))
    for at, value in enumerate(whole.tolist()):
        expected[at * bits // 8] |= (value % 2**bits) << (at * bits % 8)
    for buffer in shared.entries:
        pieces = [bytes(piece) for piece in buffer.blocks()]
        assert len(pieces) > 500
        assert (b"".join(pieces), buffer.size) == (bytes(expected), len(expected))


def test_integers_of_different_width_are_different_buffers() -> None:
    values = np.ones(3000, np.int8)
    shared = BufferWriter()
    assert shared.add(tensor_data.of_array(values), "INT8") == 1
    assert shared.add(tensor_data.of_array(values.astype(ml_dtypes.int4)), "INT4") == 2
    assert [buffer.size for buffer in shared.entries] == [3000, 1500]


def test_a_buffer_that_is_not_as_long_as_it_said(tmp_path: Path) -> None:
    target = tmp_path / "model.tflite"
    for blocks in ([b"12", b"34"], [b"12", b"3456"]):
        file = TFLiteFile({"version": 3}, [FileBuffer(5, blocks.copy)])
        with pytest.raises(ValueError, match=f"5 bytes came as {sum(map(len, blocks))}"):
            file.save(target)
        assert list(tmp_path.iterdir()) == []


def test_damage_that_is_found_while_writing_leaves_no_file(modules: Any, tmp_path: Path) -> None:
    value = np.arange(5_000_000, dtype=np.float32)
    path = tmp_path / "shard"
    path.write_bytes(value.tobytes())
    source = FileSlice(InputFile(path), 0, value.nbytes, google_crc32c.value(value.tobytes()), "w")

    def body(f: Any) -> Any:
        weights = f.add(tfl.constant(TensorData.get(tensor(5_000_000), source)))
        return [f.op("add", [f.args[0], weights.results[0]], (5_000_000,))]

    file = export(modules().function("f", [tensor(5_000_000)], body).module)
    path.write_bytes(value.tobytes()[:-1] + b"!")
    with pytest.raises(ConversionError) as caught:
        file.save(tmp_path / "model.tflite")
    assert caught.value.code == "bad-checksum"
    assert list(tmp_path.iterdir()) == [path]
    path.write_bytes(value.tobytes())
    file.save(tmp_path / "model.tflite")
    assert value.tobytes() in (tmp_path / "model.tflite").read_bytes()


def test_large_form_states_positions(chain: Any) -> None:
    file = export(chain, large=1)
    content = file.to_bytes()
    assert len(content) == file.size
    model = read_model(content)
    assert "buffer_location" in [item["name"] for item in model["metadata"]]
    outside = [item for item in model["buffers"] if item["offset"]]
    assert len(outside) == 4  # three weights and the marker
    for item in outside:
        assert item["offset"] % 16 == 0
        assert item["data"] is None
        assert item["offset"] + item["size"] + 16 <= file.size
    values = np.frombuffer(content, np.float32, 3000, outside[1]["offset"])
    np.testing.assert_array_equal(values, np.arange(3000) + 1)


def test_bytes_do_not_depend_on_the_process() -> None:
    script = """
import sys, numpy as np
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.types import FunctionType
from tfconvert.exporters.tflite.model import export
from tfconvert.schema.dialects import tensor_data, tfl, types
kind = types.tensor(types.F32, (400,))
block = Block(arg_types=[kind])
value = block.args[0]
for number in range(5):
    constant = tfl.constant(tensor_data.of_array(np.full(400, number, np.float32)))
    op = tfl.build("add", [value, constant.results[0]], [kind], {"fused_activation_function": "NONE"})
    block.add_ops([constant, op])
    value = op.results[0]
block.add_op(ReturnOp.of([value]))
module = ModuleOp.of([FuncOp.of("f", FunctionType.get([kind], [kind]), Region(block))])
sys.stdout.buffer.write(export(module).to_bytes())
"""
    root = Path(__file__).resolve().parents[2]
    contents = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(contents) == 1
    assert contents.pop()[4:8] == b"TFL3"


def test_saving_replaces_the_file_and_leaves_nothing_else(chain: Any, tmp_path: Path) -> None:
    target = tmp_path / "model.tflite"
    target.write_bytes(b"old")
    file = export(chain)
    file.save(target)
    assert target.read_bytes() == file.to_bytes()
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_is_replaced(chain: Any, tmp_path: Path) -> None:
    link, other = tmp_path / "link.tflite", tmp_path / "other.tflite"
    other.write_bytes(b"other")
    link.symlink_to(other)
    export(chain).save(link)
    assert not link.is_symlink()
    assert link.stat().st_size == export(chain).size
    assert other.read_bytes() == b"other"


@pytest.mark.parametrize("place", ["missing/model.tflite", "folder", "file/model.tflite"])
def test_a_path_that_can_not_be_written(chain: Any, tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConversionError) as caught:
        export(chain).save(tmp_path / place)
    assert caught.value.code == "output-not-writable"
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}


def test_a_full_disk(chain: Any, tmp_path: Path) -> None:
    target = tmp_path / "model.tflite"
    target.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    try:
        with pytest.raises(ConversionError) as caught:
            export(chain).save(target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.code == "output-not-writable"
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_bytes() == b"old"


def test_a_full_device(chain: Any) -> None:
    with pytest.raises(ConversionError) as caught:
        export(chain).save("/dev/full")
    assert caught.value.code == "output-not-writable"


def test_all_problems_are_reported_at_once(modules: Any) -> None:
    def body(f: Any) -> Any:
        kinds = [tensor(2, element=types.ELEMENT_TYPES[10].mlir)]
        strange = f.add(Operation("tf.Foreign", [f.args[0]], [tensor(2)], location=NameLoc.get("here")))
        return [
            f.op("neg", [f.args[0]], (2,)),
            f.add(tfl.build("neg", [f.args[0]], kinds)).results[0],
            *strange.results,
        ]

    with pytest.raises(ConversionError) as caught:
        export(modules().function("f", [tensor(2)], body).module)
    codes = {diagnostic.code for diagnostic in caught.value.diagnostics}
    assert codes == {"unsupported-op", "unsupported-type", "invalid-module"}
    assert any(item.op == "tf.Foreign" and item.node == "here" for item in caught.value.diagnostics)


def test_a_call_of_a_missing_function(modules: Any) -> None:
    def body(f: Any) -> Any:
        return [f.op("while", [f.args[0]], (2,), {"cond": attrs.symbol("a"), "body": attrs.symbol("b")})]

    with pytest.raises(ConversionError) as caught:
        export(modules().function("f", [tensor(2)], body).module)
    assert caught.value.code == "invalid-module"
