"""The files that one model becomes: of floats, and quantized with any layers excluded.

The model is imported and optimized once; each file takes only the stages from there on that quantize it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tfconvert.converter.pipeline.pass_result import FLOAT, LayerReport
from tfconvert.converter.pipeline.runner import run_stages
from tfconvert.converter.pipeline.stages import before
from tfconvert.converter.targets.litert.quantize.candidates import is_constant, is_float
from tfconvert.converter.targets.litert.quantize.exclusion import Exclusion
from tfconvert.converter.targets.litert.stages import STAGES
from tfconvert.converter.targets.litert.tflite_file import export_file
from tfconvert.exporters.tflite.model import Place, TFLiteFile, export
from tfconvert.importers.source import Source
from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.limits import limited
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize

_FLOATS = before(STAGES, "prepare-quantize")
_REST = STAGES[len(_FLOATS) :]


class FloatForm(NamedTuple):
    """The file of floats.

    Attributes:
        file: The file.
        nodes: The nodes of the tensors of its first subgraph.
        readers: For each node, those that read its results.
    """

    file: TFLiteFile
    nodes: Mapping[int, str]
    readers: Mapping[str, Sequence[str]]


class QuantizedForm(NamedTuple):
    """A quantized file.

    Attributes:
        file: The file.
        nodes: The nodes that became integers, at least in part.
    """

    file: TFLiteFile
    nodes: frozenset[str]


class Forms:
    """A model before it is quantized.

    Args:
        source: The model.
        options: The settings of its conversion.
        quantize: Those of its quantization; what is read only once is not read again.
    """

    def __init__(self, source: Source, options: Options, quantize: Quantize) -> None:
        self._options = options._replace(keep_graphs=False, check_passes=False)
        # The ranges are known from the conversion itself, if they were kept.
        samples = quantize.samples if quantize.calibration is None else None
        self._quantize = replace(quantize, samples=samples, progress=None)
        with limited(options.limits):
            self._module = source.open(functional=True)
            for _ in run_stages(self._module, _FLOATS, self._options):
                pass

    def nodes(self, layers: Iterable[LayerReport], exclude: Sequence[str] = ()) -> frozenset[str]:
        """Returns the nodes that are quantized, at least in part.

        Args:
            layers: The layers that quantizing activations has reported.
            exclude: Patterns of those that stay float, beside those of the conversion.
        """
        if self._quantize.is_static:
            return frozenset(layer.node for layer in layers if layer.form != FLOAT and layer.node)
        exclusion = Exclusion((*self._quantize.exclude, *exclude))
        weighted = (
            op for op in _ops(self._module) if any(is_constant(value) and is_float(value) for value in op.operands)
        )
        return frozenset(node_of(op.location) for op in weighted if not exclusion.excludes(op)) - {""}

    def floats(self) -> FloatForm:
        """Returns the model of floats."""
        module = self._module.clone({})
        with limited(self._options.limits):
            for _ in run_stages(module, _REST, self._options._replace(quantize=None)):
                pass
            places: dict[Value, Place] = {}
            file = export(module, places=places, restate=True)
        nodes = {
            place.tensor: node_of(value.owner.location)
            for value, place in places.items()
            if place.subgraph == 0 and isinstance(value.owner, Operation)
        }
        return FloatForm(file, nodes, _readers(module))

    def quantized(self, exclude: Sequence[str]) -> QuantizedForm:
        """Returns the quantized model with further layers of floats.

        Args:
            exclude: Patterns of them.
        """
        module = self._module.clone({})
        quantize = replace(self._quantize, exclude=(*self._quantize.exclude, *exclude))
        layers: list[LayerReport] = []
        with limited(self._options.limits):
            for done in run_stages(module, _REST, self._options._replace(quantize=quantize)):
                layers += done.result.layers
            file = export_file(module, allow_custom_ops=self._options.allow_custom_ops, quantize=quantize)
        return QuantizedForm(file, self.nodes(layers, exclude))


def _readers(module: ModuleOp) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for op in _ops(module):
        for use in (use for result in op.results for use in result.uses):
            if isinstance(use.operation, tfl.TFLOp):
                found.setdefault(node_of(op.location), {})[node_of(use.operation.location)] = None
    return {node: [each for each in readers if each and each != node] for node, readers in found.items()}


def _ops(module: ModuleOp) -> Iterator[Operation]:
    """Yields the operators that compute something."""
    return (op for op in module.walk() if isinstance(op, tfl.TFLOp) and op.op_name not in tfl.BESIDE)
