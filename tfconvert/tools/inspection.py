"""Inspects a model: its contents, and whether it can be converted, which a trial conversion finds out.

The trial runs a whole conversion except for reading and writing weights: import, all passes, and the tables of the
file. It therefore reports the same as the conversion, at a cost that doesn't depend on the size of the weights.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfconvert import conversion
from tfconvert.converter.ir.interface import Interface, Tensor, interfaces
from tfconvert.converter.process.interpreter import with_room
from tfconvert.converter.targets.litert.accelerator_check import Acceptance, check
from tfconvert.exporters.tflite.file import TFLiteFile
from tfconvert.importers.containment import SAVED_MODEL_FILES
from tfconvert.importers.open_model import is_stablehlo
from tfconvert.importers.saved_model import MetaGraphInfo, graphs_in, is_saved_model
from tfconvert.importers.source import Source
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.diagnostics import SAME_SIGNATURE, ConversionError, Diagnostic
from tfconvert.schema.dialects import tensor_data, tf
from tfconvert.schema.dialects.tensor_data import TensorData
from tfconvert.schema.dialects.tf_saved_model import AssetOp, GlobalTensorOp
from tfconvert.schema.files import is_folder
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tflite.operators import needs_registration
from tfconvert.schema.tflite.reader import read_model
from tfconvert.settings.options import Options
from tfconvert.settings.targets import LiteRT
from tfconvert.tools.litert_file import CompositeUse, LiteRTFile, OperatorUse, describe, read_file

_CONTROL_FLOW = frozenset(
    {
        "tf.If",
        "tf.StatelessIf",
        "tf.IfRegion",
        "tf.Case",
        "tf.StatelessCase",
        "tf.CaseRegion",
        "tf.While",
        "tf.StatelessWhile",
        "tf.WhileRegion",
        "tf_executor.Switch",
        "tf_executor._SwitchN",
        "tf_executor.Merge",
        "tf_executor.Enter",
        "tf_executor.Exit",
        "stablehlo.case",
        "stablehlo.if",
        "stablehlo.while",
        "tfl.if",
        "tfl.while",
    }
)
_DIALECTS = ("tf.", "tfl.", "stablehlo.", "chlo.")
_NO_WORK = frozenset(
    {
        "stablehlo.constant",
        "stablehlo.return",
        "tf.Const",
        "tf.NoOp",
        "tf.VarHandleOp",
        "tf.ReadVariableOp",
        "tfl.pseudo_const",
    }
)


class InspectedModule(NamedTuple):
    """The contents of a TensorFlow model.

    Attributes:
        tensorflow_version: The version that wrote it; empty if unknown.
        signatures: Its signatures; `main` for a graph without.
        operations: The count of each op, except constants and reads of variables; ops of a function count once,
            regardless of its number of calls.
        control_flow: How many times each kind of conditional or loop occurs, those of TensorFlow 1 as their parts.
        variables: How many variables are used.
        variable_bytes: The bytes of their values.
        assets: The vocabularies and other files that it reads.
    """

    tensorflow_version: str
    signatures: tuple[Interface, ...]
    operations: Mapping[str, int]
    control_flow: Mapping[str, int]
    variables: int
    variable_bytes: int
    assets: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        return {
            "tensorflow_version": self.tensorflow_version,
            "signatures": [interface.to_dict() for interface in self.signatures],
            "operations": dict(self.operations),
            "control_flow": dict(self.control_flow),
            "assets": list(self.assets),
        }


def facts_of(module: ModuleOp) -> InspectedModule:
    """Returns the contents of an imported module."""
    names = Counter(op.name for op in module.walk())
    variables = variables_of(module)
    version = module.attributes.get(tf.PRODUCER_VERSION)
    assets = (op.properties.get("filename") for op in module.ops if isinstance(op, AssetOp))
    return InspectedModule(
        version.data if isinstance(version, StringAttr) else "",
        tuple(each._replace(keys=(*each.other_keys, *each.keys)) for each in interfaces(module)),
        _ranked({name: count for name, count in names.items() if name.startswith(_DIALECTS) and name not in _NO_WORK}),
        _ranked({name: count for name, count in names.items() if name in _CONTROL_FLOW}),
        len(variables),
        sum(map(_nbytes, variables)),
        tuple(sorted(name.data for name in assets if isinstance(name, StringAttr))),
    )


def variables_of(module: ModuleOp) -> list[GlobalTensorOp]:
    """Returns the variables of a module that are not constants yet."""
    return [op for op in module.ops if isinstance(op, GlobalTensorOp)]


def _nbytes(variable: GlobalTensorOp) -> int:
    value = variable.properties.get("value")
    if isinstance(value, TensorData):
        return value.nbytes
    return tensor_data.to_array(value).nbytes if value is not None and tensor_data.is_constant(value) else 0


def _ranked(counts: Mapping[str, int]) -> dict[str, int]:
    """Returns counts without the dialect's prefix, largest first, equal ones by name."""
    ranking = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {name.partition(".")[2]: count for name, count in ranking}


