"""Polynomials of sizes: sums of products of sizes that only running tells, such as `4*x.0*x.1 + 16`.

What is not a sum or a product, such as a quotient, is a factor that has arguments of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count as counted
from typing import NamedTuple
from weakref import WeakValueDictionary

from tfconvert.ops.integers import COMPARISONS, FOLDS


class Call:
    """A factor that is computed: `divsi(x.0 + 1, 2)`. Equal ones are one object: written out, they may be endless.

    Attributes:
        name: An op of `arith`, or `cmpi` with the predicate's number, or `select`.
        arguments: What it is computed from.
        number: Its number, in the order in which calls are made.
        is_natural: Whether it is surely never negative.
    """

    __slots__ = ("__weakref__", "arguments", "is_natural", "name", "number")

    def __init__(self, name: str, arguments: tuple[Polynomial, ...]) -> None:
        self.name = name
        self.arguments = arguments
        self.number = next(_NUMBERS)
        self.is_natural = _is_never_negative(name, arguments)

    def __repr__(self) -> str:
        return f"Call(name={self.name!r}, arguments={self.arguments!r})"

    def __str__(self) -> str:
        if self.name in _CHAINED:
            return f"{self.name[:3]}({', '.join(map(str, self._chain()))})"
        x, *others = map(str, self.arguments)
        form = _FORMS.get(self.name)
        return form.format(x, *others) if form is not None else f"{self.name}({', '.join([x, *others])})"

    def _chain(self) -> list[Polynomial]:
        found = []
        for argument in self.arguments:
            inner = argument.terms[0] if len(argument.terms) == 1 else None
            call = inner[0][0] if inner is not None and inner[1] == 1 and len(inner[0]) == 1 else None
            found += call._chain() if isinstance(call, Call) and call.name == self.name else [argument]  # noqa: SLF001
        return found


_NUMBERS = counted()

# All calls there are.
_CALLS: WeakValueDictionary[tuple[str, tuple[Polynomial, ...]], Call] = WeakValueDictionary()

# Calls whose arguments may be such calls themselves, and are shown as one.
_CHAINED = frozenset({"maxsi", "minsi"})

_FORMS: Mapping[str, str] = {
    "ceildivsi": "ceil(({0}) / ({1}))",
    "divsi": "floor(({0}) / ({1}))",
    "remsi": "(({0}) mod ({1}))",
    "select": "({1} if {0} else {2})",
    "cmpi 0": "({0} == {1})",
    "cmpi 1": "({0} != {1})",
    "cmpi 2": "({0} < {1})",
    "cmpi 3": "({0} <= {1})",
    "cmpi 4": "({0} > {1})",
    "cmpi 5": "({0} >= {1})",
}

Factor = str | Call
Term = tuple[Factor, ...]


class Polynomial(NamedTuple):
    """A sum of products, each with a number before it.

    Attributes:
        terms: The products, sorted, with their numbers, none of which is 0.
    """

    terms: tuple[tuple[Term, int], ...]

    def __str__(self) -> str:
        text = ""
        rows = [(tuple(sorted(factors, key=str)), count) for factors, count in self.terms]
        for factors, count in sorted(rows, key=lambda row: (-len(row[0]), str(row[0]))):
            size = "*".join([*([str(abs(count))] if abs(count) != 1 or not factors else []), *map(str, factors)])
            sign = " - " if count < 0 else " + "
            text += size if not text and count > 0 else "-" + size if not text else sign + size
        return text or "0"

    @property
    def number(self) -> int | None:
        """The number that the polynomial is, `None` if it depends on sizes."""
        if not self.terms:
            return 0
        ((factors, count), *others) = self.terms
        return count if not factors and not others else None


def constant(number: int) -> Polynomial:
    return Polynomial((((), number),) if number else ())


def symbol(name: str) -> Polynomial:
    """Returns the polynomial of a size that only running tells."""
    return Polynomial((((name,), 1),))


ZERO, ONE = constant(0), constant(1)


def _place(factor: Factor) -> tuple[str, int]:
    """Returns what factors are sorted by."""
    return (factor, -1) if isinstance(factor, str) else ("", factor.number)


def _term_place(term: tuple[Term, int]) -> list[tuple[str, int]]:
    return list(map(_place, term[0]))


def _sum(terms: Iterable[tuple[Term, int]]) -> Polynomial:
    counts: dict[Term, int] = {}
    for factors, count in terms:
        counts[factors] = counts.get(factors, 0) + count
    return Polynomial(tuple(sorted(((key, count) for key, count in counts.items() if count), key=_term_place)))


def add(x: Polynomial, y: Polynomial) -> Polynomial:
    """Returns the sum of two polynomials."""
    return _sum((*x.terms, *y.terms))


def subtract(x: Polynomial, y: Polynomial) -> Polynomial:
    """Returns the difference of two polynomials."""
    return _sum((*x.terms, *((factors, -count) for factors, count in y.terms)))


def multiply(x: Polynomial, y: Polynomial) -> Polynomial:
    """Returns the product of two polynomials."""
    return _sum(
        (tuple(sorted((*some, *others), key=_place)), count * number)
        for some, count in x.terms
        for others, number in y.terms
    )


def product(factors: Iterable[Polynomial]) -> Polynomial:
    """Returns the product of polynomials."""
    found = ONE
    for factor in factors:
        found = multiply(found, factor)
    return found


def is_natural(x: Polynomial) -> bool:
    """Returns whether a polynomial is surely never negative; sizes are not."""
    return all(count >= 0 and all(map(_is_natural, factors)) for factors, count in x.terms)


def _is_natural(factor: Factor) -> bool:
    if isinstance(factor, str):
        return not factor.endswith("]")  # A number that is read from a tensor may be anything.
    return factor.is_natural


def _is_never_negative(name: str, arguments: Sequence[Polynomial]) -> bool:
    if name == "maxsi":
        return any(map(is_natural, arguments))
    if name == "select":
        return all(map(is_natural, arguments[1:]))
    return name.startswith("cmpi") or (
        name in ("ceildivsi", "divsi", "minsi", "remsi") and all(map(is_natural, arguments))
    )


def apply(name: str, *arguments: Polynomial) -> Polynomial:
    """Returns what an op of `arith` makes of polynomials: `addi`, `maxsi`, `cmpi 2`, `select`."""
    simple = {"addi": add, "subi": subtract, "muli": multiply}.get(name)
    if simple is not None:
        return simple(*arguments)
    numbers = [argument.number for argument in arguments]
    known = [number for number in numbers if number is not None]
    if len(known) == len(numbers) and not (name in ("divsi", "ceildivsi", "remsi") and known[1] == 0):
        return constant(_computed(name, known))
    if name == "select":
        _, x, y = arguments
        return (x if numbers[0] else y) if numbers[0] is not None else x if x == y else _call(name, arguments)
    x, y = arguments
    if name in ("maxsi", "minsi"):
        larger = x if is_natural(subtract(x, y)) else y if is_natural(subtract(y, x)) else None
        if larger is not None:
            return larger if name == "maxsi" else x if larger is y else y
    divisor = numbers[1]
    if name in ("divsi", "ceildivsi") and divisor and all(count % divisor == 0 for _, count in x.terms):
        return Polynomial(tuple((factors, count // divisor) for factors, count in x.terms))
    return _call(name, arguments)


def _call(name: str, arguments: tuple[Polynomial, ...]) -> Polynomial:
    found = _CALLS.get((name, arguments))
    if found is None:
        found = _CALLS[name, arguments] = Call(name, arguments)
    return Polynomial((((found,), 1),))


def _computed(name: str, numbers: list[int]) -> int:
    if name == "select":
        return numbers[1] if numbers[0] else numbers[2]
    if name.startswith("cmpi"):
        return int(COMPARISONS[int(name[5:])](*numbers))
    return FOLDS[name](*numbers)


def substitute(x: Polynomial, values: Mapping[str, int]) -> Polynomial:
    """Returns a polynomial with numbers for some of its sizes."""
    return _substituted(x, values, {})


def _substituted(x: Polynomial, values: Mapping[str, int], done: dict[Call, Polynomial]) -> Polynomial:
    found = ZERO
    for factors, number in x.terms:
        term = constant(number)
        for factor in factors:
            if isinstance(factor, Call):
                if factor not in done:
                    done[factor] = apply(factor.name, *(_substituted(each, values, done) for each in factor.arguments))
                new = done[factor]
            else:
                new = constant(values[factor]) if factor in values else symbol(factor)
            term = multiply(term, new)
        found = add(found, term)
    return found
