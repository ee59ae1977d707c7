"""Runs programs in IREE's runtime, which the extra `iree` installs. It is imported with the first program."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes  # noqa: F401  # Makes numpy know the names of its dtypes.
import numpy as np

from tfconvert.converter.ir.interface import Interface, Tensor, in_order, interface_called
from tfconvert.converter.targets.iree.description import Description, description_in
from tfconvert.converter.targets.iree.passes.weights_to_parameters import SCOPE
from tfconvert.exporters.safetensors import PARAMETERS
from tfconvert.schema.diagnostics import ConversionError, error
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.files import is_file
from tfconvert.settings.targets import DRIVERS

try:
    import iree.runtime as _iree
except ImportError:
    _iree = None

# Exceptions of IREE's Python binding.
_FAILURES = (RuntimeError, ValueError, TypeError, LookupError, NotImplementedError, OSError)


def require() -> ModuleType:
    """Returns IREE's runtime.

    Raises:
        ConversionError: It is not installed (`iree-missing`).
    """
    if not isinstance(_iree, ModuleType):
        raise error(
            "iree-missing",
            "programs run in IREE's runtime, which is not installed",
            hint="pip install 'tfconvert[iree]'",
        )
    return _iree


class IreeProgram:
    """A program in a session of IREE's runtime; variables keep their values between runs.

    Attributes:
        interfaces: The inputs and outputs of each function.

    Args:
        path: The `.vmfb`.
        parameters: The file of its weights; by default the `.safetensors` of its name beside it.
        driver: The driver that runs it; by default that of its backend.

    Raises:
        ConversionError: IREE's runtime is not installed (`iree-missing`); or the program or its weights can't be read,
            or were not made by a conversion, or can't run here (`bad-program`).
    """

    def __init__(
        self, path: str | os.PathLike[str], parameters: str | os.PathLike[str] | None = None, driver: str = ""
    ) -> None:
        runtime = require()
        place = os.fspath(path)
        if not is_file(place):
            raise error("bad-program", f"there is no file {place}", hint="convert a model with the target iree")
        if not Path(place).stat().st_size:
            raise error("bad-program", f"{place} is empty", hint="convert the model again")
        try:
            told, module = _opened(runtime, place, runtime.VmInstance())
            if not told:
                raise error("bad-program", f"{place} has no description of its functions: tfconvert did not create it")
            first = next(iter(told.values()))
            config = runtime.Config(driver or DRIVERS[first.backend])
            modules = [runtime.create_hal_module(config.vm_instance, config.device)]
            if first.has_parameters:
                modules.append(_parameters(runtime, config, Path(parameters or Path(place).with_suffix(PARAMETERS))))
            told, module = _opened(runtime, place, config.vm_instance)
            context = runtime.VmContext(config.vm_instance, modules=[*modules, module])
            self._calls = {
                name: runtime.FunctionInvoker(context, config.device, module.lookup_function(name)) for name in told
            }
        except _FAILURES as problem:
            raise error(
                "bad-program",
                f"{place} can't be loaded: {_short(problem)}",
                hint="convert the model again, for a backend that this machine has",
            ) from problem
        self._config = config
        self.interfaces = tuple(Interface(name, each.keys, each.inputs, each.outputs) for name, each in told.items())

    def run(self, inputs: Mapping[str, Any] | Sequence[Any], signature: str = "") -> dict[str, Array]:
        """Runs a function.

        Args:
            inputs: The values by input name, or in order.
            signature: The signature, or the function's name; it may be left out if there is one function.

        Returns:
            The results by name.

        Raises:
            ConversionError: There is no such signature, or the inputs don't fit (`wrong-sample`); or the program fails,
                for example because an assertion doesn't hold (`runtime-error`).
        """
        known = interface_called(self.interfaces, signature)
        values = [_fed(value, tensor) for value, tensor in zip(in_order(inputs, known), known.inputs, strict=True)]
        try:
            found = self._calls[known.function](*values)
            results = list(found) if isinstance(found, tuple | list) else [] if found is None else [found]
            return {tensor.name: _fetched(each, tensor) for tensor, each in zip(known.outputs, results, strict=True)}
        except _FAILURES as problem:
            raise error(
                "runtime-error",
                f"the program has failed: {_short(problem)}",
                hint="inputs may have sizes or values that the model doesn't take",
            ) from problem


def _opened(runtime: ModuleType, path: str, instance: Any) -> tuple[dict[str, Description], Any]:
    """Returns a program's descriptions of its functions, and the program."""
    module = runtime.VmModule.mmap(instance, path)
    found = {name: description_in(module.lookup_function(name).reflection) for name in module.function_names}
    return {name: each for name, each in found.items() if each is not None}, module


def _parameters(runtime: ModuleType, config: Any, path: Path) -> Any:
    if not is_file(path):
        raise error(
            "bad-program",
            f"the program's weights are missing: there is no file {path}",
            hint="keep the two files in one directory, or pass `parameters`",
        )
    index = runtime.ParameterIndex()
    index.load(str(path), mmap=True)
    return runtime.create_io_parameters_module(config.vm_instance, index.create_provider(scope=SCOPE))


def _fed(value: Any, tensor: Tensor) -> Array:
    """Checks and converts an input; IREE's own checks don't name it."""
    array = np.asarray(value)
    kind = np.dtype(tensor.dtype)
    if array.dtype != kind and not (not isinstance(value, np.ndarray | np.generic) and _is_exact(array, kind)):
        raise error("wrong-sample", f"the input {tensor.name!r} is {array.dtype}, not {tensor.dtype}")
    shape = tensor.shape or ()
    if len(shape) != array.ndim or any(want not in (None, have) for want, have in zip(shape, array.shape, strict=True)):
        raise error("wrong-sample", f"the input {tensor.name!r} has the shape {list(array.shape)}, not {tensor.type}")
    return np.ascontiguousarray(array.astype(kind, copy=False)).reshape(array.shape)


def _is_exact(array: Array, kind: np.dtype[Any]) -> bool:
    """Returns whether Python numbers may become an element type: integers any type, floats only float types."""
    return np.can_cast(array.dtype, kind, "same_kind") or (array.dtype.kind == "i" and kind.kind in "iufc")


def _fetched(result: Any, tensor: Tensor) -> Array:
    array = np.array(result.to_host() if hasattr(result, "to_host") else result)
    return array if array.dtype == np.dtype(tensor.dtype) else array.astype(tensor.dtype)


def _short(problem: Exception) -> str:
    """Returns IREE's message without the addresses in the program."""
    if isinstance(problem, ConversionError):
        return problem.diagnostics[0].message
    text = str(problem).partition("\n[")[0].partition("; while invoking")[0]
    return " ".join(text.split())[:300] or type(problem).__name__
