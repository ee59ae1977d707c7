"""Nodes that can't be converted, each with a hint for the user.

They are reported as soon as a graph is imported, before any pass runs: data that only a running program has
(queues, readers, iterators, unfed placeholders), and code that isn't in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tfconvert.converter.composites.marks import IMPLEMENTS
from tfconvert.converter.ir import symbol_table
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import types
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.locations import error_at, place_of
from tfconvert.schema.dialects.tf_executor import GraphOp
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION
from tfconvert.schema.ir.attributes import DictionaryAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

PYTHON = frozenset({"tf.EagerPyFunc", "tf.PyFunc", "tf.PyFuncStateless"})
"""The ops that call Python code."""

_PLACEHOLDERS = frozenset({"tf.Placeholder", "tf.PlaceholderV2"})
PIPELINES = frozenset(
    {
        "tf.BarrierTakeMany",
        "tf.IteratorGetNext",
        "tf.IteratorGetNextSync",
        "tf.IteratorGetNextAsOptional",
        "tf.MultiDeviceIteratorGetNextFromShard",
        "tf.QueueDequeue",
        "tf.QueueDequeueMany",
        "tf.QueueDequeueManyV2",
        "tf.QueueDequeueUpTo",
        "tf.QueueDequeueUpToV2",
        "tf.QueueDequeueV2",
        "tf.ReaderRead",
        "tf.ReaderReadUpTo",
        "tf.ReaderReadUpToV2",
        "tf.ReaderReadV2",
        "tf.Unstage",
    }
)
"""The ops that read data of a running program."""

_MAX_DIMENSION = (1 << 31) - 1

_GRADIENT = "tf.SymbolicGradient"

_NO_NAMES = StringAttr.get("")

_HOW_TO_DEFINE = "include the function's definition in the text"

_REFUSED = PIPELINES | PYTHON | _PLACEHOLDERS | {_GRADIENT}


def reason(op_name: str) -> str:
    """Returns why an op can't be converted in any use; empty if it may be convertible.

    Args:
        op_name: The op's name, `tf.PyFunc`.
    """
    if op_name in PYTHON:
        return "it calls Python code, which no file holds"
    if op_name in PIPELINES:
        return "it takes data from a queue, a reader or an iterator"
    return "it requires TensorFlow's runtime for a function's gradient" if op_name == _GRADIENT else ""


def check_graphs(module: ModuleOp) -> None:
    """Checks the graphs of an imported module for ops that can't be converted.

    Fed nodes have been replaced already, and Python code in a function that declares what it implements may be fused.

    Raises:
        ConversionError: There are such ops; one error for all.
    """
    functions = list(functions_of(module).values())
    if any(function.is_declaration for function in functions):
        _check_declared(module, functions)
        functions = [function for function in functions if not function.is_declaration]
    checks = (_several_blocks, _wrong_names, _absurd_input)
    problems = [problem for check in checks for problem in map(check, functions) if problem is not None]
    problems += [problem for function in functions for op in _refused(function) for problem in _problems(op, function)]
    if problems:
        raise ConversionError(problems)


def _check_declared(module: ModuleOp, functions: Sequence[FuncOp]) -> None:
    """Checks that functions without a body are unused, and erases them.

    Raises:
        ConversionError: One is called, or all are (`missing-function`).
    """
    declared = {function.sym_name: function for function in functions if function.is_declaration}
    problems = [
        error_at(op, "missing-function", f"the function {name!r} has no body", _HOW_TO_DEFINE).diagnostics[0]
        for op in module.walk()
        for name in dict.fromkeys(symbol_table.names(op))
        if name in declared
    ]
    for name, function in declared.items():
        if len(declared) == len(functions) or name == "main" or ENTRY_FUNCTION in function.attributes:
            problems += error_at(
                function, "missing-function", f"the function {name!r} has no body", _HOW_TO_DEFINE
            ).diagnostics
    if problems:
        raise ConversionError(problems)
    for function in declared.values():
        function.erase()


def _several_blocks(function: FuncOp) -> Diagnostic | None:
    """Returns the diagnostic of a function with branches between blocks, which MLIR text may contain."""
    if len(function.body.blocks) == 1:
        return None
    return Diagnostic(
        "invalid-ir",
        "the function has several blocks",
        function.name,
        function.sym_name,
        str(place_of(function.location)),
        "write branches and loops as ops with regions",
    )


def _wrong_names(function: FuncOp) -> Diagnostic | None:
    """Returns the diagnostic of wrong names of an entry function's tensors, which MLIR text may contain."""
    entry = function.attributes.get(ENTRY_FUNCTION)
    if entry is None:
        return None
    kind = function.function_type
    for which, count in (("inputs", len(kind.inputs)), ("outputs", len(kind.results))):
        given = entry.data.get(which, _NO_NAMES) if isinstance(entry, DictionaryAttr) else None
        text = given.data if isinstance(given, StringAttr) else None
        if text is None or (text and len(text.split(",")) > count):
            return Diagnostic(
                "invalid-ir",
                f"{ENTRY_FUNCTION} doesn't name the {which} of the function",
                function.name,
                function.sym_name,
                str(place_of(function.location)),
                f"give a dictionary with {which}: a string with a name for each, and commas between them",
            )
    return None


