"""The functions that ops name: whether they are there, and whether their types fit those of the op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tfconvert.schema.dialects import call_interfaces, tf_regions
from tfconvert.schema.dialects.call_interfaces import Kind
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.tf_attributes import PlaceholderAttr
from tfconvert.schema.dialects.tf_regions import fail
from tfconvert.schema.ir.builtin import SymbolTable
from tfconvert.schema.ir.operation import Operation

_Lookup = Callable[[], SymbolTable]

# Other ops that name functions, and the attributes that do.
_NAMED: Mapping[str, tuple[str, ...]] = {
    "tf.BatchFunction": ("f",),
    "tf.LegacyCall": ("f",),
    "tf.TPUPartitionedCall": ("f",),
    "tf.XlaCallModule": ("function_list",),
    "tf.XlaReduceWindow": ("computation",),
    "tf.XlaSelectAndScatter": ("select", "scatter"),
    "tf.XlaVariadicReduceV2": ("reducer",),
    "tf.XlaVariadicSort": ("comparator",),
    "tfl.call_once": ("session_init_function",),
}

# How many arguments their functions have, where that is fixed.
_ARGUMENTS: Mapping[str, Mapping[str, int]] = {
    "tf.XlaReduceWindow": {"computation": 2},
    "tf.XlaSelectAndScatter": {"select": 2, "scatter": 2},
}

# Those whose functions must have a body of one block.
_WITH_BODY = frozenset({"tf.XlaVariadicReduceV2", "tf.XlaVariadicSort"})

# Branches and loops of the `tfl` dialect that name functions.
_TFL: Mapping[str, tuple[Kind, tuple[str, ...]]] = {
    "tfl.if": (Kind.BRANCHES, ("then_branch", "else_branch")),
    "tfl.while": (Kind.LOOP, ("cond", "body")),
}


def check(op: Operation, symbols: _Lookup) -> None:
    """Checks the functions that an op names.

    Args:
        op: The op.
        symbols: Returns the symbols around it.
    """
    interface = call_interfaces.INTERFACES.get(op.name)
    if interface is not None and op.name != "func.call":
        kind, names = interface.kind, interface.properties
    elif op.name in _TFL and not op.regions:
        kind, names = _TFL[op.name]
    elif op.name in _NAMED:
        _check_named(op, symbols())
        return
    else:
        return
    functions = [function for name in names for function in _functions(op, name, symbols)]
    if any(function is None for function in functions):
        return
    _CHECKS[kind](op, [function for function in functions if function is not None])


def _functions(op: Operation, name: str, symbols: _Lookup) -> list[FuncOp | None]:
    """Returns the functions that an attribute names, `None` for a parameter of the function around the op."""
    # Ops that TensorFlow's registry doesn't know have all as attributes.
    attribute = op.properties.get(name) or op.attributes.get(name)
    if attribute is None or isinstance(attribute, PlaceholderAttr):
        return [None]
    found: list[FuncOp | None] = []
    for symbol in call_interfaces.symbols(attribute):
        function = symbols().lookup(symbol)
        if not isinstance(function, FuncOp):
            fail(op, f"the attribute {name!r} names @{symbol}, but there is no function of that name")
        found.append(function)
    return found


def _check_named(op: Operation, symbols: SymbolTable) -> None:
    for name in _NAMED[op.name]:
        for function in _functions(op, name, lambda: symbols):
            if function is None:
                continue
            count, expected = len(function.function_type.inputs), _ARGUMENTS.get(op.name, {}).get(name)
            if op.name in ("tf.LegacyCall", "tf.TPUPartitionedCall"):
                expected = len(op.operands) - (op.name == "tf.TPUPartitionedCall")
            if expected not in (None, count):
                fail(op, f"@{function.sym_name} must take {expected} arguments, found {count}")
            if op.name in _WITH_BODY and len(function.body.blocks) != 1:
                fail(op, f"@{function.sym_name} must have a body of one block")


def _check_call(op: Operation, functions: Sequence[FuncOp]) -> None:
    count = len(functions[0].function_type.inputs)
    if count != len(op.operands):
        fail(op, f"@{functions[0].sym_name} must take {len(op.operands)} arguments, found {count}")


def _check_branches(op: Operation, functions: Sequence[FuncOp]) -> None:
    operands, results = op.operand_types[1:], op.result_types
    for function in functions:
        kind, name = function.function_type, function.sym_name
        tf_regions.agree(op, f"arguments of @{name}", kind.inputs, operands)
        tf_regions.agree(op, f"results of @{name}", kind.results, results)
        tf_regions.agree(op, f"arguments of @{name}", kind.inputs, functions[0].function_type.inputs)


def _check_loop(op: Operation, functions: Sequence[FuncOp]) -> None:
    cond, body = functions[0].function_type, functions[1].function_type
    if len(cond.results) != 1:
        fail(op, f"@{functions[0].sym_name} must have one result, found {len(cond.results)}")
    tf_regions.check_loop(op, cond.inputs, body.inputs, body.results)


_CHECKS: Mapping[Kind, Callable[[Operation, Sequence[FuncOp]], None]] = {
    Kind.CALL: _check_call,
    Kind.BRANCHES: _check_branches,
    Kind.LOOP: _check_loop,
}
