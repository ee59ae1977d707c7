"""The pipeline: which passes run, in which order and why (design §5).

Imports are late where they are, so that asking for help or making a mistake costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from tfconvert.converter.options import Options
from tfconvert.converter.pipeline.features import EVERYTHING, Presence
from tfconvert.converter.pipeline.stage import Step


def steps(options: Options, present: Presence = EVERYTHING) -> list[Step]:
    """Returns the passes from an imported module to one that the exporter takes.

    Args:
        options: The settings.
        present: What the model has; passes for what it hasn't are left out, and not even loaded.
    """
    from tfconvert.converter.litert.passes.initialize_state import InitializeState
    from tfconvert.converter.litert.passes.legalize import Legalize
    from tfconvert.converter.litert.passes.optimize import Optimize
    from tfconvert.converter.passes.canonicalize import Canonicalize
    from tfconvert.converter.passes.cse import CommonSubexpressions
    from tfconvert.converter.passes.executor_to_functional import ExecutorToFunctional
    from tfconvert.converter.passes.freeze_variables import FreezeVariables
    from tfconvert.converter.passes.inline import Inline
    from tfconvert.converter.passes.merge_functions import MergeFunctions
    from tfconvert.converter.passes.shape_inference import ShapeInference
    from tfconvert.converter.rewrite import user_patterns

    fuses_loops = options.fuse_recurrent
    flow = _late("pipeline.control_flow_passes", present.control_flow)
    composites = _late("litert.passes.prepare_composite_functions", present.composites)
    resource_ops = _late("passes.decompose_resource_ops", present.resource_ops)
    variables = _late("passes.forward_variables", present.resource_ops)
    reads = _late("litert.passes.separate_reads", present.resource_ops)
    tables = _late("litert.passes.lower_tables", present.tables)
    unrolled = _late("litert.passes.fuse_unrolled_layers", present.unrolled_layers and fuses_loops)
    sequences = _late("litert.passes.separate_state", present.sequences)
    fusions = composites and composites.registry.checked(options.composites, "composites")
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
