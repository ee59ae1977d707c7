"""Orders of a function's operators that may need less memory than the program's.

Finding the best order is NP-hard, so a few heuristics propose orders, and the best one is improved by moving single
operators, of small functions at least. Each heuristic takes time proportional to n log n, and all moves together a
constant time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from operator import sub

from tfconvert.schema.dialects import quant, tfl, types
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value
from tfconvert.schema.tflite.arena import ArenaStep, Schedule, bytes_of

# Maximum number of operators in all orders that differ from the best one by one operator's place.
_WORK_OF_MOVES = 5_000

# Operators for each byte that another order may save: with more of them it isn't worth looking for one.
_OPERATORS_PER_BYTE = 16


def schedule_of(inputs: Sequence[Value], operators: Sequence[Operation], outputs: Sequence[Value]) -> Schedule:
    """Returns the schedule of a function; operators whose order matters are linked by tensors without a size.

    Args:
        inputs: Its arguments.
        operators: Its operators, without the constants.
        outputs: What it returns.
    """
    computed = [*inputs, *(result for op in operators for result in op.results)]
    numbers = {value: number for number, value in enumerate(computed)}
    known: dict[Attribute, int] = {}
    for value in computed:
        if value.type not in known:
            known[value.type] = _size(value.type)
    sizes = [known[value.type] for value in computed]
    steps = []
    link: list[int] = []
    for op in operators:
        operands = [numbers[value] for value in op.operands if value in numbers]
        results = [numbers[value] for value in op.results]
        if _has_effect(op):
            operands += link
            link = [len(sizes)]
            results += link
            sizes.append(0)
        steps.append(ArenaStep(operands, results))
    return Schedule(
        sizes, steps, [numbers[value] for value in inputs], [numbers[value] for value in outputs if value in numbers]
    )


def _size(tensor_type: Attribute) -> int:
    shape, row = types.shape_of(tensor_type), types.from_mlir(quant.storage_of(types.element_of(tensor_type)))
    return 0 if shape is None or row is None else bytes_of(shape, row.tflite)


def _has_effect(op: Operation) -> bool:
    operator = op.operator if isinstance(op, tfl.TFLOp) else None
    return operator is None or operator.has_effect or bool(operator.variables)


def best_order(schedule: Schedule) -> list[int] | None:
    """Returns the numbers of the operators in the order with the smallest arena, or `None` for the order as it is.

    Where a large graph could save only a few bytes, no other order is looked for.

    Args:
        schedule: The operators. Their tensors, some of which may take no memory, are all that orders them.
    """
    smallest = schedule.arena()
    if smallest is None:
        return None
    bound = _lower_bound(schedule)
    if smallest - bound <= len(schedule.steps) // _OPERATORS_PER_BYTE:
        return None
    orders = _Orders(schedule)
    unchanged = best = list(range(len(schedule.steps)))
    for order in orders.all():
        arena = None if order == best else _arena_below(schedule, order, smallest)
        if arena is not None:
            smallest, best = arena, order
    tries = _WORK_OF_MOVES // len(best)
    moves = orders.moves(best)
    while tries > 0 and smallest > bound and (moved := next(moves, None)) is not None:
        tries -= 1
        arena = _arena_below(schedule, moved, smallest)
        if arena is not None:
            smallest, best, moves = arena, moved, orders.moves(moved)
    return None if best == unchanged else best


def _arena_below(schedule: Schedule, order: Sequence[int], limit: int) -> int | None:
    """Returns the arena of the operators in some order, or `None` if it is not below a limit."""
    ordered = schedule._replace(steps=[schedule.steps[number] for number in order])
    return ordered.arena(limit) if ordered.peak() < limit else None


def _lower_bound(schedule: Schedule) -> int:
    """Returns bytes that no order can do without: the inputs, with the tensors of one operator."""
    kept = set(schedule.inputs)
    always = sum([schedule.sizes[tensor] for tensor in kept])
    tensors = [{*step.operands, *step.results} - kept for step in schedule.steps]
    return always + max([sum([schedule.sizes[tensor] for tensor in each]) for each in tensors], default=0)


def _moved(order: Sequence[int], place: int, target: int) -> list[int]:
    """Returns an order in which the operator at one place is at another."""
    result = list(order)
    result.insert(target, result.pop(place))
    return result


class _Orders:
    """Proposes orders in which operators follow those that compute their operands."""

    def __init__(self, schedule: Schedule) -> None:
        self._sizes = list(schedule.sizes)
        for tensor in (*schedule.inputs, *schedule.outputs):
            self._sizes[tensor] = 0  # They live on, so that no order saves their memory.
        self._operands = [tuple(dict.fromkeys(step.operands)) for step in schedule.steps]
        # How much memory the results of each operator take.
        self._new = [sum([self._sizes[tensor] for tensor in step.results]) for step in schedule.steps]
        self._users: list[list[int]] = [[] for _ in self._sizes]
        for number, operands in enumerate(self._operands):
            for tensor in operands:
                self._users[tensor].append(number)
        producer = {tensor: number for number, step in enumerate(schedule.steps) for tensor in step.results}
        self._before = [
            list(dict.fromkeys([producer[tensor] for tensor in operands if tensor in producer]))
            for operands in self._operands
        ]
        self._after: list[list[int]] = [[] for _ in self._before]
        for number, before in enumerate(self._before):
            for other in before:
                self._after[other].append(number)

    def all(self) -> Iterator[list[int]]:
        """Yields the orders."""
        yield self._forwards(is_deep=False)
        yield self._forwards(is_deep=True)
        yield self._backwards()
        yield self._operands_first([0] * len(self._before))
        yield self._operands_first(self._needs)

    def moves(self, order: Sequence[int]) -> Iterator[list[int]]:
        """Yields orders in which one operator is elsewhere: first the moves as late and as early as it can be."""
        places = [0] * len(order)
        for place, number in enumerate(order):
            places[number] = place
        further = []
        for place, number in enumerate(order):
            low = 1 + max([places[other] for other in self._before[number]], default=-1)
            high = min([places[other] for other in self._after[number]], default=len(order)) - 1
            for target in range(high, low - 1, -1):
                if target in (low, high) and target != place:
                    yield _moved(order, place, target)
                elif target != place:
                    further.append((place, target))
        for place, target in further:
            yield _moved(order, place, target)

    def _forwards(self, *, is_deep: bool) -> list[int]:
        """Returns the order in which the next operator is the one that adds least to the memory in use.

        Args:
            is_deep: Whether to prefer those that use the result of the last one.
        """
        left = [len(users) for users in self._users]
        missing = [len(before) for before in self._before]
        costs = [new - self._freed(operands, left) for new, operands in zip(self._new, self._operands, strict=True)]
        is_done = [False] * len(missing)
        ready = [(costs[number], number) for number, count in enumerate(missing) if not count]
        heapify(ready)
        order: list[int] = []
        following: list[int] = []
        while len(order) < len(missing):
            if is_deep and following:
                number = min(following, key=lambda each: (costs[each], each))
            else:
                cost, number = heappop(ready)
                if is_done[number] or cost != costs[number]:
                    continue
            is_done[number] = True
            order.append(number)
            for tensor in self._operands[number]:
                left[tensor] -= 1
                if left[tensor] == 1 and self._sizes[tensor]:
                    last = next(user for user in self._users[tensor] if not is_done[user])
                    costs[last] -= self._sizes[tensor]
                    if not missing[last]:
                        heappush(ready, (costs[last], last))
            following = []
            for other in self._after[number]:
                missing[other] -= 1
                if not missing[other]:
                    following.append(other)
                    heappush(ready, (costs[other], other))
        return order

    def _freed(self, operands: Sequence[int], left: Sequence[int]) -> int:
        return sum([self._sizes[tensor] for tensor in operands if left[tensor] == 1])

    def _backwards(self) -> list[int]:
        """Returns the order in which the operator before is the one that adds least to the memory in use."""
        missing = [len(after) for after in self._after]
        needed = [sum([self._sizes[tensor] for tensor in operands]) for operands in self._operands]
        costs = list(map(sub, needed, self._new))
        is_live = [not size for size in self._sizes]
        is_done = [False] * len(missing)
        ready = [(costs[number], -number) for number, count in enumerate(missing) if not count]
        heapify(ready)
        order: list[int] = []
        while len(order) < len(missing):
            cost, negative = heappop(ready)
            number = -negative
            if is_done[number] or cost != costs[number]:
                continue
            is_done[number] = True
            order.append(number)
            for tensor in self._operands[number]:
                if not is_live[tensor]:
                    is_live[tensor] = True
                    self._lower(self._users[tensor], self._sizes[tensor], costs)
                    for user in self._users[tensor]:
                        if not missing[user] and not is_done[user]:
                            heappush(ready, (costs[user], -user))
            for other in self._before[number]:
                missing[other] -= 1
                if not missing[other]:
                    heappush(ready, (costs[other], -other))
        return order[::-1]

    @staticmethod
    def _lower(users: Sequence[int], size: int, costs: list[int]) -> None:
        for user in users:
            costs[user] -= size

    @cached_property
    def _needs(self) -> list[int]:
        """For each operator, minus the memory that computing its results takes beyond what they take themselves.

        It is exact for trees: what needs more is computed first.
        """
        new = self._new
        needs: list[int] = []
        for number, before in enumerate(self._before):
            held = peak = 0
            for other in sorted(before, key=needs.__getitem__) if len(before) > 1 else before:
                peak = max(peak, held + new[other] - needs[other])
                held += new[other]
            needs.append(new[number] - max(peak, held + new[number]))
        return needs

    def _operands_first(self, keys: Sequence[int]) -> list[int]:
        """Returns the order in which the operators that an operator needs are right before it.

        Args:
            keys: Those with the lowest key are first, equal ones in the program's order.
        """
        before, is_done = self._before, [False] * len(self._before)
        order: list[int] = []
        for sink in [number for number, after in enumerate(self._after) if not after]:
            pending = [sink]
            while pending:
                number = pending[-1]
                open_ = [other for other in before[number] if not is_done[other]]
                if open_ and not is_done[number]:
                    if len(open_) > 1:
                        open_.sort(key=lambda other: (keys[other], other), reverse=True)
                    pending += open_
                    continue
                pending.pop()
                if not is_done[number]:
                    is_done[number] = True
                    order.append(number)
        return order
