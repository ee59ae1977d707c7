"""Random programs on lists compute the same once the lists are tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tfconvert.converter.passes.lower_tensor_lists import LowerTensorLists
from tfconvert.converter.validation import pass_check
from tfconvert.ops.verification import verify
from tfconvert.schema.dialects.parsing import IRParser

LIST, ROW, SHAPE = "tensor<!tf_type.variant>", "tensor<2xf32>", "tensor<1xi32>"
MAX_LENGTH = 6


class Program:
    """Text that creates lists, and how long each is.

    Attributes:
        lines: The ops.
        lengths: The lists' lengths; list `n` is `%ln`.
    """

    def __init__(self) -> None:
        self.lines = [f'%shape = "tf.Const"() <{{value = dense<2> : {SHAPE}}}> : () -> {SHAPE}']
        self.lengths: list[int] = []

    def number(self, value: int) -> str:
        """Adds a constant and returns its name."""
        name = f"%c{len(self.lines)}"
        self.lines.append(f'{name} = "tf.Const"() <{{value = dense<{value}> : tensor<i32>}}> : () -> tensor<i32>')
        return name

    def make(self, op: str, operands: str, kinds: str, length: int, rest: str = "", attributes: str = "") -> None:
        """Adds an op that creates a list."""
        name = f"%l{len(self.lengths)}"
        self.lengths.append(length)
        results = f"({LIST}, {ROW})" if rest else LIST
        names = f"{name}, {rest}" if rest else name
        self.lines.append(f'{names} = "tf.{op}"({operands}) <{{{attributes}}}> : ({kinds}) -> {results}')

    def step(self, kind: int, which: int, amount: int) -> None:
        """Adds one op; what it does to which list is drawn."""
        which %= len(self.lengths)
        source, length = f"%l{which}", self.lengths[which]
        STEPS[kind % len(STEPS)](self, source, length, amount)

    def module(self) -> str:
        """Returns a function that returns all that the lists hold."""
        results = []
        for index, length in enumerate(self.lengths):
            kind = f"tensor<{length}x2xf32>"
            self.lines.append(
                f'%r{index} = "tf.TensorListStack"(%l{index}, %shape) <{{num_elements = -1 : i64}}>'
                f" : ({LIST}, {SHAPE}) -> {kind}"
            )
            results.append((f"%r{index}", kind))
        names, kinds = (", ".join(part) for part in zip(*results, strict=True))
        body = "\n  ".join(self.lines)
        head = f"func.func @main(%x: tensor<3x2xf32>, %y: {ROW}) -> ({kinds})"
        return f"{head} {{\n  {body}\n  func.return {names} : {kinds}\n}}"


def _set(program: Program, source: str, length: int, amount: int) -> None:
    grows = amount % 2 == 1
    if grows or length:
        index = amount % MAX_LENGTH if grows else amount % length
        place = program.number(index)
        program.make(
            "TensorListSetItem",
            f"{source}, {place}, %y",
            f"{LIST}, tensor<i32>, {ROW}",
            max(length, index + 1) if grows else length,
            attributes=f"resize_if_index_out_of_bounds = {str(grows).lower()}",
        )


def _pop(program: Program, source: str, length: int, amount: int) -> None:
    if length:
        program.make(
            "TensorListPopBack", f"{source}, %shape", f"{LIST}, {SHAPE}", length - 1, f"%p{len(program.lines)}"
        )


def _resize(program: Program, source: str, length: int, amount: int) -> None:
    size = program.number(amount % MAX_LENGTH)
    program.make("TensorListResize", f"{source}, {size}", f"{LIST}, tensor<i32>", amount % MAX_LENGTH)


def _join(program: Program, source: str, length: int, amount: int) -> None:
    other = amount % len(program.lengths)
    if length + program.lengths[other] <= MAX_LENGTH:
        program.make(
            "TensorListConcatLists",
            f"{source}, %l{other}",
            f"{LIST}, {LIST}",
            length + program.lengths[other],
            attributes="element_dtype = f32",
        )


def _reserve(program: Program, source: str, length: int, amount: int) -> None:
    size = program.number(amount % MAX_LENGTH)
    program.make(
        "TensorListReserve",
        f"%shape, {size}",
        f"{SHAPE}, tensor<i32>",
        amount % MAX_LENGTH,
        attributes="element_dtype = f32",
    )


def _scatter(program: Program, source: str, length: int, amount: int) -> None:
    if length >= 3:
        name = f"%o{len(program.lines)}"
        order = [(amount + step) % length for step in range(3)]
        program.lines.append(
            f'{name} = "tf.Const"() <{{value = dense<{order}> : tensor<3xi32>}}> : () -> tensor<3xi32>'
        )
        program.make(
            "TensorListScatterIntoExistingList",
            f"{source}, %x, {name}",
            f"{LIST}, tensor<3x2xf32>, tensor<3xi32>",
            length,
        )


def _push(program: Program, source: str, length: int, amount: int) -> None:
    program.make("TensorListPushBack", f"{source}, %y", f"{LIST}, {ROW}", length + 1)


def _of_tensor(program: Program, source: str, length: int, amount: int) -> None:
    program.make("TensorListFromTensor", "%x, %shape", f"tensor<3x2xf32>, {SHAPE}", 3)


STEPS: Sequence[Callable[[Program, str, int, int], None]] = (
    _set,
    _push,
    _pop,
    _resize,
    _join,
    _reserve,
    _scatter,
    _of_tensor,
)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9), st.integers(0, 11)), max_size=8))
def test_programs(steps: list[tuple[int, int, int]]) -> None:
    program = Program()
    _of_tensor(program, "", 0, 0)
    for step in steps:
        program.step(*step)
    module = IRParser(program.module()).parse_module()
    verify(module)
    before = module.clone()
    LowerTensorLists().apply(module)
    verify(module)
    assert not any("TensorList" in op.name for op in module.walk())
    assert pass_check.check(before, module, "lower-tensor-lists") == []