_FREEZE = "freeze-variables"
_FORMATS = {
    ".pb": "GraphDef",
    ".pbtxt": "GraphDef",
    ".prototxt": "GraphDef",
    ".mlir": "MLIR",
    ".keras": "Keras",
    ".h5": "Keras",
    ".hdf5": "Keras",
}


class Inspection(NamedTuple):
    """Findings about a model.

    Attributes:
        source: Its path.
        format: `SavedModel`, `GraphDef`, `MetaGraph`, `MLIR`, `StableHLO`, `Keras` or `LiteRT`.
        size: Bytes of its files.
        graphs: SavedModels: the graphs in it.
        converts: Whether it can be converted; `None` for a LiteRT file.
        problems: Why it won't.
        notes: Notes of the conversion, or for users of a LiteRT file.
        model: Its contents; `None` for a LiteRT file, or if it can't be imported.
        mutable_variables: The number of variables that stay variables; `None` if unknown.
        litert: The LiteRT file that it is or becomes, or `None`.
        acceptances: What the accelerators take of it that the options name.
    """

    source: str
    format: str
    size: int
    graphs: tuple[MetaGraphInfo, ...] = ()
    converts: bool | None = None
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    model: InspectedModule | None = None
    mutable_variables: int | None = None
    litert: LiteRTFile | None = None
    acceptances: tuple[Acceptance, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data, in a stable order."""
        return {
            "source": self.source,
            "format": self.format,
            "size": self.size,
            "graphs": [graph._asdict() for graph in self.graphs],
            "converts": self.converts,
            "errors": [problem.to_dict() for problem in self.problems],
            "notes": [note.to_dict() for note in self.notes],
            "model": None if self.model is None else {**self.model.to_dict(), "variables": self._variables()},
            "litert": None if self.litert is None else self.litert.to_dict(),
            **({"accelerators": [each.to_dict() for each in self.acceptances]} if self.acceptances else {}),
        }

    def __str__(self) -> str:
        return to_text(self)

    def __repr__(self) -> str:
        return to_text(self)

    def _variables(self) -> dict[str, int | None]:
        assert self.model is not None
        mutable = self.mutable_variables
        frozen = None if mutable is None else self.model.variables - mutable
        return {"count": self.model.variables, "bytes": self.model.variable_bytes, "frozen": frozen, "mutable": mutable}


@with_room
def inspect(source: Source, options: Options) -> Inspection:
    """Returns the findings about a model.

    Args:
        source: The model, a path.
        options: The settings of the conversion.
    """
    path = Path(source.name)
    if path.suffix == ".tflite":
        file = read_file(source.name)
        wanted = options.target.accelerator if isinstance(options.target, LiteRT) else ()
        module = import_tflite(source.name) if wanted else None
        acceptances = tuple(check(module, name, path.read_bytes) for name in wanted) if module is not None else ()
        return Inspection(source.name, "LiteRT", _size(path), notes=file.notes, litert=file, acceptances=acceptances)
    if path.name in SAVED_MODEL_FILES:
        path = path.parent  # The importer expects the directory.
    has_graphs = is_saved_model(path)
    known = Inspection(
        source.name,
        "SavedModel" if has_graphs else _format(path),
        _size(path),
        graphs_in(path, follow_links=source.follow_links) if has_graphs else (),
    )
    source = source.importable()
    try:
        return _tried(known, source, options)
    finally:
        source.discard()


def _format(path: Path) -> str:
    return "StableHLO" if is_stablehlo(path) else _FORMATS.get(path.suffix, "MetaGraph")


def _tried(known: Inspection, source: Source, options: Options) -> Inspection:
    """Returns the findings about a model with those of a trial conversion.

    Raises:
        ConversionError: It can't be imported.
    """
    watch = _Watch()
    try:
        file, report = conversion.run(source, conversion.checked(options), watch.stage, watch.imported)
    except ConversionError as problem:
        if watch.facts is None:
            raise
        return known._replace(
            converts=False, problems=problem.diagnostics, model=watch.facts, mutable_variables=watch.mutable
        )
    assert isinstance(file, TFLiteFile), "the target is LiteRT"
    tables = describe(read_model(file.tables), file.size, sum(file.bytes_by_operator.values()))
    return known._replace(
        converts=True,
        notes=report.notes,
        model=watch.facts,
        mutable_variables=watch.mutable,
        litert=tables,
        acceptances=report.acceptances,
    )


class _Watch:
    """Records facts about a module on its way through a conversion.

    Attributes:
        facts: Its contents after import; `None` before.
        mutable: The number of variables after the others became constants; `None` before.
    """

    def __init__(self) -> None:
        self.facts: InspectedModule | None = None
        self.mutable: int | None = None
        self._module: ModuleOp | None = None
        self._last = ""

    def imported(self, module: ModuleOp) -> None:
        """Called with the imported module."""
        self._module, self.facts = module, facts_of(module)

    def stage(self, name: str) -> None:
        """Called before each stage."""
        if self._last == _FREEZE and self._module is not None:
            self.mutable = len(variables_of(self._module))
        self._last = name


def _size(path: Path) -> int:
    """Returns the bytes of a model's files: all in a SavedModel's directory, and a MetaGraph's checkpoint."""
    if is_folder(path):
        return sum(_size_of(Path(folder, name)) for folder, _, names in os.walk(path) for name in names)
    if path.suffix == ".meta":
        return sum(_size_of(file) for file in path.parent.glob(f"{path.stem}.*"))
    return _size_of(path)


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


# Maximum number of rows of a table without `verbose`.
_MAX_ROWS = 12

_CONVERTED = "yes (tried without reading the weights)"


def to_text(inspection: Inspection, *, verbose: bool = False) -> str:
    """Returns the text.

    Args:
        inspection: The findings.
        verbose: Whether to list everything instead of the first few.
    """
    most = None if verbose else _MAX_ROWS
    lines = [_title(inspection)]
    if inspection.converts is not None:
        lines += _verdict(inspection)
    lines += _model_lines(inspection, most)
    if inspection.litert is not None:
        lines += _litert(inspection.litert, inspection.converts is None, most)
    for acceptance in inspection.acceptances:
        lines += [f"  {line}" for line in acceptance.lines(most)]
    return "\n".join(lines)


def _title(inspection: Inspection) -> str:
    version = inspection.model.tensorflow_version if inspection.model is not None else ""
    parts = [inspection.format, f"written by TensorFlow {version}" if version else "", _bytes(inspection.size)]
    return f"{inspection.source}: {', '.join(part for part in parts if part)}"


def _verdict(inspection: Inspection) -> list[str]:
    if inspection.converts:
        lines = [f"  converts: {_CONVERTED}"]
    else:
        count = len(inspection.problems)
        lines = [f"  converts: no, {count} problem{'s' if count > 1 else ''}:"]
    # The signatures are listed with all their names.
    for each in (*inspection.problems, *(note for note in inspection.notes if note.code != SAME_SIGNATURE)):
        lines += _diagnostic(each)
    return lines


def _diagnostic(diagnostic: Diagnostic) -> list[str]:
    first, *rest = f"{diagnostic.severity}: {diagnostic} [{diagnostic.code}]".splitlines()
    return [f"    {first}", *(f"    {line}" for line in rest)]


def _model_lines(inspection: Inspection, most: int | None) -> list[str]:
    lines = []
    if inspection.graphs:
        lines.append("  tags: " + "; ".join(",".join(graph.tags) or "(none)" for graph in inspection.graphs))
    model = inspection.model
    if model is None:
        return lines
    lines += _signatures(model.signatures)
    lines += _counts("StableHLO ops" if inspection.format == "StableHLO" else "TensorFlow ops", model.operations, most)
    lines.append(f"  control flow: {_listed(model.control_flow) or 'none'}")
    lines.append(f"  variables: {_variables(inspection)}")
    if model.assets:
        lines.append(f"  assets: {', '.join(model.assets)}")
    return lines


def _variables(inspection: Inspection) -> str:
    model, mutable = inspection.model, inspection.mutable_variables
    if model is None or not model.variables:
        return "none"
    text = f"{model.variables}, {_bytes(model.variable_bytes)}"
    if mutable is None:
        return text
    return f"{text}, {model.variables - mutable} frozen, {mutable} mutable" if mutable else f"{text}, all frozen"


def _litert(file: LiteRTFile, is_source: bool, most: int | None) -> list[str]:
    lines = [] if is_source else [f"  result: {_bytes(file.size)}, of which {_bytes(file.constants)} constants"]
    if is_source:
        lines.append(f"  written by: {file.description or '(not said)'}")
        lines += _signatures(file.signatures)
        lines.append(f"  constants: {_bytes(file.constants)}, {_listed(file.constant_types) or 'none'}")
        lines.append(f"  computed tensors: {_listed(file.computed_types) or 'none'}")
        if file.metadata:
            lines.append("  metadata: " + ", ".join(f"{name} {_bytes(size)}" for name, size in file.metadata.items()))
    if file.subgraphs > 1:
        lines.append(f"  subgraphs: {file.subgraphs}")
    custom = [use.name for use in file.operators if use.is_custom and needs_registration(use.name)]
    registered = f", with these registered: {', '.join(custom)}" if custom else ""
    lines.append(f"  runtime: {file.min_runtime_version or 'any'} or later{registered}")
    is_open = any(None in (tensor.shape or ()) for each in file.signatures for tensor in each.inputs)
    if file.arena is not None:
        stored = ", with dynamic sizes as stored" if is_open else ""
        lines.append(f"  arena of the main graph: {_bytes(file.arena)}{stored}")
    else:
        least = ", where dynamic sizes are 1" if is_open else ""
        lines.append(f"  memory of activations: {_activations(file.activations)}{least}")
    for note in file.notes if is_source else ():
        lines += [line.removeprefix("  ") for line in _diagnostic(note)]
    if file.composites:
        calls = sum(use.calls for use in file.composites)
        lines += _table("composites", map(_composite, file.composites), calls, most)
    lines += _table("LiteRT operators", map(_operator, file.operators), sum(use.calls for use in file.operators), most)
    return lines


def _activations(activations: Mapping[str, int]) -> str:
    sizes = set(activations.values())
    if len(sizes) == 1:
        text = _bytes(sizes.pop())
    else:
        text = ", ".join(f"{_bytes(size)} for {name}" for name, size in activations.items())
    return f"at least {text}"


def _composite(use: CompositeUse) -> tuple[str, str]:
    attributes = ", ".join(f"{name} {_attribute(value)}" for name, value in use.attributes.items())
    return use.name, f"{use.calls:>5}  {attributes}".rstrip()


def _attribute(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _operator(use: OperatorUse) -> tuple[str, str]:
    return use.name, f"{use.calls:>5}  version {use.version}{', custom' if use.is_custom else ''}"


def _signatures(signatures: Sequence[Interface]) -> list[str]:
    lines = ["  signatures:"]
    for each in signatures:
        lines.append(f"    {', '.join(each.keys) or each.function}")
        tensors = [*(("in", tensor) for tensor in each.inputs), *(("out", tensor) for tensor in each.outputs)]
        width = max((len(tensor.name) for _, tensor in tensors), default=0)
        lines += [f"      {side:<3}  {tensor.name:<{width}}  {_tensor(tensor)}" for side, tensor in tensors]
    return lines


def _tensor(tensor: Tensor) -> str:
    if tensor.shape is None:
        dims = "of any rank"
    else:
        dims = f"[{', '.join('?' if dim is None else str(dim) for dim in tensor.shape)}]"
    scale = "" if tensor.scale is None else f", scale {tensor.scale:.6g}, zero point {tensor.zero_point}"
    return f"{tensor.dtype} {dims}{scale}"


def _counts(title: str, counts: Mapping[str, int], most: int | None) -> list[str]:
    return _table(title, ((name, f"{count:>5}") for name, count in counts.items()), sum(counts.values()), most)


def _table(title: str, rows: Iterable[tuple[str, str]], total: int, most: int | None) -> list[str]:
    rows = list(rows)
    shown = rows[:most]
    width = max((len(name) for name, _ in shown), default=0)
    lines = [f"  {title}: {total}", *(f"    {name:<{width}}  {value}" for name, value in shown)]
    if len(shown) < len(rows):
        lines.append(f"    ... and {len(rows) - len(shown)} more (-v shows all)")
    return lines


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _bytes(size: int) -> str:
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.2f} {name}" if unit > 1000 else f"{size / unit:.1f} {name}"
    return f"{size} B"
