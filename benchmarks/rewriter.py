"""Measures the cost of a sweep of the rewriter when nothing matches, by the number of patterns.

    python -m benchmarks.rewriter --ops 5000

The graph is made of a few kinds of ops; each family of patterns differs in one thing, and comes close to matching.
Times are of a whole run of the driver, a microsecond being one of an op; `walk` is a bare loop over the ops.
Exit status 1 if an op takes more than 4 us. Patterns that are functions without constraints on operands are shown
for comparison: their tests can't be shared.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, product
from typing import Any

from benchmarks.commands import parser_of
from tfconvert.converter.rewrite.declarative import rule
from tfconvert.converter.rewrite.driver import rewrite_greedily
from tfconvert.converter.rewrite.dsl import op, rest, tfl, value
from tfconvert.converter.rewrite.op_info import signature_of
from tfconvert.converter.rewrite.pattern import Failure, Pattern
from tfconvert.converter.rewrite.pattern_set import PatternSet
from tfconvert.schema.dialects import tfl as dialect
from tfconvert.schema.dialects import types
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tflite import operators

COUNTS = (1, 20, 200, 2000)
# The budget of an op, in microseconds.
LIMIT = 4.0

Patterns = list[Pattern[Any]]

X, Y = value("x"), value("y")
# The ops of the graph, with the number of operands.
KINDS = (("add", 2), ("add", 2), ("mul", 2), ("relu", 1), ("exp", 1), ("leaky_relu", 1))


def _unary() -> list[str]:
    """Returns the operators of one operand, those that the graph has first."""
    known = ((name, operators.lookup(name)) for name in operators.names())
    names = [name for name, operator in known if operator and operator.operand_range == (1, 1)]
    present = {name for name, _ in KINDS}
    return [f"tfl.{name}" for name in sorted(names, key=lambda name: name not in present)]


def _absent() -> list[str]:
    present = {f"tfl.{name}" for name, _ in KINDS}
    return [name for name in _unary() if name not in present]


def roots(count: int) -> Patterns:
    """Patterns that start at different ops."""
    names = [f"tfl.{name}" for name, _ in dict.fromkeys(KINDS)] + [f"tf.{name}" for name in op_defs.names()]
    return [
        rule(name, op(name, op("tfl.sin", X), rest("more"), unregistered=True), X)
        for name in islice(filter(_has_operands, names), count)
    ]


def _has_operands(name: str) -> bool:
    signature = signature_of(name)
    return signature is not None and signature.operands[1] > 0 and signature.results == (1, 1)


def producers(count: int) -> Patterns:
    """Patterns that start at the same op and differ in the defining ops of its operands."""
    pairs = product(_unary(), _absent())
    return [rule(f"{a} {b}", tfl.add(op(a, X), op(b, Y)), X) for a, b in islice(pairs, count)]


def commutative(count: int) -> Patterns:
    """The same, in either order of the operands."""
    pairs = product(_unary(), _absent())
    return [rule(f"{a} {b}", tfl.add(op(a, X), op(b, Y)).commutative(), X) for a, b in islice(pairs, count)]


def deep(count: int) -> Patterns:
    """Patterns that start at the same op and differ three ops away from it."""
    names = product(_unary(), _absent())
    return [rule(f"{a} {b}", tfl.add(op("tfl.exp", op(a, op(b, X).once())), Y), X) for a, b in islice(names, count)]


def attributes(count: int) -> Patterns:
    """Patterns that start at the same op and differ in an attribute's value."""
    return [rule(f"alpha {index}", tfl.leaky_relu(X, alpha=2.0 + index), X) for index in range(count)]


def filtered(count: int) -> Patterns:
    """Patterns that are functions and declare the defining op of an operand."""
    names = _absent()
    return [
        Pattern(f"{index}", "tfl.add", _decline, _nothing, producers={index % 2: (names[index % len(names)],)})
        for index in range(count)
    ]


def functions(count: int) -> Patterns:
    """Patterns that are functions, and have to be called."""
    return [Pattern(f"{index}", "tfl.add", _decline, _nothing) for index in range(count)]


def _decline(op: Operation) -> Failure:
    return Failure("it never matches")


def _nothing(op: Operation, match: None, rewriter: Any) -> None:
    """Is never called."""


# Families whose cost must not depend on their size.
FAMILIES: Mapping[str, Callable[[int], Patterns]] = {
    "different roots": roots,
    "one root, different producers": producers,
    "the same, commutative": commutative,
    "one root, different three ops away": deep,
    "one root, different attributes": attributes,
    "functions with producers": filtered,
}


def graph(ops: int) -> Region:
    """Returns a random graph in which every op is used."""
    choice = random.Random(0)
    kind = types.tensor(types.F32, (2,))
    block = Block(arg_types=[kind, kind])
    values: list[Value] = list(block.args)
    for _ in range(ops):
        name, operands = choice.choice(KINDS)
        made = dialect.build(name, [choice.choice(values[-8:]) for _ in range(operands)], [kind])
        block.add_op(made)
        values.append(made.results[0])
    block.add_op(dialect.build("add_n", values, [kind]))
    return Region(block)


def _effects(op: Operation) -> bool:
    return op.name == "tfl.add_n"


def _least(work: Callable[[], object], runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _walk(region: Region) -> None:
    for each in region.block.ops:
        each.name  # noqa: B018  # a sweep that only reads


def sweep(region: Region, patterns: PatternSet, ops: int, runs: int) -> float:
    """Returns the microseconds that an op takes; the first run, which builds the automata, isn't counted."""
    if rewrite_greedily(region, patterns, _effects):
        raise AssertionError("a pattern matched")
    return _least(lambda: rewrite_greedily(region, patterns, _effects), runs) / ops * 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    parser = parser_of("rewriter", __doc__)
    parser.add_argument("--ops", type=int, default=5000, help="of the graph, default: %(default)s")
    parser.add_argument("--runs", type=int, default=5, help="of each, the fastest counts; default: %(default)s")
    options = parser.parse_args(arguments)
    region = graph(options.ops)
    walk = _least(lambda: _walk(region), options.runs) / options.ops * 1e6
    empty = sweep(region, PatternSet([]), options.ops, options.runs)
    print(f"walk {walk:.2f} us an op; driver without patterns {empty:.2f} us\n")
    columns = [f"{count} patterns" if count > 1 else "1 pattern" for count in COUNTS]
    print(f"| us an op (times the walk) | {' | '.join(columns)} |\n| --- |{' ---: |' * len(COUNTS)}")
    slow = False
    for name, family in {**FAMILIES, "functions alone": functions}.items():
        costs = [sweep(region, PatternSet(family(count)), options.ops, options.runs) for count in COUNTS]
        print(f"| {name} | {' | '.join(f'{cost:.2f} ({cost / walk:.0f}x)' for cost in costs)} |", flush=True)
        slow |= name in FAMILIES and max(costs) > LIMIT
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
