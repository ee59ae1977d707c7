"""Every pass by its name, and the syntax by which a command line asks for some of them with options.

    inline,legalize{allow_custom_ops=true},cse

Options are the fields of a pass's dataclass whose values can be written as text.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, dataclass, fields
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from xdsl.utils.arg_spec import ArgSpec, ParameterListType, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError
from xdsl.utils.hints import isa

from tfconvert.converter.litert.passes.fuse_recurrent_loops import FuseRecurrentLoops
from tfconvert.converter.litert.passes.fuse_unrolled_layers import FuseUnrolledLayers
from tfconvert.converter.litert.passes.initialize_state import InitializeState
from tfconvert.converter.litert.passes.legalize import Legalize
from tfconvert.converter.litert.passes.lower_tables import LowerTables
from tfconvert.converter.litert.passes.optimize import Optimize
from tfconvert.converter.litert.passes.prepare_composite_functions import PrepareCompositeFunctions
from tfconvert.converter.litert.passes.prepare_control_flow import PrepareControlFlow
from tfconvert.converter.litert.passes.separate_reads import SeparateReads
from tfconvert.converter.litert.passes.separate_results import SeparateResults
from tfconvert.converter.litert.passes.separate_state import SeparateState
from tfconvert.converter.passes.break_up_islands import BreakUpIslands
from tfconvert.converter.passes.canonicalize import Canonicalize
from tfconvert.converter.passes.cse import CommonSubexpressions
from tfconvert.converter.passes.decompose_resource_ops import DecomposeResourceOps
from tfconvert.converter.passes.executor_to_functional import ExecutorToFunctional
from tfconvert.converter.passes.forward_variables import ForwardVariables
from tfconvert.converter.passes.freeze_variables import FreezeVariables
from tfconvert.converter.passes.functional_to_regions import FunctionalToRegions
from tfconvert.converter.passes.functionalize_conditionals import FunctionalizeConditionals
from tfconvert.converter.passes.functionalize_loops import FunctionalizeLoops
from tfconvert.converter.passes.graph_pruning import GraphPruning
from tfconvert.converter.passes.inline import Inline
from tfconvert.converter.passes.island_coarsening import IslandCoarsening
from tfconvert.converter.passes.lower_tensor_lists import LowerTensorLists
from tfconvert.converter.passes.mark_stateless import MarkStateless
from tfconvert.converter.passes.merge_functions import MergeFunctions
from tfconvert.converter.passes.merge_loop_variables import MergeLoopVariables
from tfconvert.converter.passes.regions_to_functional import RegionsToFunctional
from tfconvert.converter.passes.shape_inference import ShapeInference
from tfconvert.converter.passes.share_shapes import ShareShapes
from tfconvert.converter.passes.simplify_control_flow import SimplifyControlFlow
from tfconvert.converter.passes.sink_handles import SinkHandles
from tfconvert.converter.passes.stacks_to_lists import StacksToLists
from tfconvert.converter.passes.tensor_arrays_to_lists import TensorArraysToLists
from tfconvert.converter.passes.unique_callees import UniqueCallees
from tfconvert.converter.pipeline.stage import Pass
from tfconvert.schema.diagnostics import ConversionError, error

PASSES: dict[str, type[Pass]] = {
    row.name: row
    for row in (
        BreakUpIslands,
        Canonicalize,
        CommonSubexpressions,
        DecomposeResourceOps,
        ExecutorToFunctional,
        ForwardVariables,
        FreezeVariables,
        FunctionalToRegions,
        FunctionalizeConditionals,
        FunctionalizeLoops,
        FuseRecurrentLoops,
        FuseUnrolledLayers,
        GraphPruning,
        InitializeState,
        Inline,
        IslandCoarsening,
        Legalize,
        LowerTables,
        LowerTensorLists,
        MarkStateless,
        MergeFunctions,
        MergeLoopVariables,
        Optimize,
        PrepareCompositeFunctions,
        PrepareControlFlow,
        RegionsToFunctional,
        SeparateReads,
        SeparateResults,
        SeparateState,
        ShapeInference,
        ShareShapes,
        SimplifyControlFlow,
        SinkHandles,
        StacksToLists,
        TensorArraysToLists,
        UniqueCallees,
    )
}

_WRITABLE = {bool: "true|false", int: "int", float: "float", str: "string"}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a pass.

    Attributes:
        name: The field's name.
        hint: The field's type.
        default: What it is when nobody says anything; `None` if it has to be said.
    """

    name: str
    hint: Any
    default: Any

    @property
    def kind(self) -> str:
        """The type as a person writes values of it."""
        several = ",..." if _is_tuple(self.hint) else ""
        kinds = [_WRITABLE[kind] for kind in _kinds(self.hint)]
        return "|".join(kinds) + several

    def value(self, given: ParameterListType) -> Any:
        """Returns what was given as the field's value.

        Raises:
            ValueError: It is of another type.
        """
        single: Any = given[0] if len(given) == 1 else given
        if not given and isa(True, self.hint):
            return True  # An option without a value is a switch.
        if float in _kinds(self.hint) and isinstance(single, int) and not isinstance(single, bool):
            single = float(single)
        for candidate in (single, given):
            if isa(candidate, self.hint):
                return candidate
        raise ValueError(f"{','.join(map(str, given)) or 'nothing'} is not {self.kind}")


