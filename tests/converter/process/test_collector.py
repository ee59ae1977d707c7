"""The collector is off during conversions only, on for the user's samples, and afterwards as it was."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tfconvert
from tfconvert.converter.process.collector import collected, paused
from tfconvert.converter.targets.litert.passes.legalize import Legalize
from tfconvert.schema.ir.operation import Operation


@pytest.fixture(params=[True, False], ids=["on", "off"])
def before(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Turns the collector on or off for a test."""
    was_enabled = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if was_enabled else gc.disable)()


def test_a_conversion_pauses_it(before: bool, digits_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    run = Legalize.apply

    def watched(*arguments: object) -> object:
        seen.append(gc.isenabled())
        return run(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Legalize, "apply", watched)
    tfconvert.convert(digits_model)
    assert (set(seen), gc.isenabled()) == ({False}, before)


@pytest.mark.parametrize("problem", [KeyError("gone"), MemoryError(), KeyboardInterrupt()], ids=repr)
def test_errors_end_the_pause(
    before: bool, digits_model: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    def fail(*arguments: object) -> None:
        raise problem

    monkeypatch.setattr(Legalize, "apply", fail)
    with pytest.raises((KeyError, tfconvert.ConversionError, KeyboardInterrupt)):
        tfconvert.convert(digits_model)
    assert gc.isenabled() == before


def test_samples_are_made_as_outside(before: bool, digits_model: Path) -> None:
    seen = []

    def samples() -> Iterator[list[np.ndarray]]:
        for _ in range(3):
            seen.append(gc.isenabled())
            yield [np.zeros((1, 8, 8, 1), np.float32)]

    tfconvert.convert(digits_model, quantize="int8", samples=samples)
    assert set(seen) == {before}
    assert gc.isenabled() == before


def test_items_and_errors_of_others_pass() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise KeyError("gone")

    with paused():
        found = collected(items())
        assert next(found) == 1
        assert not gc.isenabled()
        with pytest.raises(KeyError):
            next(found)
        assert not gc.isenabled()
    assert list(collected(iter([1, 2]))) == [1, 2]


def test_other_threads_leave_it_as_it_is(before: bool) -> None:
    seen = []

    def work() -> None:
        with paused():
            seen.append(gc.isenabled())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [*seen, gc.isenabled()] == [before, before]


def _ops() -> int:
    return sum(isinstance(each, Operation) for each in gc.get_objects())


@pytest.mark.parametrize("before", [False], indirect=True)
def test_the_first_collection_frees_the_ir(before: bool, digits_model: Path) -> None:
    tfconvert.convert(digits_model)
    gc.collect()
    others = _ops()
    model = tfconvert.convert(digits_model)
    assert _ops() > others
    gc.collect(0)
    assert _ops() == others
    assert len(model) > 0
