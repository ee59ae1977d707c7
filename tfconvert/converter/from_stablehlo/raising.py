"""Replaces the StableHLO ops of a module by `tf` ops, in program order, so that what is known of sizes stays known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from tfconvert.converter.control_flow.calls import inline_call
from tfconvert.converter.from_stablehlo import backwards, complex_numbers, composites, control_flow, rows, shaping
from tfconvert.converter.from_stablehlo.constant_ops import CONSTANT_OPS, turn_into_constant
from tfconvert.converter.from_stablehlo.raised_op import BROADCAST, RaisedOp
from tfconvert.converter.ir.tasks import Task, drive
from tfconvert.converter.ir.tensors import EmittedTensor
from tfconvert.converter.rewrite.pattern import Declined, Failure, attempt, need
from tfconvert.ops.operands import Known
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects import dims, tensor_data, tf_effects, types
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import error_at, place_of
from tfconvert.schema.dialects.stablehlo import MAX_SIZE
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.block import Block, Region
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import INDEX, ComplexType, FloatType, IntegerType
from tfconvert.schema.ir.values import Value

PREFIXES = ("stablehlo.", "chlo.")


# The largest number of elements of a tensor; where one of its sizes is zero, of the others.
_MAX_ELEMENTS = 1 << 40

# How many further places of one kind of op a message names.
_NAMED = 3

# The commonest ops without effects; each has one result.
_PURE = frozenset({"tf.Const", "tf.Pack", "tf.Reshape", BROADCAST})

# Ops that others may stand for.
_INLINED = frozenset({composites.COMPOSITE, *control_flow.CONDITIONALS})

# Ops on sizes, of which JAX repeats the same ones wherever a shape is needed.
_OF_SIZES = frozenset(
    f"stablehlo.{name}"
    for name in (
        "add",
        "broadcast_in_dim",
        "concatenate",
        "constant",
        "convert",
        "divide",
        "get_dimension_size",
        "maximum",
        "minimum",
        "multiply",
        "remainder",
        "reshape",
        "subtract",
    )
)


def unsupported(left: Mapping[Operation, str]) -> ConversionError:
    """Returns the error about ops that stay.

    Args:
        left: The ops, with why each one stays.
    """
    groups: dict[tuple[str, str], list[Operation]] = {}
    for op, reason in left.items():
        groups.setdefault((op.name, reason), []).append(op)
    return ConversionError([_diagnostic(name, reason, ops) for (name, reason), ops in groups.items()])


def _diagnostic(name: str, reason: str, ops: Sequence[Operation]) -> Diagnostic:
    first, *others = (place_of(op.location) for op in ops)
    named = [*dict.fromkeys(text for place in others if (text := str(place)))][:_NAMED]
    count = len(others) - len(named)
    more = f"{' and' if named else 'also at'} {count} more{'' if named else ' places'}" if count else ""
    also = f"also at {', '.join(named)}{more}" if named else more
    message = f"{name} can't be converted: {reason}" + (f"; {also}" if others else "")
    return Diagnostic("unsupported-op", message, name, first.node, str(first), hint=_hint(composites.row_name(ops[0])))


# Libraries that XLA calls, and ops -> what a user can do. Names of LAPACK's are those of its functions for all types.
_DECOMPOSITIONS = (
    "compute it before the export if it depends on constants only; Cholesky, LU and QR decompositions of up to 32 rows "
    "convert, and with them jnp.linalg.solve, inv and det"
)
_RANDOM = "draw them by jax.random with a key of the default kind, or pass them as an argument of the function"
_HINTS: Mapping[str, str] = {
    "@lapack_": _DECOMPOSITIONS,
    "@Eigh": _DECOMPOSITIONS,
    "@Qr": "export the function for platforms=['cpu'], whose QR decomposition converts",
    "rng": _RANDOM,
    "@stablehlo.dynamic_rng": _RANDOM,
}


def _hint(row_name: str) -> str:
    return next((hint for start, hint in _HINTS.items() if row_name.startswith(start)), "")


class Raising:
    """The work on one module.

    Args:
        smallest: The smallest size that an unknown dimension may have.

    Attributes:
        applied: How often an op of each name was replaced.
        left: The ops that stay, with the reason.
    """

    __slots__ = ("_checked", "_functions", "_known", "_of_sizes", "applied", "left")

    def __init__(self, smallest: int = 0) -> None:
        self._functions: Mapping[str, FuncOp] = {}
        self._checked: set[Attribute] = set()
        self._known = Known()
        self._known.smallest = smallest
        # What ops on sizes were replaced by.
        self._of_sizes: dict[tuple[object, ...], Value] = {}
        self.applied: Counter[str] = Counter()
        self.left: dict[Operation, str] = {}

    def run(self, functions: Mapping[str, FuncOp]) -> None:
        """Raises the ops of functions' bodies, but for those that only say what another op computes."""
        self._functions = functions
        described = {
            name for function in functions.values() for op in function.body.walk() for name in composites.references(op)
        }
        for name, function in functions.items():
            if name not in described:
                drive(self._raise_block(function.body.block))
                _erase_dead(function.body)
                self._settle(function.body)

    def _raise_block(self, block: Block) -> Task[None]:
        for argument in block.args:
            if argument not in self._known.shapes:
                self._known.note(argument, argument.shape)
        op = block.first_op
        while op is not None:
            if not op.name.startswith(PREFIXES):
                self._note(op)
                op = op.next_op
                continue
            before = op.prev_op
            if op.name in _INLINED and self._inlined(op):
                op = block.first_op if before is None else before.next_op
                continue
            following = op.next_op
            inside = self._replace(op)
            for inner in inside:
                yield self._raise_block(inner)
            if inside:
                self._finish(inside)
            op = following

    def _finish(self, blocks: Sequence[Block]) -> None:
        """Improves an op whose blocks are raised."""
        for block in blocks:
            if block.parent is not None:
                _erase_dead(block.parent)
        region = blocks[0].parent
        if region is not None and region.parent is not None:
            backwards.turn(region.parent, self._known)

    def _inlined(self, op: Operation) -> bool:
        """Puts the ops in its place that an op stands for, where it has no form of its own."""
        callee = self._functions.get(composites.decomposition(op))
        if callee is not None and composites.row_name(op) not in rows.NAMES:
            inline_call(op, callee, is_last=False, note_call=True)
            return True
        if op.name not in control_flow.CONDITIONALS:
            return False
        region = control_flow.chosen_region(RaisedOp(op, self._known))
        if region is not None:
            control_flow.inline(op, region)
        return region is not None

    def _settle(self, body: Region) -> None:
        """Replaces ops that repeat a tensor by others that are better where the whole is needed."""
        for op in [op for op in body.walk() if op.name == BROADCAST]:
            found = shaping.settled(RaisedOp(op, self._known))
            if found is not None:
                op.results[0].replace_all_uses_with(found.value)
                op.erase()

    def _note(self, op: Operation) -> None:
        """Notes the results of an op that stays."""
        for result in op.results:
            self._known.note(result, result.shape)
            constant = tensor_data.constant_of(result)
            if constant is not None:
                self._known.constants[result] = constant

    def _replace(self, op: Operation) -> Sequence[Block]:
        """Replaces an op, or notes why it stays; returns the blocks of new regions."""
        name = op.name
        key = _size_key(op) if name in _OF_SIZES else None
        same = self._of_sizes.get(key) if key else None
        if same is None and name in CONSTANT_OPS and turn_into_constant(op):
            self.applied[name] += 1
            if key:
                self._of_sizes[key] = op.results[0]
            return ()
        raised = attempt(self._raised, op) if same is None else ((same,), ())
        if isinstance(raised, Failure):
            self.left[op] = raised.reason
            self._note(op)
            return ()
        found, blocks = raised
        if key:
            self._of_sizes[key] = found[0]
        for old, new in zip(op.results, found, strict=True):
            old.replace_all_uses_with(new)
        self.applied[name] += 1
        op.erase()
        return blocks

    def _raised(self, op: Operation) -> tuple[Sequence[Value], Sequence[Block]]:
        name = composites.row_name(op)
        row = rows.row_of(name)
        if row is None and name not in control_flow.HANDLED:
            what = f"there is no {name[1:]!r} in TensorFlow" if name.startswith("@") else "TensorFlow has no such op"
            raise Declined(f"{what}, and no ops that compute the same are known yet")
        for value in (*op.operands, *op.results):
            if value.type not in self._checked:
                _check_type(op, value.type)
                self._checked.add(value.type)
        view = RaisedOp(op, self._known)
        if row is None:
            raised, blocks = control_flow.raised(view)
            return [each.value for each in raised], blocks
        composites.check_call(op, name)
        try:
            found = (complex_numbers.by_parts(row) if complex_numbers.is_by_parts(name, view) else row)(view)
        except dims.MismatchError as mismatch:
            raise error_at(op, "shape-mismatch", str(mismatch)) from None
        results = (found,) if isinstance(found, EmittedTensor) else tuple(found)
        need(len(results) == len(op.results), "it has another number of results")
        for index, result in enumerate(results):
            view.specialize(result, index)
        return [each.value for each in results], ()


