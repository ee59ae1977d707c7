"""Models that run on samples: loops, branches, signatures, crashes, and cleanup."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.run_text import parse
from tfconvert.converter.process.child_process import Child
from tfconvert.converter.targets.litert.passes.calibrate import Calibrate
from tfconvert.converter.targets.litert.quantize.observers import Range
from tfconvert.converter.targets.litert.quantize.parameters import range_of
from tfconvert.exporters.tflite.model import TFLiteFile
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.quantization import Quantize

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(autouse=True)
def left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails if a test leaves temporary files, or a process."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **options))
        return started[-1]

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start)
    yield
    assert not list(folder.iterdir())
    assert all(process.returncode is not None for process in started)


def _seen(module: ModuleOp, name: str) -> Mapping[str, Range | None]:
    """Returns the ranges of a function's arguments by number, and of results by the names of their ops."""
    (function,) = (op for op in module.ops if isinstance(op, FuncOp) and op.sym_name == name)
    found = {str(number): range_of(argument) for number, argument in enumerate(function.body.block.args)}
    return found | {op.name: range_of(op.results[0]) for op in function.body.block.ops if op.results}


def _run(text: str, samples: Any, **settings: Any) -> ModuleOp:
    module = parse(text)
    Calibrate(Quantize(**{"mode": "int16", "samples": samples, **settings})).apply(module)
    return module


def _range(*values: Any) -> Range:
    numbers = np.concatenate([np.ravel(value) for value in values]).astype(np.float32)
    return Range(float(numbers.min()), float(numbers.max()))


def _equal(found: Range | None, expected: Range) -> None:
    assert found is not None
    np.testing.assert_allclose(found, expected, rtol=1e-6)


X = "tensor<?x2xf32>"
STEP = f"""
    func.func private @small(%n: tensor<f32>, %x: {X}) -> tensor<i1> {{
      %0 = "tfl.pseudo_const"() <{{value = dense<COUNT> : tensor<f32>}}> : () -> tensor<f32>
      %1 = "tfl.less"(%n, %0) : (tensor<f32>, tensor<f32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }}
    func.func private @step(%n: tensor<f32>, %x: {X}) -> (tensor<f32>, {X}) {{
      %0 = "tfl.pseudo_const"() <{{value = dense<1.0> : tensor<f32>}}> : () -> tensor<f32>
      %1 = "tfl.add"(%n, %0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %2 = "tfl.pseudo_const"() <{{value = dense<-1.5> : tensor<f32>}}> : () -> tensor<f32>
      %3 = "tfl.mul"(%x, %2) : ({X}, tensor<f32>) -> {X}
      %4 = BODY
      func.return %1, %4 : tensor<f32>, {X}
    }}
"""
LOOP = f"""
      %z = "tfl.pseudo_const"() <{{value = dense<0.0> : tensor<f32>}}> : () -> tensor<f32>
      %a, %b = "tfl.while"(%z, %x) <{{cond = @small, body = @step}}> : (tensor<f32>, {X}) -> (tensor<f32>, {X})
"""
RELU = f'"tfl.relu"(%3) : ({X}) -> {X}'


def _loop(count: float, main: str = "", body: str = RELU, others: str = "") -> str:
    main = (
        main
        or f"""
    func.func @main(%x: {X}) -> {X} {{
      {LOOP}
      func.return %b : {X}
    }}
    """
    )
    return main + STEP.replace("COUNT", f"{count:.1f}").replace("BODY", body) + others


def _steps(x: Array, count: int) -> tuple[list[Array], list[Array]]:
    """Returns what a loop with an `abs` at its end takes and multiplies in each iteration."""
    taken, products = [], []
    for _ in range(count):
        taken.append(x)
        products.append(x * np.float32(-1.5))
        x = np.abs(products[-1])
    return taken, products


ABS = f'"tfl.abs"(%3) : ({X}) -> {X}'
SAMPLES = [np.array(rows, np.float32) for rows in ([[-1, 0.5]], [[2, -0.25], [0, 1]], [[0.125, 0.25]])]


def test_all_iterations_of_a_loop_are_seen() -> None:
    module = _run(_loop(4, body=ABS), [[value] for value in SAMPLES])
    taken, products = zip(*(_steps(value, 4) for value in SAMPLES), strict=True)
    body = _seen(module, "step")
    _equal(body["0"], Range(0.0, 3.0))
    _equal(body["1"], _range(*chain(*taken)))
    _equal(body["tfl.mul"], _range(*chain(*products)))
    _equal(body["tfl.add"], Range(1.0, 4.0))
    _equal(body["tfl.abs"], _range(*(np.abs(each) for each in chain(*products))))


