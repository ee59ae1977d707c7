"""Findings about a model, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tfconvert.converter.ir.interface import Interface, Tensor
from tfconvert.schema.diagnostics import Diagnostic
from tfconvert.schema.tflite.operators import needs_registration
from tfconvert.tools.inspection import Inspection
from tfconvert.tools.litert_file import LiteRTFile, OperatorUse

# How many rows of a table are shown unless all are asked for.
_FEW = 12

_CONVERTED = "yes: the conversion was run, but for reading and writing weights"


def to_text(inspection: Inspection, *, verbose: bool = False) -> str:
    """Returns the text.

    Args:
        inspection: What was found out.
        verbose: Whether to list everything instead of the first few.
    """
    most = None if verbose else _FEW
    lines = [_title(inspection)]
    if inspection.converts is not None:
        lines += _verdict(inspection)
    lines += _model(inspection, most)
    if inspection.litert is not None:
        lines += _litert(inspection.litert, inspection.converts is None, most)
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
    for each in (*inspection.problems, *inspection.notes):
        lines += _diagnostic(each)
    return lines


def _diagnostic(diagnostic: Diagnostic) -> list[str]:
    first, *rest = f"{diagnostic.severity}: {diagnostic} [{diagnostic.code}]".splitlines()
    return [f"    {first}", *(f"    {line}" for line in rest)]


def _model(inspection: Inspection, most: int | None) -> list[str]:
    lines = []
    if inspection.graphs:
        lines.append("  tags: " + "; ".join(",".join(graph.tags) or "(none)" for graph in inspection.graphs))
    model = inspection.model
    if model is None:
        return lines
    lines += _signatures(model.signatures)
    lines += _counts("TensorFlow ops", model.operations, most)
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
    lines.append(f"  memory of activations: {_activations(file.activations)}")
    for note in file.notes if is_source else ():
        lines += [line.removeprefix("  ") for line in _diagnostic(note)]
    lines += _table("LiteRT operators", map(_operator, file.operators), sum(use.calls for use in file.operators), most)
    return lines


def _activations(activations: Mapping[str, int]) -> str:
    sizes = set(activations.values())
    if len(sizes) == 1:
        text = _bytes(sizes.pop())
    else:
        text = ", ".join(f"{_bytes(size)} for {name}" for name, size in activations.items())
    return f"at least {text}, where open sizes are 1"


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
        lines.append(f"    ... and {len(rows) - len(shown)} more kinds (-v shows all)")
    return lines


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _bytes(size: int) -> str:
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.2f} {name}" if unit > 1000 else f"{size / unit:.1f} {name}"
    return f"{size} B"
