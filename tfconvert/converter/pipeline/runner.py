"""Runs stages on a module, each if the module and the settings need it when its turn comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tfconvert.converter.ir.interface import has_open_sizes
from tfconvert.converter.pipeline.op_names import OpNames
from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.pipeline.registry import pass_class
from tfconvert.converter.pipeline.stage import OPEN_SIZES, Instrument, Pass, Stage, apply_watched
from tfconvert.converter.pipeline.stage_name import InStage
from tfconvert.settings.options import Options

if TYPE_CHECKING:
    from tfconvert.schema.ir.builtin import ModuleOp

USER = ("composites", "patterns", "quantizes_activations")
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
    names = OpNames(module, [*others, OPEN_SIZES] if has_open_sizes(module) else others)
    for stage in stages:
        if (stage.only_with and not setting(options, stage.only_with)) or not names.have(stage.needs):
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
    """Returns the pass of a stage, with those of its options that are settings; its defaults for what isn't set."""
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
