"""The algebra of sizes: numbers, symbols, and expressions over them.

A size (`Dim`) is an `int` where it is known, else an `Expression`: a `Symbol`, the `Call` of an operation, or a `Sum`
of products of these, such as `4*x.0*x.1 + 16`. `apply` makes expressions in their one normal form, and equal ones are
one object. So `==` tells which sizes are surely equal, `is_multiple` and `is_at_least` what else is sure; where they
say no, nothing is known.

`emit` computes an expression elsewhere: with numbers for its symbols, or as ops of a dialect, whose builders call
`simplified` for what needs no op.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import ClassVar, TypeVar
from weakref import WeakValueDictionary
from zlib import crc32

T = TypeVar("T")

Rank = tuple[int, str, int]
"""The key of the order of sizes, simple ones first: how much there is to it, what it is, and a checksum of it."""

# A product of sums that has more terms stays a product.
_MAX_TERMS = 64


def _divide(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "and": operator.and_,
    "ceil_divide": lambda x, y: -(-x // y),
    "divide": _divide,
    "floor_divide": operator.floordiv,
    "maximum": max,
    "minimum": min,
    "multiply": operator.mul,
    "or": operator.or_,
    "remainder": lambda x, y: x - _divide(x, y) * y,
    "subtract": operator.sub,
    "xor": operator.xor,
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}
"""The operations on two numbers, by StableHLO's names; `divide` truncates."""

COMPARISONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
"""The operations whose results are 0 and 1, in the order of `arith.cmpi`'s signed predicates."""

_COMMUTATIVE = frozenset({"add", "and", "maximum", "minimum", "multiply", "or", "xor", "EQ", "NE"})
_IDEMPOTENT = frozenset({"and", "maximum", "minimum", "or"})
_QUOTIENTS = frozenset({"ceil_divide", "divide", "floor_divide"})
DIVISIONS = _QUOTIENTS | {"remainder"}
"""The operations that fail if their second operand is 0."""

_NEUTRAL: Mapping[str, int] = {"add": 0, "subtract": 0, "multiply": 1, **dict.fromkeys(_QUOTIENTS, 1)}

_FORMS: Mapping[str, str] = {
    "ceil_divide": "ceil({0} / {1})",
    "divide": "floor({0} / {1})",
    "floor_divide": "floor({0} / {1})",
    "multiply": "{0}*{1}",
    "remainder": "({0} mod {1})",
    "select": "({1} if {0} else {2})",
    "EQ": "({0} == {1})",
    "NE": "({0} != {1})",
    "LT": "({0} < {1})",
    "LE": "({0} <= {1})",
}


class Expression:
    """A size that is not a number.

    Attributes:
        parts: The expressions that it is computed from.
        symbols: The symbols in it.
        rank: Its place in the order of sizes, the same in every process.
        is_natural: Whether it is surely never negative.
    """

    __slots__ = ("__weakref__", "is_natural", "parts", "rank", "symbols")

    _all: ClassVar[WeakValueDictionary[Hashable, Expression]] = WeakValueDictionary()

    parts: tuple[Expression, ...]
    symbols: frozenset[Symbol]
    rank: Rank
    is_natural: bool

    def _note(self, label: str, parts: tuple[Expression, ...]) -> None:
        """Sets what follows from the parts, and a label that tells expressions of equal parts apart."""
        self.parts = parts
        self.symbols = frozenset[Symbol]().union(*(part.symbols for part in parts))
        checksum = crc32(f"{label} {[part.rank[2] for part in parts]}".encode())
        self.rank = 1 + sum(part.rank[0] for part in parts), label, checksum

    def __repr__(self) -> str:
        return f"<{self}>"


Dim = int | Expression
"""A size."""


