"""Runs .tflite files in LiteRT, which the extra `verify` installs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tfconvert.converter.process.child_process import ChildError
from tfconvert.converter.targets.litert.stored_values import to_floats, to_stored
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects.boxes import Array

try:
    from ai_edge_litert.interpreter import Interpreter
except ImportError:
    Interpreter = None


# The error of LiteRT's Python binding for a tensor without elements.
_EMPTY = "Invalid tensor size"


def is_installed() -> bool:
    return Interpreter is not None


def require() -> None:
    """Raises an error if LiteRT is not installed (`litert-missing`)."""
    if not is_installed():
        raise error(
            "litert-missing",
            "converted models are run in LiteRT, which is not installed",
            hint="pip install 'tfconvert[verify]'",
        )


def interpreter_of(path: str | None, **options: Any) -> Any:
    return Interpreter(path, **options)


def failure(problem: ChildError, code: str, what: str, hint: str = "") -> ConversionError:
    """Returns the error to raise: `litert-timeout` if the timeout was exceeded, else `code`.

    Args:
        problem: How the call in the child process failed.
        code: The code for a refusal or a crash.
        what: The failed action, as a sentence.
        hint: The hint for a refusal.
    """
    if problem.refusal:
        return error(code, f"{what}: {problem.refusal}", hint=hint)
    if problem.seconds:
        return error(
            "litert-timeout",
            f"{what}: LiteRT has not answered within {problem.seconds:g} s",
            hint="try smaller inputs; if those hang too, one of LiteRT's kernels does",
        )
    return error(code, f"{what}: LiteRT has crashed (status {problem.status})")


DEFECT = "this is a defect of the converter; please report it"
"""The hint about a converted file that LiteRT refuses."""


def run_file(
    content: bytes, key: str, inputs: Mapping[str, Array], outputs: Sequence[str], *, as_floats: bool = False
) -> list[Array]:
    """Runs one of a file's signatures, or the file's first subgraph.

    Args:
        content: The file's bytes.
        key: The signature; empty for the first subgraph, whose inputs and outputs are taken in order.
        inputs: The values, by input name.
        outputs: The names of the outputs.
        as_floats: Whether integers that represent floats are fed and returned as floats.

    Raises:
        ConversionError: LiteRT is not installed (`litert-missing`), refuses the file (`runtime-error`), or its Python
            binding can't set an empty input or read an empty result (`empty-tensor`); or, with `as_floats`, an input
            has another type (`unlike-interface`).
    """
    (found,) = run_in_turn(content, key, [inputs], outputs, as_floats=as_floats)
    return found


def run_in_turn(
    content: bytes, key: str, calls: Sequence[Mapping[str, Array]], outputs: Sequence[str], *, as_floats: bool = False
) -> list[list[Array]]:
    """Calls one of a file's signatures several times, first in the file's initial state; as `run_file`."""
    require()
    with refusals("the converted model", DEFECT):
        interpreter = Interpreter(model_content=content)
        found = []
        for inputs in calls:
            results = run(interpreter, key, inputs, outputs, as_floats=as_floats)
            # LiteRT writes its memory again in the next call; a result without dimensions may be a numpy scalar.
            found.append([np.array(each) for each in results])
        return found


@contextmanager
def refusals(what: str, hint: str) -> Iterator[None]:
    """Turns LiteRT's exceptions into errors: `runtime-error`, or `empty-tensor` for what its binding can't do.

    Args:
        what: What is run.
        hint: The hint if LiteRT refuses it.
    """
    try:
        yield
    except (RuntimeError, ValueError) as problem:
        if str(problem).startswith(_EMPTY):
            raise error("empty-tensor", "LiteRT's Python binding can't read a signature's empty results") from problem
        raise error("runtime-error", f"LiteRT refuses {what}: {problem}", hint=hint) from problem


def _fed(value: Array) -> Array:
    """Returns an input in the binding's form; without it, the binding would pass the address of a single string."""
    if value.dtype.kind != "O" or value.ndim:
        return value
    if not value.item():
        raise error("empty-tensor", "LiteRT's Python binding does not accept a single empty string")
    return np.array(value.item())


def run(
    interpreter: Any, key: str, inputs: Mapping[str, Array], outputs: Sequence[str], *, as_floats: bool
) -> list[Array]:
    """Runs one of the signatures of a file that an interpreter has loaded; as `run_file`."""
    inputs = {name: _fed(value) for name, value in inputs.items()}
    if key:
        runner = interpreter.get_signature_runner(key)
        details = runner.get_input_details() if as_floats else {}
        fed = {name: _stored(name, value, details.get(name)) for name, value in inputs.items()}
        results, details = runner(**fed), runner.get_output_details() if as_floats else {}
        return [_floats(results[name], details.get(name)) for name in outputs]
    details = interpreter.get_input_details()
    values = [
        _stored(detail["name"], value, detail if as_floats else None)
        for detail, value in zip(details, inputs.values(), strict=True)
    ]
    for detail, value in zip(details, values, strict=True):
        interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    for detail, value in zip(details, values, strict=True):
        if value.size:  # LiteRT's Python binding neither takes nor returns empty tensors.
            interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [
        _floats(_result(interpreter, detail), detail if as_floats else None)
        for detail in interpreter.get_output_details()
    ]


def _stored(name: str, value: Array, detail: Mapping[str, Any] | None) -> Array:
    """Returns an input in the file's type, unchanged if that is unknown."""
    if detail is None:
        return value
    stored = to_stored(value, detail)
    if stored.dtype != detail["dtype"] and stored.dtype.kind not in "OSU":
        raise error(
            "unlike-interface",
            f"the input {name!r} is {np.dtype(detail['dtype']).name} in the file, and {stored.dtype.name} in the model",
        )
    return stored


def _floats(value: Array, detail: Mapping[str, Any] | None) -> Array:
    """Returns an output as floats if its integers represent floats, unchanged if that is unknown."""
    return value if detail is None or value.dtype.kind not in "iu" else to_floats(value, *detail["quantization"])


def _result(interpreter: Any, detail: Mapping[str, Any]) -> Array:
    if 0 in detail["shape"]:
        return np.empty(detail["shape"], detail["dtype"])
    value: Array = interpreter.get_tensor(detail["index"])
    return value