def test_a_loop_that_never_runs_shows_nothing() -> None:
    assert not any(_seen(_run(_loop(0, body=ABS), [[SAMPLES[0]]]), "step").values())


NESTED = f"""
    func.func @main(%x: {X}) -> {X} {{
      %0 = "tfl.pseudo_const"() <{{value = dense<0.0> : tensor<f32>}}> : () -> tensor<f32>
      %1, %2 = "tfl.while"(%0, %x) <{{cond = @few, body = @outer}}> : (tensor<f32>, {X}) -> (tensor<f32>, {X})
      func.return %2 : {X}
    }}
    func.func private @few(%n: tensor<f32>, %x: {X}) -> tensor<i1> {{
      %0 = "tfl.pseudo_const"() <{{value = dense<2.0> : tensor<f32>}}> : () -> tensor<f32>
      %1 = "tfl.less"(%n, %0) : (tensor<f32>, tensor<f32>) -> tensor<i1>
      func.return %1 : tensor<i1>
    }}
    func.func private @outer(%n: tensor<f32>, %x: {X}) -> (tensor<f32>, {X}) {{
      %0 = "tfl.pseudo_const"() <{{value = dense<1.0> : tensor<f32>}}> : () -> tensor<f32>
      %1 = "tfl.add"(%n, %0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      {LOOP}
      func.return %1, %b : tensor<f32>, {X}
    }}
"""


def test_a_loop_in_a_loop_is_seen() -> None:
    module = _run(_loop(3, NESTED, ABS), [[value] for value in SAMPLES])
    taken, products = zip(*(_steps(value, 6) for value in SAMPLES), strict=True)
    _equal(_seen(module, "step")["1"], _range(*chain(*taken)))
    _equal(_seen(module, "step")["tfl.mul"], _range(*chain(*products)))
    _equal(_seen(module, "outer")["tfl.add"], Range(1.0, 2.0))


BRANCH = f"""
    func.func @main(%x: {X}, %p: tensor<i1>) -> {X} {{
      %0 = "tfl.if"(%p, %x) <{{then_branch = @then, else_branch = ELSE}}> : (tensor<i1>, {X}) -> {X}
      func.return %0 : {X}
    }}
    func.func private @then(%x: {X}) -> {X} {{
      {LOOP}
      %0 = "tfl.relu"(%b) : ({X}) -> {X}
      func.return %0 : {X}
    }}
    func.func private @else(%x: {X}) -> {X} {{
      %0 = "tfl.abs"(%x) : ({X}) -> {X}
      func.return %0 : {X}
    }}
"""


def test_branches_are_seen_when_they_are_taken() -> None:
    samples = [[value, number == 1] for number, value in enumerate(SAMPLES)]
    module = _run(_loop(2, BRANCH.replace("ELSE", "@else"), ABS), samples)
    taken, products = _steps(SAMPLES[1], 2)
    _equal(_seen(module, "step")["1"], _range(*taken))
    _equal(_seen(module, "step")["tfl.mul"], _range(*products))
    _equal(_seen(module, "then")["tfl.relu"], _range(np.abs(products[-1])))
    _equal(_seen(module, "else")["0"], _range(SAMPLES[0], SAMPLES[2]))
    _equal(_seen(module, "else")["tfl.abs"], _range(np.abs(SAMPLES[0]), np.abs(SAMPLES[2])))


def test_a_branch_that_is_not_taken_shows_nothing() -> None:
    module = _run(_loop(2, BRANCH.replace("ELSE", "@else"), ABS), [[SAMPLES[0], False]])
    for name in ("then", "step"):
        assert not any(_seen(module, name).values())
    assert _seen(module, "else")["0"] is not None


def test_one_function_may_be_both_branches() -> None:
    module = _run(_loop(2, BRANCH.replace("ELSE", "@then"), ABS), [[SAMPLES[0], False], [SAMPLES[1], True]])
    values = [_steps(value, 2)[0] for value in SAMPLES[:2]]
    _equal(_seen(module, "step")["1"], _range(*chain(*values)))