class Symbol(Expression):
    """A size, or another number, that only running tells.

    Attributes:
        name: Its name; symbols of one name are one.
        is_known: Whether it is an input, which something else determines before running.
    """

    __slots__ = ("is_known", "name")

    name: Hashable
    is_known: bool

    def __new__(cls, name: Hashable, *, is_natural: bool = True, is_known: bool = True) -> Symbol:
        """Returns the symbol of a name."""
        key = (cls, name, is_natural, is_known)
        found = cls._all.get(key)
        if not isinstance(found, Symbol):
            found = cls._all[key] = super().__new__(cls)
            found.name, found.is_natural, found.is_known = name, is_natural, is_known
            found._note(repr(name), ())
            found.symbols = frozenset((found,))
        return found

    def __str__(self) -> str:
        return str(self.name)


_unknown_numbers = count()


def unknown(*, is_natural: bool = True) -> Symbol:
    """Returns the symbol of a new size, or another number, of which nothing is known."""
    return Symbol(f"unknown{next(_unknown_numbers)}", is_natural=is_natural, is_known=False)


class DimCall(Expression):
    """The result of an operation that is not a sum or a product.

    Attributes:
        name: The operation: one of `OPERATIONS`, or `select`.
        arguments: What it is applied to.
    """

    __slots__ = ("arguments", "name")

    name: str
    arguments: tuple[Dim, ...]

    def __new__(cls, name: str, *arguments: Dim) -> DimCall:
        """Returns the call as it is; `apply` simplifies."""
        key = (cls, name, arguments)
        found = cls._all.get(key)
        if not isinstance(found, DimCall):
            found = cls._all[key] = super().__new__(cls)
            found.name, found.arguments = name, arguments
            label = f"{name} {[each if isinstance(each, int) else None for each in arguments]}"
            found._note(label, tuple(each for each in arguments if isinstance(each, Expression)))
            found.is_natural = found._is_never_negative()
        return found

    def _is_never_negative(self) -> bool:
        if self.name in COMPARISONS:
            return True
        arguments = self.arguments[1:] if self.name == "select" else self.arguments
        return (any if self.name == "maximum" else all)(map(is_natural, arguments))

    def __str__(self) -> str:
        if self.name in ("maximum", "minimum"):
            return f"{self.name[:3]}({', '.join(map(str, self._chain()))})"
        form = _FORMS.get(self.name)
        if form is None:
            return f"{self.name}({', '.join(map(str, self.arguments))})"
        return form.format(*(f"({each})" if len(_terms(each)) > 1 else each for each in self.arguments))

    def _chain(self) -> Iterator[Dim]:
        """Yields the arguments, for those that are calls of the same operation theirs."""
        for argument in self.arguments:
            if isinstance(argument, DimCall) and argument.name == self.name:
                yield from argument._chain()  # noqa: SLF001
            else:
                yield argument


Term = tuple[tuple[Symbol | DimCall, ...], int]
"""A product of factors, and how often it is counted."""


class Sum(Expression):
    """A sum of products.

    Attributes:
        terms: The products, sorted, each with a number before it that is not 0.
    """

    __slots__ = ("terms",)

    terms: tuple[Term, ...]

    def __new__(cls, terms: tuple[Term, ...]) -> Sum:
        """Returns the sum of terms that are in order."""
        found = cls._all.get((cls, terms))
        if not isinstance(found, Sum):
            found = cls._all[cls, terms] = super().__new__(cls)
            found.terms = terms
            label = str([(len(factors), times) for factors, times in terms])
            found._note(label, tuple(factor for factors, _ in terms for factor in factors))
            found.is_natural = all(times > 0 and all(each.is_natural for each in factors) for factors, times in terms)
        return found

    def __str__(self) -> str:
        rows = [(sorted(map(str, factors)), times) for factors, times in self.terms]
        text = ""
        for factors, times in sorted(rows, key=lambda row: (-len(row[0]), row[0])):
            size = "*".join([*([str(abs(times))] if abs(times) != 1 or not factors else []), *factors])
            text += (" - " if times < 0 else " + ") + size if text else "-" + size if times < 0 else size
        return text


def _terms(size: Dim) -> Sequence[Term]:
    if isinstance(size, int):
        return (((), size),) if size else ()
    if isinstance(size, Sum):
        return size.terms
    assert isinstance(size, Symbol | DimCall)
    return (((size,), 1),)


