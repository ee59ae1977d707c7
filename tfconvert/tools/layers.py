"""Compares the operators of a .tflite file with the model's values: the first that differs, or a table of layers.

The file runs in LiteRT, which keeps every tensor, and the imported model in the reference executor. A tensor is
compared with the values of the nodes that it is named after, and that of a fused operator with the closest one. Tensors
without a node's name, or with another shape, are omitted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.ir.interface import Interface, interface_of
from tfconvert.converter.process.child_process import Child, ChildError
from tfconvert.converter.targets.litert.quantize.figures import Figures, Step, layers, stored_range
from tfconvert.converter.targets.litert.runtime import failure
from tfconvert.converter.targets.litert.stored_values import to_floats
from tfconvert.converter.validation.comparison import OutputDifference, compare
from tfconvert.converter.validation.inputs import Refused
from tfconvert.converter.validation.result_check import Ranges, exported, reference_runs
from tfconvert.converter.validation.wires import Wires, Wiring, own_wiring
from tfconvert.importers.source import Source
from tfconvert.importers.tflite.outline import Outline, OutlineOperator, OutlineTensor, outline
from tfconvert.ops.call import Array, Results
from tfconvert.schema.diagnostics import NOTE, Diagnostic
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.fidelity import LayerFidelity
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.tools.litert_child import KeptTensors

_NOT_COMPARED = "not compared"


class ComparedLayer(NamedTuple):
    """An operator whose result was compared.

    Attributes:
        operator: The operator.
        tensor: Its result.
        difference: How it differs.
    """

    operator: OutlineOperator
    tensor: OutlineTensor
    difference: OutputDifference


def first_difference(source: Source, content: bytes, data: Any = None, wiring: Wiring = own_wiring) -> list[Diagnostic]:
    """Returns a note for each function: the first operator whose result differs, or that all agree.

    Args:
        source: The model.
        content: The file's bytes.
        data: The user's inputs; `None` for random ones.
        wiring: Returns the mapping of inputs and outputs.
    """
    return [_note(runs, draws) for runs, draws in each_function(source, content, data, wiring)]


def each_function(
    source: Source, content: bytes, data: Any, wiring: Wiring, ranges: Ranges | None = None
) -> Iterator[tuple[LayerRuns, Iterator[Sequence[Array]]]]:
    """Yields each function that the reference can run, in both forms, with inputs for it.

    Args:
        source: The model.
        content: The file's bytes.
        data: The user's inputs; `None` for random ones.
        wiring: Returns the mapping of inputs and outputs.
        ranges: The ranges of random inputs; `None` for any.
    """
    module, functions = exported(source)
    file = outline(content)
    with tempfile.TemporaryDirectory(prefix="tfconvert-") as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(content)
        for function, runs in zip(functions, reference_runs(module, functions, data, ranges), strict=True):
            if Executor(module).problems(function.sym_name):
                continue
            with LayerRuns(path, file, module, function, wiring(interface_of(function))) as both:
                yield both, (run.inputs for run in runs if not isinstance(run, Refused))


class LayerRuns:
    """One function with all intermediate values, in the reference and in LiteRT; a context manager.

    Attributes:
        interface: The function's interface.
        operators: The file's operators, in the order in which they run.
        tensors: The file's tensors.
    """

    def __init__(self, path: Path, file: Outline, module: ModuleOp, function: FuncOp, wires: Wires) -> None:
        self._path, self._module, self._function, self._wires = path, module, function, wires
        self.interface: Interface = interface_of(function)
        signature = next((each for each in file.signatures if each.key == wires.key), file.signatures[0])
        self._subgraph = signature.subgraph
        self.operators = file.subgraphs[self._subgraph]
        self.tensors = file.tensors[self._subgraph]
        names = {name for tensor in self.tensors for name in nodes_of(tensor.name)}
        self._names = names | {_base(name) for name in names}
        self._child = Child()
        self._kept: KeptTensors | None = None

    def __enter__(self) -> LayerRuns:
        """Returns itself; nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends LiteRT's process."""
        self._child.stop()

    def expected(self, values: Sequence[Array]) -> dict[str, list[Array]]:
        """Returns the values of the nodes that tensors are named after."""
        found: dict[str, list[Array]] = {}

        def keep(defined: Sequence[Value], results: Results) -> None:
            for value, result in zip(defined, results, strict=False):
                owner = value.owner
                name = node_of(owner.location) if isinstance(owner, Operation) else ""
                if name in self._names:
                    found.setdefault(name, []).append(result)

        results = Executor(self._module, on_values=keep).run(self._function.sym_name, values)
        for output, result in zip(self.interface.outputs, results, strict=True):
            found.setdefault(output.name, []).append(result)
        return found

    def candidates(self, tensor: OutlineTensor, expected: Mapping[str, Sequence[Array]]) -> list[tuple[str, Array]]:
        """Returns the possible values of a tensor, with their nodes, from those that `expected` returns."""
        names = nodes_of(tensor.name)
        found = [(name, each) for name in names for each in expected.get(name, ())]
        # A constant may have the node's name, so that the result's name has a suffix.
        return found or [(base, each) for base in map(_base, names) for each in expected.get(base, ())]

    def got(self, values: Sequence[Array]) -> dict[int, Array]:
        """Returns the tensors of LiteRT's run as stored."""
        wires = self._wires
        fed = list(values) if wires.key else [values[number] for number in wires.order]
        try:
            if self._kept is None:
                wanted = sorted({index for operator in self.operators for index in operator.outputs})
                self._kept = self._child.call(KeptTensors, str(self._path), wires.key, self._subgraph, wanted)
            return self._child.call(KeptTensors.run, self._kept, list(wires.inputs), fed)
        except ChildError as problem:
            raise failure(problem, "runtime-error", "the layers can't be compared") from problem


