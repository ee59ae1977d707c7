"""Forms: rewrites that replace an operator by others which compute the same."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import NamedTuple

from tfconvert.converter.rewrite.pattern import Declined, Failure, Pattern, need
from tfconvert.converter.rewrite.rewriter import Rewriter
from tfconvert.converter.targets.litert.forms.builder import FormBuilder
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

PREPARES = 100
"""The benefit from which on a rewrite is kept even if it does not help by itself, but only lets another one match."""

Results = Value | Sequence[Value]


class Rewrite(NamedTuple):
    """A rewrite that replaces an op by what a function emits, for some accelerators or by default.

    The driver drops what was emitted if the function declines, or if accelerators don't take it either.

    Attributes:
        name: Its name.
        root: The op, without `tfl.`.
        emit: Emits what replaces the op, and returns the new results; it declines by `pattern.need`.
        benefit: Rewrites of one op are tried in descending order of benefit.
        default: The element types of results, or their classes, for which it is made by default, whatever a file is
            for, if it adds no operator. Without any, it is for accelerators alone.
        adds: Whether the default may add operators, since the CPU is as fast with them.
        only_for: The files in which it is made by default: `processors`, `gpu`, or empty for all. Browsers run GPUs by
            LiteRT.js, which doesn't load a GATHER of constant places.
        producers: Full names of ops, one of which defines an operand where the function doesn't decline; any if empty.
    """

    name: str
    root: str
    emit: Callable[[tfl.TFLOp, FormBuilder], Results]
    benefit: int = 1
    default: Collection[Attribute | type[Attribute]] = ()
    adds: bool = False
    producers: frozenset[str] = frozenset()
    only_for: str = ""


Emit = Callable[[FormBuilder], Results | Operation | None]
"""Emits what replaces an op; returns the new results, or `None` if it has replaced them itself."""


def planned(
    name: str,
    root: str,
    plan: Callable[[Operation], Emit | Failure],
    benefit: int = 1,
    depth: int = 1,
    producers: Mapping[int, Collection[str]] = MappingProxyType({}),
) -> Pattern[Emit]:
    """Returns a rewrite of `tfl` ops that is one function.

    Args:
        name: Its name; that of a form that is faster on a processor is the one of its rows in `speed.tsv`.
        root: The op that it starts at, without `tfl.`.
        plan: Reads an op, and returns what to emit for it; it declines by `pattern.need`. Where it declines most ops of
            most networks, it returns a failure, which takes a tenth of an exception's time.
        benefit: Patterns of one root are tried in descending order of benefit.
        depth: The distance above the root at which `plan` looks.
        producers: As of `Pattern`.
    """

    def match(op: Operation) -> Emit | Failure:
        try:  # `attempt`, without a call: this is asked of each op by several patterns
            return plan(op)
        except Declined as declined:
            return declined.failure

    def rewrite(_op: Operation, emit: Emit, rewriter: Rewriter) -> None:
        results = emit(FormBuilder(rewriter, is_fast=True))
        if results is not None:
            rewriter.replace(results)

    return Pattern(name, f"{tfl.PREFIX}{root}", match, rewrite, benefit, depth, producers)


_IS_MEASURED: ContextVar[bool] = ContextVar("is_measured", default=False)


@contextmanager
def measured() -> Iterator[None]:
    """Lets fast forms accept all sizes whose times can be compared, instead of those that `speed.tsv` speaks for."""
    token = _IS_MEASURED.set(True)
    try:
        yield
    finally:
        _IS_MEASURED.reset(token)


def worth(holds: bool, reason: str) -> None:
    """Declines sizes for which a fast form isn't known to be faster, unless its time is measured."""
    need(holds or _IS_MEASURED.get(), reason)


def of_copies(op: tfl.TFLOp, build: FormBuilder) -> Value:
    """Emits an op that reads an operand several times: with copies of it."""
    operands = [build.copy(value) if value in op.operands[:at] else value for at, value in enumerate(op.operands)]
    need(operands != list(op.operands), "its operands differ")
    return build.again(op, operands).results[0]