def test_any_batch_is_seen() -> None:
    text = f"""
    func.func @main(%x: {X}, %n: tensor<?xi32>) -> {X} {{
      %0 = "tfl.abs"(%x) : ({X}) -> {X}
      func.return %0 : {X}
    }}
    """
    samples = [[np.full((count, 2), count), np.zeros(count, np.int32)] for count in (3, 1, 0, 5, 2)]
    assert _seen(_run(text, samples), "main")["0"] == Range(1.0, 5.0)


ABS_OF_4 = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "tfl.abs"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }
"""


@pytest.mark.parametrize("ranges", ["mse", "percentile"])
@pytest.mark.parametrize("mode", ["int8", "int16"])
def test_ranges_may_leave_numbers_out(ranges: str, mode: str) -> None:
    value = np.random.default_rng(0).normal(0, 1, (100_000, 4)).astype(np.float32)
    value[7, 2] = 40
    text = ABS_OF_4.replace("tensor<4xf32>", "tensor<100000x4xf32>")
    found = _seen(_run(text, [[value], [value]], ranges=ranges, mode=mode), "main")["0"]
    assert found is not None
    # With 16 bits, steps are so fine that nothing is gained by cutting off.
    assert (found.high < 30) == (ranges == "percentile" or mode == "int8")


def test_progress_is_reported() -> None:
    told: list[tuple[int, int | None]] = []
    samples = [[np.zeros(4)]] * 3

    def progress(*numbers: Any) -> None:
        told.append(numbers)

    _run(ABS_OF_4, samples, progress=progress)
    _run(ABS_OF_4, iter(samples), progress=progress)
    assert told == [(1, 3), (2, 3), (3, 3), (1, None), (2, None), (3, None)]


def test_a_crash_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Child.call
    calls = []

    def killed(child: Any, *args: Any) -> Any:
        calls.append(args)
        if len(calls) == 3:
            os.kill(child._process.pid, signal.SIGSEGV)
        return call(child, *args)

    monkeypatch.setattr(Child, "call", killed)
    with pytest.raises(ConversionError, match=r"can't be run on sample 1: LiteRT has crashed \(status -11\)") as caught:
        _run(ABS_OF_4, [[np.zeros(4)]] * 3)
    assert caught.value.code == "calibration-failed"


def test_a_model_that_litert_refuses_is_an_error() -> None:
    text = ABS_OF_4.replace(
        '"tfl.abs"(%x)', '"tfl.custom"(%x) <{custom_code = "Mine", custom_option = #tfl<const_bytes : "0x00">}>'
    )
    text = text.replace("func.return %0", '%1 = "tfl.abs"(%0) : (tensor<4xf32>) -> tensor<4xf32>\n func.return %1')
    with pytest.raises(ConversionError, match=r"the model can't be run on sample 0: .*Mine") as caught:
        _run(text, [[np.zeros(4)]])
    assert caught.value.code == "calibration-failed"
    # The samples are not to blame.
    assert "only your app's runtime has this operator" in caught.value.diagnostics[0].hint


def test_a_file_that_litert_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TFLiteFile, "save", lambda self, path: Path(path).write_bytes(b"no model"))
    with pytest.raises(ConversionError, match="the model can't be loaded") as caught:
        _run(ABS_OF_4, [[np.zeros(4)]])
    assert caught.value.code == "calibration-failed"


def test_a_sample_that_litert_refuses_is_an_error() -> None:
    text = f"""
    func.func @main(%x: {X}, %y: {X}) -> {X} {{
      %0 = "tfl.mul"(%x, %y) : ({X}, {X}) -> {X}
      func.return %0 : {X}
    }}
    """
    samples = [[np.ones((2, 2)), np.ones((2, 2))], [np.ones((2, 2)), np.ones((3, 2))]]
    with pytest.raises(ConversionError, match="the model can't be run on sample 1: ") as caught:
        _run(text, samples)
    assert caught.value.code == "calibration-failed"


@pytest.mark.parametrize("wrong", [[np.ones(3)], [np.full(4, np.nan)], KeyboardInterrupt, LookupError])
def test_wrong_samples_leave_nothing_behind(wrong: Any) -> None:
    def generate() -> Any:
        yield [np.ones(4)]
        if isinstance(wrong, type):
            raise wrong("the user's")
        yield wrong

    with pytest.raises(wrong if isinstance(wrong, type) else ConversionError):
        _run(ABS_OF_4, generate)