def _note(runs: LayerRuns, draws: Iterator[Sequence[Array]]) -> Diagnostic:
    """Returns the first difference on the first inputs that show one."""
    label = runs.interface.keys[0] if runs.interface.keys else runs.interface.function
    most = 0
    for values in draws:
        layers = _layers(runs, values)
        most = max(most, len(layers))
        for layer in layers:
            if layer.difference.what:
                return _found(runs, label, layer, {each.tensor.number: each for each in layers})
    return Diagnostic(
        "layers-agree",
        f"{label!r}: of {len(runs.operators)} operators, {most} were compared one by one, and all of them agree",
        severity=NOTE,
    )


def _found(runs: LayerRuns, label: str, layer: ComparedLayer, compared: Mapping[int, ComparedLayer]) -> Diagnostic:
    made = {index for operator in runs.operators for index in operator.outputs}
    inputs = [
        f"{runs.tensors[index].name!r} {_share(compared.get(index))}"
        for index in layer.operator.inputs
        if index in made
    ]
    of = f"; of its inputs: {', '.join(inputs)}" if inputs else ""
    return Diagnostic(
        "first-difference",
        f"{label!r}: the first result that differs is {layer.tensor.name!r}: it "
        f"{layer.difference.what} (error {_share(layer)}){of}",
        op=layer.operator.name,
        node=nodes_of(layer.tensor.name)[-1],
        severity=NOTE,
    )


def _layers(runs: LayerRuns, values: Sequence[Array]) -> list[ComparedLayer]:
    """Returns the operators whose results can be compared, in the order in which they run."""
    expected, got = runs.expected(values), runs.got(values)
    layers = []
    for operator in runs.operators:
        for index in operator.outputs:
            tensor = runs.tensors[index]
            candidates = [each for _, each in runs.candidates(tensor, expected)]
            found = _closest(candidates, got[index]) if index in got else None
            if found is not None:
                layers.append(ComparedLayer(operator, tensor, found))
    return layers


def nodes_of(name: str) -> list[str]:
    """Returns the nodes that a tensor is named after; the name of a fused tensor separates several with semicolons."""
    found = []
    for part in name.split(";"):
        node = part.rpartition(":")[0] if part.rpartition(":")[2].isdigit() else part
        while node.startswith(("StatefulPartitionedCall/", "PartitionedCall/")):
            node = node.partition("/")[2]
        found.append(node)
    return found


