"""Runs the stages of a pipeline on a module, each only if the module and the settings need it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tfconvert.converter.ir.interface import has_half_inputs, has_open_sizes
from tfconvert.converter.pipeline.pass_registry import pass_class
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.pipeline.stage import HALVES, OPEN_SIZES, InStage, Instrument, Pass, Stage, apply_watched
from tfconvert.converter.pipeline.stages import TO_FUNCTIONS
from tfconvert.importers.source import Source
from tfconvert.schema.dialects.cut import CUT
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.options import Options

if TYPE_CHECKING:
    from tfconvert.schema.ir.operation import Operation


class OpNames:
    """The names of a module's ops and of the attributes of its functions and their arguments.

    Querying a name that is unknown, or may be gone, walks the module if a pass has run since the last walk.
    """

    __slots__ = ("_ever", "_is_current", "_left", "_module")

    def __init__(self, module: ModuleOp, others: Iterable[str] = ()) -> None:
        """Stores the module for the first query.

        Args:
            module: The module.
            others: Names that count as present.
        """
        self._module = module
        self._ever = set(others)
        self._left: set[str] = set()
        self._is_current = False

    def changed(self) -> None:
        self._is_current = False

    def have(self, groups: Iterable[tuple[str, ...]]) -> bool:
        """Returns whether there is, or was, a name with one of the prefixes of each group."""
        return all(self._has(prefixes) for prefixes in groups)

    def _has(self, prefixes: tuple[str, ...]) -> bool:
        if any(name.startswith(prefixes) for name in self._ever):
            return True
        return not self._is_current and self.are_left(prefixes)

    def are_left(self, prefixes: tuple[str, ...]) -> bool:
        """Returns whether there is a name with one of the prefixes."""
        if not self._is_current:
            self._left = names_in(self._module)
            self._ever |= self._left
            self._is_current = True
        return any(name.startswith(prefixes) for name in self._left)


def names_in(module: ModuleOp) -> set[str]:
    """Returns the names of all ops in a module, and of attributes of the ops on its top level and their arguments."""
    names: set[str] = set()
    for function in module.ops:
        names.update(function.attributes)
        arguments = function.properties.get("arg_attrs")
        for attributes in arguments.data if isinstance(arguments, ArrayAttr) else ():
            names.update(attributes.data if isinstance(attributes, DictionaryAttr) else ())
    pending: list[Operation] = [module]
    while pending:
        for region in pending.pop().regions:
            for block in region.blocks:
                op = block.first_op
                while True:  # Python 3.11 doesn't specialize the instructions of a loop that `while op` begins.
                    if op is None:
                        break
                    names.add(op.name)
                    if op.regions:
                        pending.append(op)
                    op = op.next_op
    return names


# The op whose program of StableHLO is an attribute.
_PROGRAM = "tf.XlaCallModule"

USER = ("fusions", "patterns", "quantize", "quantizes_activations")
"""Settings by which the user adds something to the conversion, so that stages may require it."""


class Applied(NamedTuple):
    """A stage that was run.

    Attributes:
        name: The pass.
        result: Its result.
        loading: Seconds spent on importing it.
        seconds: Seconds spent on running it.
    """

    name: str
    result: PassResult
    loading: float
    seconds: float


def run_stages(
    module: ModuleOp,
    stages: Sequence[Stage],
    options: Options,
    instruments: Sequence[Instrument] = (),
    on_stage: Callable[[str], None] = lambda name: None,
) -> Iterator[Applied]:
    """Rewrites a module stage by stage; yields those that were needed.

    Args:
        module: The module.
        stages: The stages, in order.
        options: The settings.
        instruments: Hooks between the passes.
        on_stage: Called with each stage's name before its pass runs.
    """
    others = [f"options.{name}" for name in USER if setting(options, name)]
    others += [OPEN_SIZES] * has_open_sizes(module) + [HALVES] * has_half_inputs(module)
    names = OpNames(module, others)
    for stage in stages:
        if (stage.only_with and not setting(options, stage.only_with)) or not names.have(stage.needs):
            continue
        if stage.left and not names.are_left(stage.left):
            continue
        start = time.perf_counter()
        with InStage(stage.run):
            run = make_pass(stage, options)
            loaded = time.perf_counter()
            on_stage(stage.run)
            result = apply_watched(run, stage, module, instruments)
        names.changed()
        yield Applied(stage.run, result, loaded - start, time.perf_counter() - loaded)


def make_pass(stage: Stage, options: Options) -> Pass:
    """Returns the pass of a stage; options that are settings get their values."""
    values = {}
    for text in stage.takes:
        name, _, path = text.rpartition("=")
        value = setting(options, path)
        if value is not None:
            values[name or path.rpartition(".")[2]] = _frozen(value)
    return pass_class(stage.run)(**values)


def setting(options: Options, path: str) -> Any:
    """Returns a field of the settings, or of their target; `None` if this target doesn't have it."""
    first, _, rest = path.partition(".")
    value = getattr(options if hasattr(options, first) else options.target, first, None)
    return getattr(value, rest, None) if rest else value


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def is_uncut(module: ModuleOp) -> bool:
    """Returns whether a module has marks of a cut that hasn't been made yet."""
    return any(CUT in op.attributes for op in module.ops)


def opened(source: Source) -> ModuleOp:
    """Returns the imported module of a model; passes run only if it must be cut, or holds programs of StableHLO."""
    module = source.open()
    if is_uncut(module) or any(op.name == _PROGRAM for op in module.walk()):
        _to_functions(module)
    return module


def as_functions(source: Source) -> ModuleOp:
    """Returns the module of a model as functions of plain ops that call each other, cut if requested."""
    module = source.open(functional=True)
    _to_functions(module)
    return module


def _to_functions(module: ModuleOp) -> None:
    for _ in run_stages(module, TO_FUNCTIONS, Options()):
        pass
