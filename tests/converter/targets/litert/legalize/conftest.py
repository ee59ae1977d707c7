"""Converts a graph of one op and compares LiteRT with TensorFlow."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tfconvert
from tests.converter.processor import skipped_without_kernel
from tests.converter.targets.litert.legalize.cases import Case, Check, CheckPair, Operand, compare, graph, operand
from tests.support.litert import RunTFLite


@pytest.fixture
def check(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> Check:
    """Returns a function that asserts that a case gives the same in LiteRT; it returns the operators' names."""

    def run(case: Case) -> list[str]:
        operands = [operand(spec, zlib.crc32(case.op.encode()) + i) for i, spec in enumerate(case.operands)]
        content = graph(case, operands).SerializeToString()
        inputs = {f"x{i}": each.value for i, each in enumerate(operands) if each.shape is not None}
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            definition = tf.compat.v1.GraphDef.FromString(content)
            node = tf.import_graph_def(definition, name="", return_elements=["y"])[0]
            names = [output.name for output in node.outputs[: case.results]]
            with skipped_without_kernel(tf):
                expected = session.run(names, {f"{name}:0": value for name, value in inputs.items()})
        path = tmp_path / "graph.pb"
        path.write_bytes(content)
        model = tfconvert.convert(path, inputs=list(inputs), outputs=names)
        results = run_tflite(bytes(model), list(inputs.values()))
        for got, wanted in zip(results, expected, strict=True):
            compare(case, got, wanted)
        return sorted(model.report.operators)

    return run


@pytest.fixture
def check_pair(tf: ModuleType, run_tflite: RunTFLite, tmp_path: Path) -> CheckPair:
    """Returns a function that compares a case with channels first with TensorFlow's result with channels last."""

    def run(first: Case, last: Case, to_last: Sequence[int], to_first: Sequence[int]) -> None:
        operands = [operand(spec, zlib.crc32(first.op.encode()) + i) for i, spec in enumerate(first.operands)]
        inputs = {f"x{i}": each.value for i, each in enumerate(operands) if each.shape is not None}
        path = tmp_path / "graph.pb"
        path.write_bytes(graph(first, operands).SerializeToString())
        model = tfconvert.convert(path, inputs=list(inputs), outputs=["y"])
        (got,) = run_tflite(bytes(model), list(inputs.values()))
        for i, each in enumerate(operands):
            if each.shape is None and not isinstance(last.operands[i], str):
                operands[i] = operand(last.operands[i], 0)
            elif each.shape is not None and len(each.shape) == len(to_last):
                inputs[f"x{i}"] = np.ascontiguousarray(each.value.transpose(to_last))
                operands[i] = Operand(inputs[f"x{i}"], inputs[f"x{i}"].shape)
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            content = graph(last, operands).SerializeToString()
            tf.import_graph_def(tf.compat.v1.GraphDef.FromString(content), name="")
            expected = session.run("y:0", {f"{name}:0": value for name, value in inputs.items()})
        compare(first, got, expected.transpose(to_first))

    return run