def _base(name: str) -> str:
    """Returns a name without the numeric suffix that makes it unique, if it has one."""
    base, _, number = name.rpartition("_")
    return base if base and number.isdigit() else name


def _closest(candidates: Sequence[Array], got: Array) -> OutputDifference | None:
    """Returns the difference of a tensor from the closest value, or `None` if no value has its type."""
    found = [
        compare(np.reshape(each, got.shape), got, float(np.finfo(np.float32).eps))
        for each in candidates
        if is_alike(each, got)
    ]
    return min(found, key=lambda each: (bool(each.what), each.relative), default=None)


def is_alike(value: Array, other: Array) -> bool:
    """Returns whether two values have the same type, and the same shape except for sizes of 1."""
    shapes = [[dim for dim in each.shape if dim != 1] for each in (value, other)]
    return value.dtype == other.dtype and shapes[0] == shapes[1]


def _share(layer: ComparedLayer | None) -> str:
    return f"{layer.difference.relative:.1e}" if layer is not None else _NOT_COMPARED


# Maximum number of samples to compare: the reference is slow.
_MAX_SAMPLES = 8


def layer_table(source: Source, content: bytes, data: Any, wiring: Wiring, ranges: Ranges) -> tuple[LayerFidelity, ...]:
    """Returns the layers of a file, those with the largest loss first.

    Args:
        source: The float model.
        content: The file's bytes.
        data: The user's inputs; `None` for random ones.
        wiring: Returns the mapping of inputs and outputs.
        ranges: The ranges of random inputs.
    """
    rows: list[LayerFidelity] = []
    for runs, draws in each_function(source, content, data, wiring, ranges):
        table = _Table(runs)
        for values in islice(draws, _MAX_SAMPLES):
            table.add(values)
        rows += table.rows()
    return tuple(sorted(rows, key=lambda row: -row.lost))


class _Table:
    """The layers of one function."""

    def __init__(self, runs: LayerRuns) -> None:
        self._runs = runs
        self._figures: dict[int, Figures] = {}
        self._chosen: dict[int, int] = {}
        self._stored: dict[int, Any] = {}
        self._nodes: dict[int, str] = {}

    def add(self, values: Sequence[Array]) -> None:
        """Runs both models on a sample."""
        expected, got = self._runs.expected(values), self._runs.got(values)
        for index, stored in got.items():
            tensor = self._runs.tensors[index]
            value = to_floats(stored, tensor.scale, tensor.zero_point) if stored.dtype.kind in "iu" else stored
            candidates = self._runs.candidates(tensor, expected)
            if value.dtype == np.float32 and candidates:
                self._stored[index] = stored.dtype
                self._add(index, value, candidates)

    def _add(self, index: int, value: Array, candidates: Sequence[tuple[str, Array]]) -> None:
        """Compares a tensor with the value that was closest to it on the first sample."""
        alike = [number for number, (_, each) in enumerate(candidates) if is_alike(each, value)]
        if alike and index not in self._chosen:
            self._chosen[index] = min(alike, key=lambda number: _distance(candidates[number][1], value))
        if self._chosen.get(index) in alike:
            self._nodes[index], wanted = candidates[self._chosen[index]]
            self._figures.setdefault(index, Figures()).add(np.reshape(wanted, value.shape), value)

    def rows(self) -> tuple[LayerFidelity, ...]:
        """Returns the layers."""
        measured = {index: found for index, each in self._figures.items() if (found := each.measured()) is not None}
        tensors = self._runs.tensors
        known = {
            index: stored_range({"quantization": (tensors[index].scale, tensors[index].zero_point), "dtype": dtype})
            for index, dtype in self._stored.items()
        }
        steps = [
            Step(
                next((self._nodes[index] for index in each.outputs if index in self._nodes), ""),
                each.name,
                each.inputs,
                each.outputs,
            )
            for each in self._runs.operators
        ]
        return layers(steps, measured, {index: each for index, each in known.items() if each is not None})


def _distance(value: Array, other: Array) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        found = float(np.square(np.reshape(value, other.shape).astype(np.float64) - other).sum())
    return found if np.isfinite(found) else np.inf
