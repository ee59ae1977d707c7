"""The pipeline: which passes run, in which order and why (design §5).

Imports are late where they are, so that asking for help or making a mistake costs nothing.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tfconvert.converter.options import Options
from tfconvert.converter.presence import EVERYTHING, NOTHING, Presence, presence_in
from tfconvert.converter.report import Report, Stage
from tfconvert.converter.step import Instrument, Step, apply_watched, notes_of
from tfconvert.schema.diagnostics import WARNING, ConversionError, Diagnostic, error

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tfconvert.converter.interface import Interface
    from tfconvert.exporters.tflite.model import TFLiteFile

Result = TypeVar("Result")


def steps(options: Options, present: Presence = EVERYTHING) -> list[Step]:
    """Returns the passes from an imported module to one that the exporter takes.

    Args:
        options: The settings.
        present: What the model has; passes for what it hasn't are left out, and not even loaded.
    """
    from tfconvert.converter.passes.canonicalize import Canonicalize
    from tfconvert.converter.passes.cse import CommonSubexpressions
    from tfconvert.converter.passes.executor_to_functional import ExecutorToFunctional
    from tfconvert.converter.passes.freeze_variables import FreezeVariables
    from tfconvert.converter.passes.initialize_state import InitializeState
    from tfconvert.converter.passes.inline import Inline
    from tfconvert.converter.passes.legalize import Legalize
    from tfconvert.converter.passes.merge_functions import MergeFunctions
    from tfconvert.converter.passes.optimize import Optimize
    from tfconvert.converter.passes.shape_inference import ShapeInference
    from tfconvert.converter.rewrite import user_patterns

    fuses_loops = options.fuse_recurrent
    flow = _late("control_flow_passes", present.control_flow)
    composites = _late("passes.prepare_composite_functions", present.composites)
    resource_ops = _late("passes.decompose_resource_ops", present.resource_ops)
    variables = _late("passes.forward_variables", present.resource_ops)
    reads = _late("passes.separate_reads", present.resource_ops)
    tables = _late("passes.lower_tables", present.tables)
    unrolled = _late("passes.fuse_unrolled_layers", present.unrolled_layers and fuses_loops)
    sequences = _late("passes.separate_state", present.sequences)
    fusions = composites and composites.table.checked(options.composites, "composites")
    on_tf = user_patterns.of_dialect(options.patterns, "tf.")
    table = [
        Step(MergeFunctions(), "signatures that compute the same are equal while their callees still stand"),
        flow and Step(flow.FunctionalizeLoops(), "a frame's switches and merges are no conditional's"),
        flow and Step(flow.FunctionalizeConditionals(), "what runs only at times is in functions, so islands are all"),
        Step(ExecutorToFunctional(), "every later pass works on plain ops in program order", ("tf_executor.",)),
        composites and Step(composites.PrepareCompositeFunctions(options.allow_custom_ops, fusions, fuses_loops),
                            "marked functions still stand, and what is in their bodies need not be converted"),
        flow and Step(flow.RegionsToFunctional(), "later passes know one form of control flow",
                      ("tf.IfRegion", "tf.CaseRegion", "tf.WhileRegion")),
        flow and Step(flow.TensorArraysToLists(), "lists are one kind of thing, and a handle no variable",
                      ("tf.TensorArray",)),
        Step(Inline(), "folding and fusing see through calls", ("tf.PartitionedCall", "tf.StatefulPartitionedCall")),
        flow and Step(flow.UniqueCallees(), "what a branch or a loop takes is what one op hands to it"),
        flow and Step(flow.StacksToLists(), "a function that is used once shows which stack it pushes to",
                      ("tf.Stack",)),
        flow and Step(flow.SinkHandles(), "which variable a loop reads is to be seen where it reads it"),
        resource_ops and Step(resource_ops.DecomposeResourceOps(),
                              "a variable that is gathered from is only read, and may be frozen"),
        Step(FreezeVariables(), "weights are constants from here on"),
        variables and Step(variables.ForwardVariables(), "what is still read is written somewhere, maybe just before"),
        Step(Canonicalize(), "nothing stands between a constant and its use"),
        flow and Step(flow.MarkStateless(), "asserts are gone, so that most of control flow has no effects any more"),
        Step(ShapeInference(), "legalization asks for shapes and constant operands"),
        flow and Step(flow.SimplifyControlFlow(), "constants decide branches; the rest hands on what is used"),
        flow and Step(flow.LowerTensorLists(), "it asks for the ranks of elements; LiteRT has tensors only",
                      ("tf.TensorList", "tf.EmptyTensorList")),
        flow and Step(flow.ShareShapes(), "lists have become tensors, of shapes that others have"),
        flow and fuses_loops and Step(flow.FuseRecurrentLoops(),
                                      "sequences are tensors, and their cells still TensorFlow's ops"),
        unrolled and Step(unrolled.FuseUnrolledLayers(),
                          "which shapes are equal is known, and cells are still TensorFlow's ops"),
        flow and Step(CommonSubexpressions(), "variables that begin alike begin as one value"),
        flow and Step(flow.MergeLoopVariables(), "what is one value before a loop may be one in it"),
        *([Step(Canonicalize(on_tf), "the user's patterns see shapes and constants, but no kernel's limits"),
           Step(ShapeInference(), "what the user's patterns make has shapes, too")] if on_tf else []),
        flow and Step(flow.PrepareControlFlow(), "which conditions are booleans only shapes tell; LiteRT has no Case"),
        tables and Step(tables.LowerTables(),
                        "what fills them is constants by now, and looking up is plain ops partly"),
        Step(InitializeState(), "which state is left is certain: what is never written is a constant"),
        Step(Legalize(allow_custom_ops=options.allow_custom_ops), "only ops that LiteRT has are left", ("tf.",)),
        Step(CommonSubexpressions(), "what is computed twice reads its operand twice, which hinders fusing"),
        Step(Optimize(user_patterns.of_dialect(options.patterns, "tfl.")),
             "fusing needs the target's ops, which have fused forms"),
        Step(CommonSubexpressions(), "what folding made twice is kept once"),
        reads and Step(reads.SeparateReads(), "what reads one variable may be merged until here, but crashes"),
        flow and Step(flow.SeparateResults(), "copies for the runtime's sake, which every pass before would take away"),
        sequences and Step(sequences.SeparateState(), "states that begin alike would be one to every pass before"),
    ]  # fmt: skip
    return [step for step in table if isinstance(step, Step)]


def _late(module: str, is_needed: bool) -> Any:
    """Returns a module of the converter with passes that most models have no need of, `None` where they aren't."""
    return import_module(f"tfconvert.converter.{module}") if is_needed else None