def _order(term: Term) -> tuple[int, list[Rank]]:
    return -len(term[0]), [factor.rank for factor in term[0]]


def _sum(terms: Iterable[Term]) -> Dim:
    counts: dict[tuple[Symbol | DimCall, ...], int] = {}
    for factors, times in terms:
        counts[factors] = counts.get(factors, 0) + times
    kept = sorted(((factors, times) for factors, times in counts.items() if times), key=_order)
    if not kept:
        return 0
    factors, times = kept[0]
    if len(kept) > 1 or (factors and (times, len(factors)) != (1, 1)):
        return Sum(tuple(kept))
    return factors[0] if factors else times


def add(x: Dim, y: Dim) -> Dim:
    """Returns a sum."""
    return _sum((*_terms(x), *_terms(y)))


def subtract(x: Dim, y: Dim) -> Dim:
    """Returns a difference."""
    return _sum((*_terms(x), *((factors, -times) for factors, times in _terms(y))))


def multiply(x: Dim, y: Dim) -> Dim:
    """Returns a product."""
    first, second = _terms(x), _terms(y)
    if len(first) * len(second) > _MAX_TERMS:
        return DimCall("multiply", *sorted((x, y), key=rank))
    return _sum(
        (tuple(sorted((*some, *others), key=rank)), times * number)
        for some, times in first
        for others, number in second
    )


def product(factors: Iterable[Dim]) -> Dim:
    """Returns the product of sizes."""
    found: Dim = 1
    for factor in factors:
        found = multiply(found, factor)
    return found


def rank(size: Dim) -> Rank:
    return (0, "", size) if isinstance(size, int) else size.rank


# What is sure.


def is_natural(size: Dim) -> bool:
    """Returns whether a size is surely not negative."""
    return size >= 0 if isinstance(size, int) else size.is_natural


def is_at_least(x: Dim, y: Dim) -> bool:
    """Returns whether a size is surely not less than another one."""
    difference = subtract(x, y)
    return is_natural(difference) or is_natural(_without_quotients(difference))


