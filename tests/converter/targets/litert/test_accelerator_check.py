"""Checks of whole modules against the tables of accelerators: how a graph is split, and limits of files."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import pytest

from tests.importers.tflite.written_files import Tree, build_file
from tfconvert.converter.targets.litert.accelerator_check import Acceptance, check
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.dialects import tensor_data, tfl, types
from tfconvert.schema.dialects.func import FuncOp, ReturnOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.accelerators.acceptance import LOAD_FAILS

KIND = types.tensor(types.F32, (1, 3, 4, 6))


def checked(
    build: Callable[[Block, Value], list[Value]], accelerator: str = "gpu", kind: Attribute = KIND
) -> Acceptance:
    block = Block(arg_types=[kind])
    results = build(block, block.args[0])
    block.add_op(ReturnOp.of(results))
    function = FuncOp.of("main", FunctionType.get([kind], [each.type for each in results]), Region(block))
    return check(ModuleOp.of([function]), accelerator)


def chain(refused: Collection[int]) -> Callable[[Block, Value], list[Value]]:
    def build(block: Block, x: Value) -> list[Value]:
        for index in range(9):
            op = tfl.build("log_softmax" if index in refused else "tanh", [x], [KIND])
            block.add_op(op)
            x = op.results[0]
        return [x]

    return build


@pytest.mark.parametrize(
    ("refused", "taken"), [((), 9), ((4,), 4), ((2,), 6), ((2, 6), 3), ((0,), 8), ((1, 3, 5, 7), 1)], ids=str
)
def test_the_gpu_takes_the_largest_part(refused: Collection[int], taken: int) -> None:
    found = checked(chain(refused))
    assert (found.taken, len(found.obstacles)) == (taken, len(refused))
    assert found.is_whole is not bool(refused)


def test_an_obstacle_says_what_it_splits_off() -> None:
    (obstacle,) = checked(chain((4,))).obstacles
    assert obstacle.splits_off == 4
    assert obstacle.text == "LOG_SOFTMAX is not supported: Operation is not supported; it splits off 4 operators"
    assert checked(chain((4,))).headline == "4 of 9 operators on the GPU"


def test_what_stays_on_the_cpu_is_not_wrong() -> None:
    def build(block: Block, x: Value) -> list[Value]:
        names = ["tanh", "log_softmax", "tanh", "square", "softmax"]
        kinds = [KIND] * 5
        for name, kind in zip(names, kinds, strict=True):
            options = {"beta": 0.5} if name == "softmax" else {}
            op = tfl.build(name, [x], [kind], options)
            block.add_op(op)
            x = op.results[0]
        counts = tensor_data.of_array(np.array([[1, 0], [0, 0], [0, 0], [0, 0]], np.int32))
        block.add_op(pads := tfl.constant(counts))
        block.add_op(pad := tfl.build("pad", [x, pads.results[0]], [types.tensor(types.F32, (2, 3, 4, 6))]))
        return [pad.results[0]]

    found = checked(build)
    assert [(each.operator, each.is_left) for each in found.obstacles] == [
        ("LOG_SOFTMAX", False),
        ("SOFTMAX", False),
        ("PAD", True),
    ]
    assert found.headline == "2 of 6 operators on the GPU"
    assert found.obstacles[-1].text == "PAD runs on the CPU as its neighbours do; else it may be computed wrongly: " + (
        found.obstacles[-1].reason
    )


def test_microcontrollers_take_all_or_nothing() -> None:
    def build(block: Block, x: Value) -> list[Value]:
        for name in ("tanh", "gelu"):
            op = tfl.build(name, [x], [KIND])
            block.add_op(op)
            x = op.results[0]
        return [x]

    found = checked(build, "micro")
    assert (found.taken, [each.operator for each in found.obstacles]) == (0, ["GELU"])
    assert checked(chain(()), "micro").headline == "whole on microcontrollers"


def test_the_gpu_needs_fixed_sizes() -> None:
    found = checked(chain(()), kind=types.tensor(types.F32, (-1, 3, 4, 6)))
    assert found.is_whole
    assert found.headline == "whole on the GPU, once its dynamic sizes are fixed"


def test_a_tensor_that_is_two_outputs_is_wrong() -> None:
    def build(block: Block, x: Value) -> list[Value]:
        op = tfl.build("tanh", [x], [KIND])
        block.add_op(op)
        return [op.results[0], op.results[0]]

    (obstacle,) = checked(build).obstacles
    assert obstacle.reason == "one tensor is two outputs"


def test_an_output_that_is_an_input_is_wrong() -> None:
    (obstacle,) = checked(lambda _, x: [x]).obstacles
    assert obstacle.text == "the file may be computed wrongly: an output is an input"


def test_a_scalar_without_a_stated_rank_has_a_known_size() -> None:
    tensors: list[Tree] = [
        {"shape": (1, 8, 8, 4)},
        {"shape": (1, 8, 8, 4)},
        {"shape": (), "type": "FLOAT16", "buffer": 1},
        {"shape": ()},
        {"shape": ()},
    ]
    operators = [
        {"opcode_index": 0, "inputs": (2,), "outputs": (3,)},
        {"opcode_index": 1, "inputs": (3,), "outputs": (4,)},
        {"opcode_index": 2, "inputs": (0, 4), "outputs": (1,), "builtin_options": ("MulOptions", {})},
    ]
    content = build_file(tensors, operators, ["DEQUANTIZE", "NEG", "MUL"], buffers=[b"\0\x38"])
    assert LOAD_FAILS not in [each.outcome for each in check(import_tflite(content), "gpu").obstacles]