def names_of(steps: Sequence[Step]) -> list[str]:
    """Returns the names of steps' passes, in order."""
    return [step.run.name for step in steps]


PIPELINES: Mapping[str, str | None] = {"tflite": None, "tf-standard": "initialize-state"}
"""Pipelines that can be asked for by name: the whole conversion, and what stands before one of its passes."""


def named_pipeline(name: str, options: Options) -> list[Step]:
    """Returns the steps of one of `PIPELINES`."""
    whole = steps(options)
    end = PIPELINES[name]
    return whole if end is None else whole[: names_of(whole).index(end)]


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
    """Returns the module of a SavedModel folder, a GraphDef file, a MetaGraph, MLIR text or a `.tflite` file.

    Raises:
        ConversionError: It is none of these, or can't be imported.
    """
    from tfconvert.importers.saved_model import import_saved_model, is_saved_model

    path = Path(model)
    if path.name in ("saved_model.pb", "saved_model.pbtxt"):
        path = path.parent
    if is_saved_model(path):
        _refuse(options, ("inputs", "outputs"), "names tensors of a GraphDef; a SavedModel has signatures",
                "choose signatures instead")  # fmt: skip
        return import_saved_model(path, options.signatures, options.tags, options.input_shapes)
    if path.suffix in (".pb", ".pbtxt", ".prototxt") and path.exists():
        from tfconvert.importers.graph_def import import_graph_def

        return import_graph_def(path, options.inputs, options.outputs, options.input_shapes)
    if path.suffix in (".mlir", ".tflite"):
        _refuse(options, ("inputs", "outputs", "input_shapes", "signatures", "tags"),
                f"chooses what to import of a TensorFlow model; {path.name} is imported whole")  # fmt: skip
        return _import_ir(path)
    from tfconvert.importers.meta_graph import find_meta_graph, import_meta_graph

    meta_graph = find_meta_graph(path)
    if meta_graph is not None:
        _refuse(options, ("tags",), "chooses a graph of a SavedModel; a MetaGraph is a single one")
        return import_meta_graph(meta_graph, options.inputs, options.outputs, options.input_shapes, options.signatures)
    if path.is_dir() or not path.exists():
        return import_saved_model(path)
    raise error("unknown-format", f"{path} is no SavedModel folder, GraphDef (.pb, .pbtxt), MetaGraph (.meta), "
                "MLIR text or .tflite file",
                hint="export the model with tf.saved_model.save or model.export")  # fmt: skip


