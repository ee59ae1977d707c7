"""Finds the first operator of a .tflite file whose result is not what the model computes.

The file runs in LiteRT with every tensor kept, the model in the reference executor as it was imported. A tensor is
compared with the values of the nodes whose names it bears, that of a fused operator with whichever comes closest; one
that bears no node's name, or whose shape is another, is left out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfconvert.converter.child_process import Child, ChildError
from tfconvert.converter.executor.executor import Executor
from tfconvert.converter.ir.interface import Interface, interface_of
from tfconvert.converter.kernels.call import Array, Results
from tfconvert.converter.litert.failures import failure
from tfconvert.converter.validation.comparison import Difference, compare
from tfconvert.converter.validation.inputs import Refused
from tfconvert.converter.validation.result_check import exported, reference_runs
from tfconvert.converter.validation.wiring import Wires, Wiring, own_wiring
from tfconvert.importers.source import Source
from tfconvert.importers.tflite.outline import Operator, Outline, Tensor, outline
from tfconvert.schema.diagnostics import NOTE, Diagnostic, error
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

_NOT_COMPARED = "not compared"


class Layer(NamedTuple):
    """An operator whose result was compared.

    Attributes:
        operator: The operator.
        tensor: Its result.
        difference: How it differs.
    """

    operator: Operator
    tensor: Tensor
    difference: Difference


def first_difference(source: Source, content: bytes, data: Any = None, wiring: Wiring = own_wiring) -> list[Diagnostic]:
    """Returns a note for each function: the first operator whose result differs, or that none does.

    Args:
        source: The model.
        content: The file's bytes.
        data: The user's inputs; `None` for random ones.
        wiring: Which of the file's inputs and outputs are those of the model.

    Raises:
        ConversionError: Either can't be run.
    """
    module, functions = exported(source)
    file = outline(content)
    notes = []
    with tempfile.TemporaryDirectory(prefix="tfconvert-") as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(content)
        for function, runs in zip(functions, reference_runs(module, functions, data), strict=True):
            if Executor(module).problems(function.sym_name):
                continue
            search = _Search(path, file, module, function, wiring(interface_of(function)))
            notes.append(search.note(run.inputs for run in runs if not isinstance(run, Refused)))
    return notes


class _Search:
    """The search for the first difference in one function."""

    def __init__(self, path: Path, file: Outline, module: ModuleOp, function: FuncOp, wires: Wires) -> None:
        self._path, self._module, self._function, self._wires = path, module, function, wires
        self._interface: Interface = interface_of(function)
        signature = next((each for each in file.signatures if each.key == wires.key), file.signatures[0])
        self._subgraph = signature.subgraph
        self._operators = file.subgraphs[self._subgraph]
        self._tensors = file.tensors[self._subgraph]
        self._names = {name for tensor in self._tensors for name in _nodes(tensor.name)}

    def note(self, draws: Iterator[Sequence[Array]]) -> Diagnostic:
        """Returns the first difference on the first inputs that show one."""
        label = self._interface.keys[0] if self._interface.keys else self._interface.function
        most = 0
        for values in draws:
            layers = self._layers(values)
            most = max(most, len(layers))
            for layer in layers:
                if layer.difference.what:
                    return self._found(label, layer, {each.tensor.number: each for each in layers})
        return Diagnostic(
            "layers-agree", f"{label!r}: of {len(self._operators)} operators, {most} were compared one by one, "
            "and none of them differs", severity=NOTE,
        )  # fmt: skip

    def _found(self, label: str, layer: Layer, compared: Mapping[int, Layer]) -> Diagnostic:
        made = {index for operator in self._operators for index in operator.outputs}
        inputs = [
            f"{self._tensors[index].name!r} {_share(compared.get(index))}"
            for index in layer.operator.inputs if index in made
        ]  # fmt: skip
        of = f"; of its inputs: {', '.join(inputs)}" if inputs else ""
        return Diagnostic(
            "first-difference", f"{label!r}: the first result that differs is {layer.tensor.name!r}: it "
            f"{layer.difference.what} (error {_share(layer)}){of}",
            op=layer.operator.name, node=_nodes(layer.tensor.name)[-1], severity=NOTE,
        )  # fmt: skip

    def _layers(self, values: Sequence[Array]) -> list[Layer]:
        """Returns the operators whose results can be compared, in the order in which they run."""
        expected = self._expected(values)
        got = self._got(values)
        layers = []
        for operator in self._operators:
            for index in operator.outputs:
                tensor = self._tensors[index]
                candidates = [each for name in _nodes(tensor.name) for each in expected.get(name, ())]
                found = _closest(candidates, got[index]) if index in got else None
                if found is not None:
                    layers.append(Layer(operator, tensor, found))
        return layers

    def _expected(self, values: Sequence[Array]) -> dict[str, list[Array]]:
        """Returns the values of the nodes that tensors are named after."""
        found: dict[str, list[Array]] = {}

        def keep(defined: Sequence[Value], results: Results) -> None:
            for value, result in zip(defined, results, strict=False):
                owner = value.owner
                name = node_of(owner.location) if isinstance(owner, Operation) else ""
                if name in self._names:
                    found.setdefault(name, []).append(result)

        results = Executor(self._module, on_values=keep).run(self._function.sym_name, values)
        for output, result in zip(self._interface.outputs, results, strict=True):
            found.setdefault(output.name, []).append(result)
        return found

    def _got(self, values: Sequence[Array]) -> dict[int, Array]:
        """Returns the tensors of LiteRT's run."""
        wires = self._wires
        wanted = sorted({index for operator in self._operators for index in operator.outputs})
        fed = values if wires.key else [values[number] for number in wires.order]
        with Child("tfconvert.converter.files.tensors_process") as child:
            try:
                header = {"file": str(self._path), "key": wires.key, "subgraph": self._subgraph, "wanted": wanted}
                answer, arrays = child.ask(header)
                if not answer["problem"]:
                    answer, arrays = child.ask({"inputs": list(wires.inputs)}, fed)
                if not answer["problem"]:
                    answer, arrays = child.ask({"finish": True})
            except ChildError as crash:
                raise failure(crash, "runtime-error", "the layers can't be compared") from crash
        if answer["problem"]:
            raise error("runtime-error", f"the layers can't be compared: {answer['problem']}")
        return dict(zip(answer["numbers"], arrays, strict=True))


def _nodes(name: str) -> list[str]:
    """Returns the nodes that a tensor is named after: several with semicolons between them, where it was fused."""
    found = []
    for part in name.split(";"):
        node = part.rpartition(":")[0] if part.rpartition(":")[2].isdigit() else part
        while node.startswith(("StatefulPartitionedCall/", "PartitionedCall/")):
            node = node.partition("/")[2]
        found.append(node)
    return found


def _closest(candidates: Sequence[Array], got: Array) -> Difference | None:
    """Returns how a tensor differs from the value that is closest to it, `None` if none is of its kind."""
    found = [
        compare(np.reshape(each, got.shape), got, float(np.finfo(np.float32).eps))
        for each in candidates
        if each.dtype == got.dtype and [dim for dim in each.shape if dim != 1] == [dim for dim in got.shape if dim != 1]
    ]
    return min(found, key=lambda each: (bool(each.what), each.relative), default=None)


def _share(layer: Layer | None) -> str:
    return f"{layer.difference.relative:.1e}" if layer is not None else _NOT_COMPARED
