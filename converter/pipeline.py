"""The pipeline: which passes run, in which order and why (design §5).

Imports are late where they are, so that asking for help or making a mistake costs nothing.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from converter.options import Options
from converter.report import Report, Stage
from schema.diagnostics import WARNING, Diagnostic, error

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from converter.interface import Interface
    from exporters.tflite.model import TFLiteFile

Result = TypeVar("Result")


class Pass(Protocol):
    """A rewrite of a whole module."""

    @property
    def name(self) -> str:
        """The name in `-p` and in the report; the file's name with dashes."""

    def apply(self, module: ModuleOp) -> Counter[str] | None:
        """Rewrites the module in place; may return how often each of its patterns was applied."""


@dataclass(frozen=True, slots=True)
class Step:
    """A pass in the pipeline.

    Attributes:
        run: The pass.
        because: Why it stands here.
        forbids: Prefixes of op names that no op has afterwards; what the next steps rely on.
    """

    run: Pass
    because: str
    forbids: tuple[str, ...] = ()

    def broken_by(self, module: ModuleOp) -> str | None:
        """Returns the name of an op that should be gone, `None` if the step did what it ensures."""
        return (
            next((op.name for op in module.walk() if op.name.startswith(self.forbids)), None) if self.forbids else None
        )


def steps(options: Options) -> list[Step]:
    """Returns the passes from an imported module to one that the exporter takes."""
    from converter.passes.canonicalize import Canonicalize
    from converter.passes.cse import CommonSubexpressions
    from converter.passes.executor_to_functional import ExecutorToFunctional
    from converter.passes.freeze_variables import FreezeVariables
    from converter.passes.inline import Inline
    from converter.passes.legalize import Legalize
    from converter.passes.merge_functions import MergeFunctions
    from converter.passes.optimize import Optimize
    from converter.passes.shape_inference import ShapeInference

    return [
        Step(MergeFunctions(), "signatures that compute the same are equal while their callees still stand"),
        Step(ExecutorToFunctional(), "every later pass works on plain ops in program order", ("tf_executor.",)),
        Step(Inline(), "folding and fusing see through calls", ("tf.PartitionedCall", "tf.StatefulPartitionedCall")),
        Step(FreezeVariables(), "weights are constants from here on"),
        Step(Canonicalize(), "nothing stands between a constant and its use"),
        Step(ShapeInference(), "legalization asks for shapes and constant operands"),
        Step(Legalize(allow_custom_ops=options.allow_custom_ops), "only ops that LiteRT has are left", ("tf.",)),
        Step(CommonSubexpressions(), "what is computed twice reads its operand twice, which hinders fusing"),
        Step(Optimize(), "fusing needs the target's ops, which have fused forms"),
        Step(CommonSubexpressions(), "what folding made twice is kept once"),
    ]


class _CollectorPause:
    """Keeps the cycle collector from walking the whole IR again and again while it only grows.

    Several threads may convert at once: the first to come switches the collector off, the last to go switches it on.
    """

    __slots__ = ("_inside", "_lock", "_was_enabled")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *problem: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._was_enabled:
                gc.enable()


_COLLECTOR_PAUSE = _CollectorPause()


def import_model(model: str | Path, options: Options) -> ModuleOp:
    """Returns the module of a SavedModel folder or a GraphDef file.

    Raises:
        ConversionError: It is neither, or can't be imported.
    """
    from importers.graph_def import import_graph_def
    from importers.saved_model import import_saved_model, is_saved_model

    path = Path(model)
    if path.name in ("saved_model.pb", "saved_model.pbtxt"):
        path = path.parent
    if path.is_dir() or is_saved_model(path) or not path.exists():
        for name, value in (("inputs", options.inputs), ("outputs", options.outputs)):
            if value is not None:
                raise error("wrong-option", f"{name} names tensors of a GraphDef; a SavedModel has signatures",
                            hint="choose signatures instead")  # fmt: skip
        return import_saved_model(path, options.signatures, options.tags, options.input_shapes)
    if path.suffix in (".pb", ".pbtxt", ".prototxt"):
        return import_graph_def(path, options.inputs, options.outputs, options.input_shapes)
    raise error("unknown-format", f"{path} is neither a SavedModel folder nor a GraphDef (.pb, .pbtxt)",
                hint="export the model with tf.saved_model.save or model.export")  # fmt: skip