def options_of(row: type[Pass]) -> list[Option]:
    """Returns a pass's options; fields that no text can give (patterns, functions) are none."""
    hints = get_type_hints(row)
    own: tuple[Field[Any], ...] = fields(row)  # type: ignore[arg-type]
    return [Option(item.name, hints[item.name], _default(item)) for item in own if _kinds(hints[item.name])]


def summary_of(row: type[Pass]) -> str:
    """Returns what a pass does, in a line."""
    return (row.__doc__ or "").strip().partition("\n")[0]


def parse_passes(text: str) -> list[Pass]:
    """Returns the passes that a text names, in its order.

    Raises:
        ConversionError: The syntax is wrong (`malformed-pipeline`), or a pass (`unknown-pass`) or an option
            (`unknown-option`, `wrong-option`) doesn't exist; all that is wrong, in one.
    """
    passes: list[Pass] = []
    problems: list[ConversionError] = []
    for spec in _specs(text):
        try:
            passes.append(_made(spec))
        except ConversionError as problem:
            problems.append(problem)
    if problems:
        raise ConversionError(diagnostic for problem in problems for diagnostic in problem.diagnostics)
    return passes


def find(name: str, known: Iterable[str], code: str, what: str) -> str:
    """Returns a name if it is known.

    Raises:
        ConversionError: It is not; the hint tells similar ones.
    """
    names = sorted(set(known))
    if name not in names:
        similar = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(similar)}?" if similar else f"there are: {', '.join(names) or 'none'}"
        raise error(code, f"there is no {what} {name!r}", hint=hint)
    return name


def _specs(text: str) -> Iterator[ArgSpec]:
    try:
        yield from parse_pipeline(text)
    except ArgSpecParseError as problem:
        raise error("malformed-pipeline", str(problem).strip(), hint='write it as "pass{option=value},pass2"') from None


def _made(spec: ArgSpec) -> Pass:
    row = PASSES[find(spec.name, PASSES, "unknown-pass", "pass")]
    options = {option.name: option for option in options_of(row)}
    values = {}
    for name, given in spec.normalize_parameter_names().parameters.items():
        option = options[find(name, options, "unknown-option", f"option of {spec.name} called")]
        try:
            values[name] = option.value(given)
        except ValueError as problem:
            raise error("wrong-option", f"option {name} of {spec.name}: {problem}") from problem
    missing = [option.name for option in options.values() if option.default is MISSING and option.name not in values]
    if missing:
        raise error("wrong-option", f"{spec.name} needs its option {', '.join(missing)}")
    return row(**values)


def _is_tuple(hint: Any) -> bool:
    return any(get_origin(part) is tuple for part in (hint, *get_args(hint)))


def _kinds(hint: Any) -> list[type]:
    """Returns the kinds of text values that a type takes; none if it takes something that text can't give."""
    kinds: list[type] = []
    pending = [hint]
    while pending:
        part = pending.pop(0)
        if isinstance(part, type) and part in _WRITABLE:
            kinds.append(part)
        elif get_origin(part) in (tuple, Union, UnionType):
            pending += get_args(part)
        elif part is not Ellipsis and part is not NoneType:
            return []
    return kinds


def _default(item: Field[Any]) -> Any:
    return item.default_factory() if item.default_factory is not MISSING else item.default