def _check_type(op: Operation, kind: Attribute) -> None:
    """Declines types that no op of TensorFlow computes with.

    Raises:
        ConversionError: A size doesn't fit into 32 bits, or the number of elements is absurd (`absurd-shape`).
    """
    shape, element = types.shape_of(kind), types.element_of(kind)
    is_number = isinstance(element, ComplexType | FloatType | IntegerType) and types.from_mlir(element) is not None
    if shape is None or not (is_number or element is INDEX):
        raise Declined(f"it has operands or results of type {kind}")
    if max(shape, default=0) > MAX_SIZE or math.prod([size for size in shape if size > 0]) > _MAX_ELEMENTS:
        raise error_at(op, "absurd-shape", f"a tensor of shape {list(shape)} is too large for LiteRT")


def _size_key(op: Operation) -> tuple[object, ...]:
    """Returns what ops on sizes have in common if they are the same, nothing for ops on other tensors."""
    kind = op.results[0].type
    if types.element_of(kind) not in (types.I32, types.I64) or len(types.shape_of(kind) or ()) > 1:
        return ()
    return (op.parent, op.name, kind, *op.operands, *op.properties.values())


def _erase_dead(region: Region) -> None:
    """Erases what nothing uses: repeated tensors, operands of ops that were replaced by other forms."""
    for op in reversed(list(region.walk())):
        results = op.results
        # Most ops have one result, which is used.
        if not results or results[0].first_use is not None:
            continue
        if op.name in _PURE or (all(result.is_unused for result in results) and tf_effects.is_pure(op)):
            op.erase()
