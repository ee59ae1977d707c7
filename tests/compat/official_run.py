"""Runs one file of the official project's tests, word for word, with this project's class or with the official one.

The tests import `tflite.python...`, which is TensorFlow's `tensorflow.lite.python...`, but for what this project has
itself. A line is written when a test begins, and one with its verdict when it ends:

python -m tests.compat.official_run ours FOLDER lite_test results.jsonl SKIPPED_TEST ...
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import sys
import tempfile
import traceback
import unittest
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

PYTHON = "tflite/python"

FILES: Mapping[str, str] = {
    "lite_v2_test": f"{PYTHON}/lite_v2_test.py",
    "lite_test": f"{PYTHON}/lite_test.py",
    "lite_flex_test": f"{PYTHON}/lite_flex_test.py",
    "tflite_convert_test": f"{PYTHON}/tflite_convert_test.py",
    "authoring_test": f"{PYTHON}/authoring/authoring_test.py",
    "debugger_test": "tflite/tools/optimize/debugging/python/debugger_test.py",
    "analyzer_test": f"{PYTHON}/analyzer_test.py",
    "keras_litert_test": "",
}
"""The files of tests by name, below the folder of the project; Keras's is in its package."""

_KERAS_TESTS = "keras.src.export.litert_test"
_IMPORT = re.compile(r"^(?:from|import) (tflite[\w.]*)(?: import (\w+))?", re.MULTILINE)
_COMMANDS = {"ours": "tfconvert", "theirs": "tensorflow.lite.python.tflite_convert"}


class _Absent:
    """A compiled module of the official project that no package has."""

    def __getattr__(self, name: str) -> Any:
        raise ImportError(f"{name} is in no package")


def _like(name: str, **own: Any) -> ModuleType:
    """Returns a module with the contents of TensorFlow's, but for some of them."""
    original = vars(importlib.import_module(name.replace("tflite", "tensorflow.lite", 1)))
    module = ModuleType(name)
    vars(module).update({key: value for key, value in original.items() if not key.startswith("__")} | own)
    return module


def _ours() -> dict[str, ModuleType]:
    """Returns the modules that this project has in the place of official ones."""
    import ai_edge_litert.interpreter as interpreter

    import tfconvert
    from tfconvert.compat import v1

    tools = tfconvert.experimental
    names = ("Optimize", "OpsSet", "TargetSpec", "RepresentativeDataset")
    lite = {
        **{name: getattr(tfconvert, name) for name in names},
        "Interpreter": interpreter.Interpreter,
        "TFLiteConverterV2": tfconvert.TFLiteConverter,
        "TFLiteConverter": v1.TFLiteConverter,
        "TocoConverter": v1.TocoConverter,
        "QuantizationDebugger": tools.QuantizationDebugger,
        "QuantizationDebugOptions": tools.QuantizationDebugOptions,
    }
    found = [
        _like("tflite.python.lite", **lite),
        _like("tflite.python.convert", ConverterError=tfconvert.ConversionError),
        _like("tflite.python.analyzer", ModelAnalyzer=tools.Analyzer),
        _like(
            "tflite.tools.optimize.debugging.python.debugger",
            QuantizationDebugger=tools.QuantizationDebugger,
            QuantizationDebugOptions=tools.QuantizationDebugOptions,
        ),
    ]
    return {
        **{module.__name__: module for module in found},
        "tflite.python.interpreter": interpreter,
        "tflite.python.authoring.authoring": tools.authoring,
    }