def _without_quotients(size: Dim) -> Dim:
    """Returns a lower bound of a size, in which multiples of rounded quotients are replaced by what was divided.

    With n >= 0, 2 * floor(n / 2) is at least n - 1. Convolutions with strides and SAME padding have such sizes.
    """
    found: Dim = size
    for factors, times in _terms(size):
        (call,) = factors if len(factors) == 1 else (None,)
        if not isinstance(call, DimCall) or call.name not in _QUOTIENTS or times <= 0:
            continue
        dividend, divisor = call.arguments
        if isinstance(divisor, int) and divisor > 0 and times % divisor == 0 and is_natural(dividend):
            minimum = dividend if call.name == "ceil_divide" else subtract(dividend, divisor - 1)
            found = add(found, multiply(times // divisor, subtract(minimum, multiply(divisor, call))))
    return found


def is_multiple(size: Dim, divisor: int) -> bool:
    """Returns whether a number surely divides a size without remainder."""
    return divisor != 0 and all(times % divisor == 0 for _, times in _terms(size))


def is_known(size: Dim) -> bool:
    """Returns whether a size follows from inputs."""
    return isinstance(size, int) or all(symbol.is_known for symbol in size.symbols)


# Operations.


def simplified(name: str, x: T | int, y: T | int) -> T | int | None:
    """Returns the result of an operation on numbers or anything else, `None` if it has to be computed when running.

    Args:
        name: The operation.
        x: Its first operand.
        y: Its second operand.
    """
    if isinstance(x, int) and isinstance(y, int):
        return None if y == 0 and name in DIVISIONS else int(OPERATIONS[name](x, y))
    neutral = _NEUTRAL.get(name)
    if neutral is not None and y == neutral:
        return x
    if neutral is not None and x == neutral and name in _COMMUTATIVE:
        return y
    return x if x is y and name in _IDEMPOTENT else None


def apply(name: str, *operands: Dim) -> Dim:
    """Returns the result of one of `OPERATIONS`, or of `select`."""
    if name == "select":
        condition, x, y = operands
        if isinstance(condition, int):
            return x if condition else y
        return x if x == y else DimCall(name, *operands)
    x, y = operands
    found = simplified(name, x, y)
    rule = _RULES.get(name)
    if found is None and rule is not None:
        found = rule(name, x, y)
    if found is None:
        found = DimCall(name, *(sorted((x, y), key=_numbers_last) if name in _COMMUTATIVE else (x, y)))
    return found


def _numbers_last(size: Dim) -> tuple[bool, Rank]:
    return isinstance(size, int), rank(size)


def _extremum(name: str, x: Dim, y: Dim) -> Dim | None:
    larger = x if is_at_least(x, y) else y if is_at_least(y, x) else None
    if larger is None:
        return None
    return larger if name == "maximum" else x if larger is y else y


def _quotient(name: str, x: Dim, y: Dim) -> Dim | None:
    if not isinstance(y, int) or not is_multiple(x, y):
        return None
    return _sum((factors, times // y) for factors, times in _terms(x))


def _remainder(name: str, x: Dim, y: Dim) -> Dim | None:
    return 0 if isinstance(y, int) and is_multiple(x, y) else None


def _comparison(name: str, x: Dim, y: Dim) -> Dim | None:
    if name in ("GT", "GE"):
        return apply("LT" if name == "GT" else "LE", y, x)
    difference = subtract(x, y)
    if isinstance(difference, int):
        return int(OPERATIONS[name](difference, 0))
    if name in ("EQ", "NE"):
        differs = is_at_least(difference, 1) or is_at_least(-1, difference)
        return int(name == "NE") if differs else None
    minimum = int(name == "LT")
    return 1 if is_at_least(y, add(x, minimum)) else 0 if is_at_least(x, add(y, 1 - minimum)) else None


_RULES: Mapping[str, Callable[[str, Dim, Dim], Dim | None]] = {
    "add": lambda _, x, y: add(x, y),
    "subtract": lambda _, x, y: subtract(x, y),
    "multiply": lambda _, x, y: multiply(x, y),
    "maximum": _extremum,
    "minimum": _extremum,
    "remainder": _remainder,
    **dict.fromkeys(_QUOTIENTS, _quotient),
    **dict.fromkeys(COMPARISONS, _comparison),
}


def emit(
    size: Dim,
    symbol: Callable[[Symbol], T | int],
    compute: Callable[..., T | int],
    known: dict[Expression, T | int] | None = None,
) -> T | int:
    """Computes a size elsewhere.

    Args:
        size: The size.
        symbol: Returns what a symbol is there.
        compute: Applies an operation to what is there: takes its name and the operands, of which some may be numbers.
        known: What expressions are there; those that are computed are added.
    """
    known = {} if known is None else known
    waiting = [size]
    while waiting:
        each = waiting[-1]
        missing = [] if isinstance(each, int) else [part for part in each.parts if part not in known]
        if not isinstance(each, int) and each not in known and not missing:
            known[each] = symbol(each) if isinstance(each, Symbol) else _computed(each, compute, known)
        if missing and each not in known:
            waiting += missing
        else:
            waiting.pop()
    return size if isinstance(size, int) else known[size]


def _computed(expression: Expression, compute: Callable[..., T | int], known: Mapping[Expression, T | int]) -> T | int:
    if isinstance(expression, DimCall):
        arguments = [each if isinstance(each, int) else known[each] for each in expression.arguments]
        return compute(expression.name, *arguments)
    assert isinstance(expression, Sum)
    total: T | int = 0
    for factors, times in sorted(expression.terms, key=lambda term: term[1] < 0):
        term: T | int = 1
        for factor in factors:
            term = compute("multiply", term, known[factor])
        is_less = times < 0 and bool(factors)
        total = compute(
            "subtract" if is_less else "add", total, compute("multiply", term, -times if is_less else times)
        )
    return total


def substitute(size: Dim, values: Mapping[Symbol, Dim]) -> Dim:
    """Returns a size with others, or numbers, for some of its symbols."""
    return emit(size, lambda symbol: values.get(symbol, symbol), apply)
