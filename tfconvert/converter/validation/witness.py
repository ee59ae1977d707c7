"""Witnesses: what computes the results that a converted file has to have.

The most independent one at hand is chosen, so that a fault of the importer is found, too: a model in memory runs
itself, a `.tflite` file runs in LiteRT, and TensorFlow runs a model of its formats in another process if the user asks
for it. For all others it is the reference executor, which runs the imported model.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from tfconvert.converter.ir.interface import Interface
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.runtime_process import LiteRTProcess
from tfconvert.converter.validation.inputs import Answer, ReferenceRun, Refused
from tfconvert.converter.validation.tensorflow_process import TensorFlow
from tfconvert.converter.validation.wires import Wires, own_wiring
from tfconvert.importers.source import Source
from tfconvert.importers.temporary_model import Original, OwnRun, explained
from tfconvert.ops.call import Array
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.files import is_file

EXECUTOR = "the reference executor"
"""The name of the witness that all models have."""

INPUT_FILE = "LiteRT on the input file"
"""The name of the witness of a `.tflite` file."""

TENSORFLOW = "TensorFlow"
"""The name of the witness in a process of its own."""


class Witness(Protocol):
    """Computes a model's results, independently of how the model was imported."""

    name: str  # What computes them, for reports.
    as_floats: bool  # Whether it returns integers that represent floats as floats.

    def of(self, interface: Interface) -> Answer | None:
        """Returns what runs a function; `None` if it doesn't have the function."""


@contextmanager
def witness_of(source: Source, wanted: str | None = None) -> Iterator[Witness | None]:
    """Yields the witness of a model's results; `None` for the reference executor.

    Args:
        source: The model.
        wanted: The witness that the user wants; `None` for the most independent one at hand.

    Raises:
        ConversionError: TensorFlow is wanted, and is not installed (`tensorflow-missing`), or can't read the model
            (`wrong-option`).
    """
    original = source.original()
    if wanted is not None and original is None:
        with TensorFlow(source) as process:
            yield _InTensorFlow(process, source)
    elif original is not None:
        yield _Itself(original, source)
    elif isinstance(source.model, str | Path) and Path(source.model).suffix == ".tflite" and is_file(source.model):
        if source.inputs is not None or source.outputs is not None or not runtime.is_installed():
            yield None
            return
        with LiteRTProcess(as_floats=True) as litert:
            yield _InLiteRT(litert, Path(source.model).read_bytes(), source)
    else:
        yield None


def _models_names(interface: Interface, source: Source) -> Interface:
    """Returns an interface with the names that the model itself has for its inputs and outputs."""
    old = {new: name for name, new in (source.rename or {}).items()}
    inputs, outputs = (
        tuple(each._replace(name=old.get(each.name, each.name)) for each in side)
        for side in (interface.inputs, interface.outputs)
    )
    return interface._replace(inputs=inputs, outputs=outputs)


def _answer(compute: OwnRun) -> Answer:
    """Returns what calls a function in turn; inputs that it refuses are an outcome."""

    def run(calls: Sequence[Sequence[Array]]) -> Sequence[ReferenceRun] | Refused:
        try:
            with warnings.catch_warnings(), explained("runtime-error", "the model itself can't be run", ""):
                warnings.simplefilter("ignore")  # They are about the model, which the user has run before.
                found = compute(calls)
                return [ReferenceRun(*each) for each in zip(calls, found, strict=True)]
        except ConversionError as problem:
            if problem.code not in ("runtime-error", "empty-tensor", "out-of-memory"):
                raise
            return Refused(problem)

    return run


def in_litert(wires: Wires, litert: LiteRTProcess, content: bytes) -> Answer:
    """Returns what calls a function of a file in turn in LiteRT."""
    return _answer(partial(wires.run_in_turn, litert, content))


class _Itself:
    """A model in memory that runs itself."""

    as_floats = False

    def __init__(self, original: Original, source: Source) -> None:
        self.name = original.name
        self._original, self._source = original, source

    def of(self, interface: Interface) -> Answer | None:
        known = _models_names(interface, self._source)
        names, results = [each.name for each in known.inputs], [each.name for each in known.outputs]
        for key in (*interface.keys, *interface.other_keys):
            found = self._original.bind(key, names, results)
            if found is not None:
                return _answer(found)
        return None


class _InLiteRT:
    """A `.tflite` file that was converted again, in LiteRT."""

    name = INPUT_FILE
    as_floats = True

    def __init__(self, litert: LiteRTProcess, content: bytes, source: Source) -> None:
        self._litert, self._content, self._source = litert, content, source

    def of(self, interface: Interface) -> Answer | None:
        return in_litert(own_wiring(_models_names(interface, self._source)), self._litert, self._content)


class _InTensorFlow:
    """A model in TensorFlow, in another process."""

    name = TENSORFLOW
    as_floats = False

    def __init__(self, process: TensorFlow, source: Source) -> None:
        self._process, self._source = process, source

    def of(self, interface: Interface) -> Answer | None:
        found = self._process.function(_models_names(interface, self._source))
        if found is None:
            names = ", ".join(interface.keys) or interface.function
            raise error(
                "wrong-option",
                f"TensorFlow can't be the witness of {names!r}: the model has no such signature",
                hint="leave witness (--verify tensorflow) out",
            )
        return _answer(found)