def _install(name: str, folder: Path, ours: Mapping[str, ModuleType]) -> None:
    """Makes a module importable under its official name, with the packages that it is in."""
    if name in sys.modules:
        return
    parent, _, own = name.rpartition(".")
    if parent:
        _install(parent, folder, ours)
    file = folder / f"{name.replace('.', '/')}.py"
    if name in ours:
        module = ours[name]
    elif own.endswith("test_util") and file.is_file():
        _install_imports(file, folder, ours)
        module = _loaded(name, file)
    elif name == f"{PYTHON.replace('/', '.')}.testdata":
        module = ModuleType(name)
        vars(module).update(_pywrap_test_registerer=_Absent(), double_op=_Absent(), __path__=[])
    else:
        module = importlib.import_module(name.replace("tflite", "tensorflow.lite", 1))
        if hasattr(module, "__path__"):  # What is in it may be replaced.
            module = _like(name, __path__=[])
    sys.modules[name] = module
    if parent:
        setattr(sys.modules[parent], own, module)


def _install_imports(file: Path, folder: Path, ours: Mapping[str, ModuleType]) -> None:
    for name, member in _IMPORT.findall(file.read_text("utf-8")):
        _install(name, folder, ours)
        inner = f"{name}.{member}"
        is_module = inner in ours or (folder / f"{inner.replace('.', '/')}.py").is_file()
        if member and is_module and not isinstance(getattr(sys.modules[name], member, None), _Absent):
            _install(inner, folder, ours)


def _loaded(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _tests(suite: Any) -> Iterator[unittest.TestCase]:
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from _tests(each)
        else:
            yield each


def _name(test: Any) -> str:
    return ".".join(str(test.id()).split(".")[-2:])


class _Recorder(unittest.TestResult):
    """Writes what becomes of each test."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._verdict = ("ok", "")
        self.names: set[str] = set()

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().startTest(test)
        self._verdict = ("ok", "")
        self._write(_name(test))

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().stopTest(test)
        self.names.add(_name(test))
        self._write(_name(test), *self._verdict)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._verdict = ("skip", "")

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self._bad(err)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self._bad(err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802
        if err is not None:
            self._bad(err)

    def _bad(self, err: Any) -> None:
        self._verdict = ("fail", " ".join(traceback.format_exception_only(*err[:2])[-1].split()))

    def finish(self, tests: Sequence[unittest.TestCase]) -> None:
        """Writes the verdicts of tests that weren't run, since what they share failed."""
        for name in (_name(test) for test in tests):
            if name not in self.names:
                self._write(name)
                self._write(name, *self._verdict)

    def _write(self, *row: str) -> None:
        self._stream.write(json.dumps(row) + "\n")
        self._stream.flush()


def _module(who: str, folder: Path, name: str) -> ModuleType:
    """Returns the module of a file of tests."""
    ours = _ours() if who == "ours" else {}
    if not FILES[name]:
        if who == "ours":
            import tensorflow as tf

            import tfconvert

            tf.lite.TFLiteConverter = tfconvert.TFLiteConverter
        return importlib.import_module(_KERAS_TESTS)
    from tensorflow.python.platform import resource_loader

    command = Path(tempfile.mkdtemp()) / "tflite_convert.par"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m {_COMMANDS[who]} "$@"\n', "utf-8")
    command.chmod(0o755)
    resource_loader.get_path_to_datafile = lambda path: os.fspath(
        command if path == command.name else folder / PYTHON / path
    )
    file = folder / FILES[name]
    _install_imports(file, folder, ours)
    return _loaded(name, file)


def main(who: str, folder: str, name: str, output: str, *skipped: str) -> None:
    """Runs the tests of a file.

    Args:
        who: `ours` or `theirs`.
        folder: The official project's sources.
        name: The file, one of `FILES`.
        output: The file to write the verdicts to.
        skipped: Tests that are left out, since they end the process.
    """
    from absl import flags

    flags.FLAGS(["tests"])
    module = _module(who, Path(folder), name)
    tests = [
        test for test in _tests(unittest.defaultTestLoader.loadTestsFromModule(module)) if _name(test) not in skipped
    ]
    with Path(output).open("a", encoding="utf-8") as stream:
        for _, group in groupby(tests, type):
            own, recorder = list(group), _Recorder(stream)
            unittest.TestSuite(own).run(recorder)
            recorder.finish(own)


if __name__ == "__main__":
    main(*sys.argv[1:])
