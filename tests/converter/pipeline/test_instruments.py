"""Instruments: a broken module is reported with the pass, times add up, results are compared."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest

from tfconvert.converter.pipeline.instruments import CheckPasses, PrintIR, TimePasses, VerifyEach
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.converter.pipeline.stage import Instrument, Stage, apply_watched
from tfconvert.exporters.mlir import write_mlir
from tfconvert.importers.mlir import import_mlir
from tfconvert.schema.diagnostics import NOTE, ConversionError, Diagnostic, error
from tfconvert.schema.ir.builtin import ModuleOp

TEXT = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "tf.Neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %1 : tensor<2xf32>
}
"""


@dataclass(frozen=True, slots=True)
class Custom:
    """A pass that runs a function."""

    work: Callable[[ModuleOp], None]
    name: ClassVar[str] = "custom"

    def apply(self, module: ModuleOp) -> PassResult:
        """Works."""
        self.work(module)
        return NOTHING_DONE


def _swap(module: ModuleOp) -> None:
    """Puts the second op before the first, which it uses."""
    (function,) = module.ops
    block = function.regions[0].block
    first, second, _ = block.ops
    second.detach()
    block.insert_op_before(second, first)


def _fail(module: ModuleOp) -> None:
    raise error("unsupported-op", f"no {len(list(module.ops))}")


def _nothing(module: ModuleOp) -> None:
    assert list(module.ops)


def _run(work: Callable[[ModuleOp], None], *instruments: Instrument, forbids: tuple[str, ...] = ()) -> PassResult:
    stage = Stage("custom", "the test wants it", forbids=forbids)
    return apply_watched(Custom(work), stage, import_mlir(TEXT, "a.mlir"), instruments)


def test_a_pass_that_breaks_the_module_is_named_with_the_op() -> None:
    with pytest.raises(ConversionError) as caught:
        _run(_swap, VerifyEach())
    (broken,) = caught.value.diagnostics
    assert (broken.code, broken.op, broken.location) == ("broken-ir", "tf.Neg", "a.mlir:4")
    assert broken.message.startswith("pass custom broke the module: operand 0")
    assert '"tf.Neg"(%' in broken.message
    assert "report it" in broken.hint


def test_a_pass_that_leaves_what_it_should_not_is_named() -> None:
    with pytest.raises(ConversionError, match=r"pass custom broke the module: tf.Relu should be gone"):
        _run(_nothing, VerifyEach(), forbids=("tf.Re",))


def test_a_sound_pass_passes() -> None:
    seen: list[str] = []
    done = _run(lambda module: seen.append(str(module)), VerifyEach(), forbids=("tfl.",))
    assert done is NOTHING_DONE
    assert seen == [str(import_mlir(TEXT, "a.mlir"))]


def test_the_ir_is_printed_before_after_and_on_failure() -> None:
    def printed(work: Callable[[ModuleOp], None], before: tuple[str, ...], after: tuple[str, ...] | None) -> list[str]:
        stream = io.StringIO()
        try:
            _run(work, PrintIR(stream, write_mlir, before, after))
        except ConversionError as problem:
            stream.write(f"// ----- {problem.code}")
        text = stream.getvalue()
        assert text.count("func.func @main") == text.count("// ----- IR")
        return [line for line in text.splitlines() if line.startswith("// -----")]

    assert printed(_nothing, ("custom",), ()) == ["// ----- IR before custom -----"]
    assert printed(_nothing, (), ("custom",)) == ["// ----- IR after custom -----"]
    assert printed(_nothing, ("other",), ("other",)) == []
    assert printed(_fail, ("custom",), None) == [
        "// ----- IR before custom -----",
        "// ----- IR after the failure of custom -----",
        "// ----- unsupported-op",
    ]


def test_times_are_told_with_their_shares() -> None:
    timing = TimePasses([("fast", 0.001), ("slow", 0.003)])
    rows = [line.split() for line in timing.table().splitlines()]
    assert rows == [
        ["pass", "ms", "share"],
        ["fast", "1.00", "25.0%"],
        ["slow", "3.00", "75.0%"],
        ["total", "4.00", "100.0%"],
    ]
    timing = TimePasses()
    _run(_nothing, timing)
    with pytest.raises(ConversionError):
        _run(_fail, timing)
    assert [name for name, _ in timing.seconds] == ["custom", "custom"]


def test_results_before_and_after_are_compared() -> None:
    compared = []
    note = Diagnostic("not-compared", "main", severity=NOTE)

    def check(before: ModuleOp, after: ModuleOp, name: str) -> list[Diagnostic]:
        assert str(before) == str(import_mlir(TEXT, "a.mlir"))
        compared.append((name, str(before) == str(after)))
        return [note]

    checking = CheckPasses(check)
    assert _run(_swap, checking).notes == [note]
    assert _run(_nothing, checking).notes == [note]
    assert compared == [("custom", False), ("custom", True)]


def test_the_first_instrument_is_the_outermost() -> None:
    order = []

    class Watch(Instrument):
        def __init__(self, name: str) -> None:
            self.name = name

        def before(self, stage: Stage, module: ModuleOp) -> None:
            order.append(f"before {self.name}")

        def after(self, stage: Stage, module: ModuleOp) -> Sequence[Diagnostic]:
            order.append(f"after {self.name}")
            return ()

    _run(_nothing, Watch("a"), Watch("b"))
    assert order == ["before a", "before b", "after b", "after a"]
