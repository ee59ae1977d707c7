"""Files of StableHLO: portable artifacts and those of `jax.export`, what they are called, and their interfaces."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest

import tfconvert
from tfconvert.importers.source import Source
from tfconvert.importers.stablehlo.jax_export import is_export, read_export
from tfconvert.importers.stablehlo.model_file import is_stablehlo_file
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.tf_saved_model import port_names

MAGIC = b"ML\xefR"

STATIC = """
module @jit_f attributes {jax.uses_shape_polymorphism = false} {
  func.func public @main(%arg0: tensor<2x3xf32> loc("x"), %arg1: tensor<3xf32> loc("params['bias']"))
      -> (tensor<2x3xf32> {jax.result_info = "result['scores']"},
          tensor<3xf32> {jax.result_info = "result['rest'][0]"}) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2x3xf32>
    return %0, %arg1 : tensor<2x3xf32>, tensor<3xf32>
  }
}
"""

DYNAMIC = """
module @jit_f attributes {jax.uses_shape_polymorphism = true} {
  func.func public @main(%arg0: tensor<i32> {jax.global_constant = "_platform_index"}, %arg1: tensor<?x3xf32>)
      -> (tensor<?x3xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %1 = call @_wrapped_jax_export_main(%arg0, %0, %arg1) : (tensor<i32>, tensor<i32>, tensor<?x3xf32>)
        -> tensor<?x3xf32>
    return %1 : tensor<?x3xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32>, %arg1: tensor<i32>, %arg2: tensor<?x3xf32> loc("x"))
      -> tensor<?x3xf32> {
    %0 = stablehlo.add %arg2, %arg2 : tensor<?x3xf32>
    return %0 : tensor<?x3xf32>
  }
}
"""


def text_file(folder: Path, text: str) -> Path:
    path = folder / "model.mlir"
    path.write_text(text)
    return path


def main_of(path: Path, **selection: Any) -> FuncOp:
    return functions_of(Source(path, **selection).open())["main"]


def test_names_are_those_of_attributes_and_locations(tmp_path: Path) -> None:
    main = main_of(text_file(tmp_path, STATIC))
    assert port_names(main, "inputs") == ["x", "bias"]
    assert port_names(main, "outputs") == ["scores", "rest_0"]


def test_names_of_dynamic_arguments_are_those_of_the_function_proper(tmp_path: Path) -> None:
    main = main_of(text_file(tmp_path, DYNAMIC))
    assert port_names(main, "inputs") == ["x"]
    first = main.body.block.first_op
    assert first is not None
    assert first.name == "stablehlo.constant"


def test_sizes_are_pinned_and_names_replaced(tmp_path: Path) -> None:
    path = text_file(tmp_path, DYNAMIC)
    main = main_of(path, batch=4, rename={"x": "image"})
    assert port_names(main, "inputs") == ["image"]
    assert str(main.function_type.inputs[0]) == "tensor<4x3xf32>"
    assert str(main_of(path, input_shapes={"x": [5, -1]}).function_type.inputs[0]) == "tensor<5x3xf32>"


@pytest.mark.parametrize(
    ("selection", "code"),
    [
        ({"input_shapes": {"y": [1]}}, "unknown-input"),
        ({"input_shapes": {"x": [1, 4]}}, "shape-mismatch"),
        ({"batch": 0}, "wrong-option"),
        ({"rename": {"y": "z"}}, "wrong-option"),
        ({"rename": {"x": "a,b"}}, "wrong-option"),
        ({"outputs": []}, "wrong-option"),
        ({"tags": ["x"]}, "wrong-option"),
        ({"signatures": ["x"]}, "unknown-signature"),
    ],
)
def test_what_the_function_does_not_have_is_refused(selection: dict[str, Any], code: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        main_of(text_file(tmp_path, DYNAMIC), **selection)
    assert caught.value.diagnostics[0].code == code


def test_texts_of_other_origin_stay_as_they_are(tmp_path: Path) -> None:
    text = STATIC.replace("jax.uses_shape_polymorphism = false", "").replace("jax.result_info", "my.info")
    assert not main_of(text_file(tmp_path, text)).attributes


CUTTABLE = """
module @jit_f attributes {jax.uses_shape_polymorphism = true} {
  func.func public @main(%arg0: tensor<?x3xf32>) -> (tensor<?x3xf32> {jax.result_info = "result['scores']"}) {
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %1 = call @_wrapped_jax_export_main(%0, %arg0) : (tensor<i32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    return %1 : tensor<?x3xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32>, %arg1: tensor<?x3xf32> loc("x"))
      -> tensor<?x3xf32> {
    %0 = stablehlo.multiply %arg1, %arg1 : tensor<?x3xf32> loc("jit(f)/square")
    %c = stablehlo.constant dense<3> : tensor<1xi32>
    %1 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.multiply %1, %c : tensor<1xi32>
    %3 = stablehlo.dynamic_reshape %0, %2 : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32> loc("jit(f)/flat")
    %4 = stablehlo.exponential %3 : tensor<?xf32>
    %5 = stablehlo.concatenate %1, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %6 = stablehlo.dynamic_reshape %4, %5 : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x3xf32>
    return %6 : tensor<?x3xf32>
  }
}
"""


@pytest.mark.parametrize("settings", [{}, {"batch": 2}, {"input_shapes": {"x": [2, 3]}}])
def test_a_cut_has_the_sizes_of_its_new_input(settings: dict[str, Any], tmp_path: Path) -> None:
    path = text_file(tmp_path, CUTTABLE)
    rename = {"jit(f)/square": "squares", "scores": "powers"}
    model = tfconvert.convert(path, inputs=["jit(f)/square"], rename=rename, **settings)
    assert [(each.name, each.shape) for each in model.inputs] == [("squares", (2 if settings else None, 3))]
    assert [each.name for each in model.outputs] == ["powers"]
    values = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    np.testing.assert_allclose(model(values), np.exp(values), rtol=1e-6)


def test_a_new_input_has_the_shape_that_is_wanted(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"inputs": ["jit(f)/square"], "rename": {"jit(f)/square": "squares"}}
    model = tfconvert.convert(text_file(tmp_path, CUTTABLE), input_shapes={"squares": [2, -1]}, **settings)
    assert [(each.name, each.shape) for each in (*model.inputs, *model.outputs)] == [
        ("squares", (2, 3)),
        ("scores", (2, 3)),
    ]


def test_a_size_that_no_new_input_has_must_be_fixed(tmp_path: Path) -> None:
    path = text_file(tmp_path, CUTTABLE)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(path, inputs=["jit(f)/flat"])
    assert [(each.code, each.hint) for each in caught.value.diagnostics] == [
        ("unfed-input", "fix it: batch=1 (--batch 1)")
    ]
    model = tfconvert.convert(path, inputs=["jit(f)/flat"], batch=2)
    assert model.inputs[0].shape == (6,)
    np.testing.assert_allclose(model(np.zeros(6, np.float32)), np.ones((2, 3)))


def test_an_input_that_a_cut_needs_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="needs the input 'x'"):
        tfconvert.convert(text_file(tmp_path, CUTTABLE), inputs=["jit(f)/flat"], outputs=["jit(f)/square"])


def test_names_of_a_cut_are_replaced(tmp_path: Path) -> None:
    path, names = text_file(tmp_path, CUTTABLE), {"x": "image", "jit(f)/square": "squares"}
    model = tfconvert.convert(path, outputs=["jit(f)/square"], rename=names)
    assert (model.inputs[0].name, model.outputs[0].name) == ("image", "squares")
    with pytest.raises(ConversionError, match=r"rename: there is no input or output scores"):
        tfconvert.convert(path, outputs=["jit(f)/square"], rename={"scores": "squares"})


class Tree:
    """A tree of arguments: a leaf, a list, or a dictionary."""

    def __init__(self, kind: int = 0, children: Sequence[Tree] = (), keys: Sequence[str] = ()) -> None:
        self.kind, self.children, self.keys = kind, children, keys


def _vector(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _tree(builder: flatbuffers.Builder, tree: Tree) -> int:
    children = _vector(builder, [_tree(builder, child) for child in tree.children])
    keys = _vector(builder, [builder.CreateString(key) for key in tree.keys])
    builder.StartObject(5)
    builder.PrependUint8Slot(0, tree.kind, 255)
    builder.PrependUOffsetTRelativeSlot(1, children, 0)
    builder.PrependUOffsetTRelativeSlot(2, keys, 0)
    return int(builder.EndObject())


def export_file(
    module: bytes,
    arguments: Tree,
    results: Tree,
    kept: Sequence[int],
    platforms: Sequence[str] = ("cpu",),
    devices: int = 1,
) -> bytes:
    builder = flatbuffers.Builder()
    trees = [_tree(builder, each) for each in (arguments, results)]
    names = _vector(builder, [builder.CreateString(name) for name in platforms])
    blob = builder.CreateByteVector(module)
    builder.StartVector(2, len(kept), 2)
    for index in reversed(kept):
        builder.PrependUint16(index)
    numbers = builder.EndVector()
    builder.StartObject(26)
    for slot, offset in ((2, trees[0]), (4, trees[1]), (9, names), (13, blob), (15, numbers)):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    builder.PrependUint32Slot(18, devices, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


LEAF = Tree()
# f(x, {"b": ..., "a": [..., ...]}, scale=...)
ARGUMENTS = Tree(2, [Tree(2, [LEAF, Tree(4, [Tree(3, [LEAF, LEAF]), LEAF], ["a", "b"])]), Tree(4, [LEAF], ["scale"])])
RESULTS = Tree(2, [LEAF, Tree(1), Tree(4, [LEAF], ["y"])])


def test_paths_are_those_of_the_trees() -> None:
    data = memoryview(export_file(MAGIC + b"...", ARGUMENTS, RESULTS, [0, 2, 3, 4], ["tpu", "cpu"]))
    assert is_export(data)
    exported = read_export(data, "f.bin")
    assert exported.arguments == [("arg0",), ("arg1", "a", 1), ("arg1", "b"), ("scale",)]
    assert exported.results == [("result", 0), ("result", 2, "y")]
    assert exported.platforms == ["tpu", "cpu"]
    assert bytes(exported.module) == MAGIC + b"..."


def code_of(data: bytes) -> str:
    """Returns the code of the error about a file, empty if there was no error."""
    try:
        if is_export(memoryview(data)):
            read_export(memoryview(data), "f.bin")
    except ConversionError as problem:
        return problem.diagnostics[0].code
    return ""


def test_damaged_files_are_refused() -> None:
    whole = export_file(MAGIC + b"...", ARGUMENTS, RESULTS, [0, 2])
    damaged = [
        whole[:position] + struct.pack("<H", value) + whole[position + 2 :]
        for position in range(0, len(whole) - 1, 2)
        for value in (0, 0x7FFF, 0xFFFF)
    ]
    codes = {code_of(data) for data in (*damaged, *(whole[:size] for size in range(len(whole))))}
    assert codes == {"", "malformed-artifact", "unsupported-artifact"}


@pytest.mark.parametrize(
    ("changed", "code"),
    [({"kept": [9]}, "malformed-artifact"), ({"devices": 8}, "unsupported-artifact")],
    ids=["an argument too many", "several devices"],
)
def test_files_that_can_not_be_imported(changed: dict[str, Any], code: str) -> None:
    given: dict[str, Any] = {"arguments": ARGUMENTS, "results": RESULTS, "kept": [0], **changed}
    with pytest.raises(ConversionError) as caught:
        read_export(memoryview(export_file(MAGIC, **given)), "f.bin")
    assert caught.value.diagnostics[0].code == code
    assert caught.value.diagnostics[0].location == "f.bin"


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        (MAGIC + b"\x0dMLIR23.0.0git\0", True),
        (export_file(MAGIC, LEAF, LEAF, []), True),
        (export_file(b"no artifact", LEAF, LEAF, []), False),
        (b"", False),
        (b"\x04\0\0\0" * 9, False),
        (b"PK\x03\x04" + bytes(40), False),
    ],
    ids=["bytecode", "export", "another table", "empty", "numbers", "archive"],
)
def test_files_are_known_by_their_contents(contents: bytes, expected: bool, tmp_path: Path) -> None:
    path = tmp_path / "model.anything"
    path.write_bytes(contents)
    assert is_stablehlo_file(path) is expected


def test_plain_bytecode_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_bytes(MAGIC + b"\x0dMLIR23.0.0git\0")
    with pytest.raises(ConversionError) as caught:
        Source(path).open()
    assert caught.value.diagnostics[0].code in ("unsupported-artifact", "malformed-artifact")


def test_an_export_is_imported_with_its_names(tmp_path: Path) -> None:
    stablehlo = pytest.importorskip("jaxlib.mlir.dialects.stablehlo")
    text = (
        STATIC.replace(' loc("x")', "").replace(""" loc("params['bias']")""", "").replace("jax.result_info", "my.info")
    )
    artifact = stablehlo.serialize_portable_artifact_str(text, stablehlo.get_minimum_version())
    path = tmp_path / "f.bin"
    results = Tree(2, [LEAF, LEAF])
    path.write_bytes(export_file(artifact, ARGUMENTS, results, [0, 2]))
    main = main_of(path)
    assert port_names(main, "inputs") == ["arg0", "a_1"]
    assert port_names(main, "outputs") == ["result_0", "result_1"]
    assert not Source(path).can_be_cut