def _absurd_input(function: FuncOp) -> Diagnostic | None:
    """Returns the diagnostic of a function with an input that is too large for LiteRT."""
    for kind in function.function_type.inputs:
        shape = types.shape_of(kind) or ()
        if max(shape, default=0) > _MAX_DIMENSION:
            return Diagnostic(
                "absurd-shape",
                f"an input of shape {list(shape)} is beyond LiteRT",
                function.name,
                function.sym_name,
                hint="set a smaller input shape",
            )
    return None


def python_function(op: Operation) -> Diagnostic:
    return _diagnostic(
        op,
        "python-function",
        "the node calls Python code, which isn't in the model's file",
        "write the function with TensorFlow ops, or feed its results",
    )


def _refused(function: FuncOp) -> Iterator[Operation]:
    """Yields the ops in a function, and in its graphs, that are of a refused kind."""
    for block in function.body.blocks:
        for op in block.ops:
            if isinstance(op, GraphOp):
                for island in op.body.ops:
                    for region in island.regions:
                        yield from (op for inner in region.blocks for op in inner.ops if op.name in _REFUSED)
            elif op.name in _REFUSED:
                yield op


def _problems(op: Operation, function: FuncOp) -> Iterator[Diagnostic]:
    is_main = ENTRY_FUNCTION in function.attributes
    if op.name in PYTHON:
        if IMPLEMENTS not in function.attributes:
            yield python_function(op)
    elif op.name in _PLACEHOLDERS:
        if is_main:
            yield _diagnostic(
                op,
                "unfed-input",
                "an output needs this placeholder, which is not among the inputs",
                "add it to the inputs",
            )
    elif op.name == _GRADIENT:
        yield _diagnostic(
            op,
            "symbolic-gradient",
            "the node requires TensorFlow's runtime for a function's gradient",
            "export the gradient as a graph (tf.gradients, tf.GradientTape)",
        )
    else:
        yield _diagnostic(
            op,
            "input-pipeline",
            "the graph takes its input from a queue, a reader or an iterator",
            _feeds(op) if is_main else "export a function of tensors",
        )


def _diagnostic(op: Operation, code: str, message: str, hint: str) -> Diagnostic:
    place = place_of(op.location)
    return Diagnostic(code, message, op.name, place.node, str(place), hint, layer=place.layer)


def _feeds(op: Operation) -> str:
    name = place_of(op.location).node
    named = [f"--input {name}:{index} ({each.element})" for index, each in enumerate(op.results)]
    return f"feed its results: {', '.join(named)}" if named else "feed its results with --input"