def _import_ir(path: Path) -> ModuleOp:
    """Returns the module of a file whose contents are IR already, as text or as LiteRT's tables."""
    if path.suffix == ".mlir":
        from tfconvert.importers.mlir import import_mlir, read_mlir

        return import_mlir(read_mlir(path), str(path))
    from tfconvert.importers.tflite.model import import_tflite

    return import_tflite(path)


def _refuse(options: Options, names: Sequence[str], because: str, hint: str = "") -> None:
    for name in names:
        if getattr(options, name) is not None:
            raise error("wrong-option", f"{name} {because}", hint=hint)


def instruments(options: Options) -> list[Instrument]:
    """Returns what the settings ask to be done between the passes; nothing, usually."""
    asked: list[Instrument] = []
    if options.check_passes:
        from tfconvert.converter.evaluate.validate import check
        from tfconvert.converter.instruments import CheckPasses

        asked.append(CheckPasses(check))
    if options.verify_each:
        from tfconvert.converter.instruments import VerifyEach

        asked.append(VerifyEach())
    return asked


def run(
    model: str | Path, options: Options, on_stage: Callable[[str], None] = lambda name: None
) -> tuple[TFLiteFile, Report]:
    """Converts a model: import, the passes, the file's tables.

    Args:
        model: What `import_model` takes.
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

    watching = instruments(options)
    with _COLLECTOR_PAUSE:
        timed("load", lambda: _load(options))
        module = timed("import", lambda: import_model(model, options))
        try:
            for step in timed("plan", lambda: steps(options, presence_in(module, options))):
                applied = timed(step.run.name, partial(apply_watched, step, module, watching))
                if applied:
                    report.rewrites[step.run.name] = report.rewrites.get(step.run.name, Counter()) + applied
                report.notes += notes_of(step.run)
                if step.run.name == "inline":
                    report.operations_before = count_operations(module)
        except ConversionError as problem:
            raise _explained(problem, report.notes) from problem.__cause__
        file = timed("export", lambda: _export(module, options))
    report.notes += _notes(report.rewrites)
    report.notes += [note for instrument in watching for note in instrument.notes]
    report.interfaces = _interfaces(module)
    report.size = file.size
    report.operators = file.operators
    report.bytes_by_operator = file.bytes_by_operator
    return file, report


def _explained(problem: ConversionError, notes: Sequence[Diagnostic]) -> ConversionError:
    """Returns an error that also tells which functions could have been fused, so that what fails were not there."""
    from tfconvert.converter.composites.presence import KEPT

    return ConversionError([*problem.diagnostics, *(note for note in notes if note.code == KEPT)])


def _interfaces(module: ModuleOp) -> list[Interface]:
    from tfconvert.converter.interface import interfaces

    return list(interfaces(module))


def _notes(rewrites: Mapping[str, Counter[str]]) -> list[Diagnostic]:
    """Returns what the passes have dropped or changed so that it may show in the results."""
    from tfconvert.converter.legalize import table
    from tfconvert.converter.passes import canonicalize

    texts = {**canonicalize.NOTES, **table.notes(rewrites.get("legalize", ()))}
    return [
        Diagnostic("unchecked-or-inexact", f"{texts[pattern]} ({count} of them)", severity=WARNING)
        for applied in rewrites.values()
        for pattern, count in applied.items()
        if pattern in texts
    ]


def _load(options: Options) -> None:
    """Imports what every conversion needs, so that the report tells this time from the work's."""
    import tfconvert.exporters.tflite.model
    import tfconvert.importers.saved_model  # noqa: F401

    steps(options, NOTHING)


def _export(module: ModuleOp, options: Options) -> TFLiteFile:
    from tfconvert.exporters.tflite.metadata import Origin
    from tfconvert.exporters.tflite.model import export
    from tfconvert.schema.dialects import tf, tf_saved_model

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
    from tfconvert.converter.rewrite.edit import walk

    names = Counter(op.name for op in walk(module))
    return Counter({
        name.partition(".")[2]: count
        for name, count in names.items()
        if name not in _NO_WORK and not name.startswith(_STRUCTURE)
    })  # fmt: skip