def run(
    model: str | Path, options: Options, on_stage: Callable[[str], None] = lambda name: None
) -> tuple[TFLiteFile, Report]:
    """Converts a model: import, the passes, the file's tables.

    Args:
        model: A SavedModel folder or a GraphDef file.
        options: The settings.
        on_stage: Called with each stage's name before it runs.

    Raises:
        ConversionError: The model can't be converted.
    """
    report = Report(str(model))

    def timed(name: str, work: Callable[[], Result]) -> Result:
        on_stage(name)
        start = time.perf_counter()
        result = work()
        report.stages.append(Stage(name, time.perf_counter() - start))
        return result

    with _COLLECTOR_PAUSE:
        pipeline = timed("load", lambda: _load(options))
        module = timed("import", lambda: import_model(model, options))
        for step in pipeline:
            applied = timed(step.run.name, partial(step.run.apply, module))
            if applied:
                report.rewrites[step.run.name] = report.rewrites.get(step.run.name, Counter()) + applied
            if step.run.name == "inline":
                report.operations_before = count_operations(module)
        file = timed("export", lambda: _export(module, options))
    report.notes += _notes(report.rewrites)
    report.interfaces = _interfaces(module)
    report.size = file.size
    report.operators = file.operators
    report.bytes_by_operator = file.bytes_by_operator
    return file, report


def _interfaces(module: ModuleOp) -> list[Interface]:
    from converter.interface import interfaces

    return list(interfaces(module))


def _notes(rewrites: Mapping[str, Counter[str]]) -> list[Diagnostic]:
    """Returns what the passes have dropped or changed so that it may show in the results."""
    from converter.legalize import table
    from converter.passes import canonicalize

    texts = {**canonicalize.NOTES, **table.notes()}
    return [
        Diagnostic("unchecked-or-inexact", f"{texts[pattern]} ({count} of them)", severity=WARNING)
        for applied in rewrites.values()
        for pattern, count in applied.items()
        if pattern in texts
    ]


def _load(options: Options) -> list[Step]:
    """Imports what every conversion needs, so that the report tells this time from the work's; returns the passes."""
    import exporters.tflite.model  # noqa: F401
    import importers.saved_model  # noqa: F401

    return steps(options)


def _export(module: ModuleOp, options: Options) -> TFLiteFile:
    from exporters.tflite.metadata import Origin
    from exporters.tflite.model import export
    from schema.dialects import tf, tf_saved_model

    version = module.attributes.get(tf.PRODUCER_VERSION)
    origin = Origin(
        model_type="TF_SAVED_MODEL" if tf_saved_model.SEMANTICS in module.attributes else "NONE",
        tensorflow_version=str(tf.python_value(version)) if version is not None else "",
        allow_custom_ops=options.allow_custom_ops,
    )
    return export(module, origin=origin)


_STRUCTURE = ("func.", "builtin.", "tf_saved_model.")
_NO_WORK = frozenset({"tf.Const", "tf.VarHandleOp", "tf.ReadVariableOp", "tf.NoOp"})


def count_operations(module: ModuleOp) -> Counter[str]:
    """Returns how many ops of each name compute something, without their dialect's prefix."""
    names = Counter(op.name for op in module.walk())
    return Counter({
        name.partition(".")[2]: count
        for name, count in names.items()
        if name not in _NO_WORK and not name.startswith(_STRUCTURE)
    })  # fmt: skip
