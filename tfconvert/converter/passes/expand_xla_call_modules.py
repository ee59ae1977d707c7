"""Pass `expand-xla-call-modules`: replaces programs of StableHLO in TensorFlow's graphs by calls of their functions.

JAX, Keras with the JAX backend and PyTorch/XLA export a SavedModel whose computation is one op with a portable artifact
as an attribute. Its functions become private functions of the module.

Before:

    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.XlaCallModule"(%x) <{Sout = [#tf_type.shape<2>], module = "ML...", platforms = ["CPU"],
          version = 10 : i64}> : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }

After:

    module attributes {tfconvert.positive_sizes} {
      func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
        %0 = func.call @xla_call_module(%x) : (tensor<2xf32>) -> tensor<2xf32>
        func.return %0 : tensor<2xf32>
      }
      func.func private @xla_call_module(%a: tensor<2xf32>) -> tensor<2xf32> {
        %0 = "stablehlo.tanh"(%a) : (tensor<2xf32>) -> tensor<2xf32>
        func.return %0 : tensor<2xf32>
      }
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar, NoReturn

from tfconvert.converter.ir.edit import replace_op
from tfconvert.converter.ir.symbol_table import names
from tfconvert.converter.ir.tf_builder import TFBuilder
from tfconvert.converter.pipeline.pass_result import NOTHING_DONE, PassResult
from tfconvert.importers.stablehlo.artifact import import_artifact, is_artifact
from tfconvert.importers.stablehlo.interface import MAIN, bind_platform
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import dims, tf, types
from tfconvert.schema.dialects.call_interfaces import symbols
from tfconvert.schema.dialects.func import CallOp, FuncOp, functions_of
from tfconvert.schema.dialects.locations import error_at, place_of
from tfconvert.schema.dialects.stablehlo import POSITIVE_SIZES
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import (
    UNIT,
    ArrayAttr,
    BytesAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
)
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value

XLA_CALL_MODULE = "tf.XlaCallModule"

# The oldest version with artifacts of stable meaning.
_OLDEST = 4

_FUNCTION = "xla_call_module"
_CALLS_BACK = "tf.call_tf_function"


class ExpandXlaCallModules:
    """Replaces `tf.XlaCallModule` by calls."""

    __slots__ = ()

    name: ClassVar[str] = "expand-xla-call-modules"

    def apply(self, module: ModuleOp) -> PassResult:
        """Replaces the ops of all functions.

        Raises:
            ConversionError: An artifact can't be imported, or doesn't fit its op (`bad-call`).
        """
        expansion = _Expansion(module)
        applied: Counter[str] = Counter()
        for op in [op for op in module.walk() if op.name == XLA_CALL_MODULE]:
            expansion.expand(op)
            applied[op.name] += 1
        if applied:
            module.attributes[POSITIVE_SIZES] = UNIT
        return PassResult(applied) if applied else NOTHING_DONE


class _Expansion:
    """The functions of a module, to which those of artifacts are added."""

    __slots__ = ("_added", "_functions", "_module", "_taken")

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._functions = functions_of(module)
        self._taken = set(self._functions)
        # The functions of programs by their attributes: signatures share them.
        self._added: dict[tuple[Attribute | None, ...], FuncOp] = {}

    def expand(self, op: Operation) -> None:
        """Replaces an op by a call of its program."""
        key = tuple(op.properties.get(name) for name in ("module", "platforms", "function_list"))
        main = self._added.get(key)
        if main is None:
            main = self._added[key] = self._program(op)
        build = TFBuilder(op)
        operands = [*_dimensions(op, build), *op.operands]
        kind = main.function_type
        _check_count(op, "takes", len(kind.inputs), len(operands))
        _check_count(op, "returns", len(kind.results), len(op.results))
        converted = [_converted(op, build, *pair) for pair in zip(operands, kind.inputs, strict=True)]
        call = build.insert(CallOp.of(main.sym_name, converted, kind.results, op.location))
        replace_op(op, [_converted(op, build, *pair) for pair in zip(call.results, op.result_types, strict=True)])

    def _program(self, op: Operation) -> FuncOp:
        """Adds the functions of an op's artifact; returns the one that the op calls."""
        version = op.properties.get("version")
        if not isinstance(version, IntegerAttr) or version.value < _OLDEST:
            _refuse(op, f"its program has version {version}, whose meaning is not stable", "export the model again")
        data = _data(op)
        if not is_artifact(data):
            _refuse(op, "its program is no portable artifact", "export the model again, with a newer JAX")
        name = place_of(op.location).node or XLA_CALL_MODULE
        own = functions_of(import_artifact(data, name, outermost=MAIN))
        main = own.get(MAIN)
        if main is None or main.is_declaration:
            _refuse(op, "its program has no function main", "the model file is damaged")
        platforms = [name.lower() for name in _texts(op, "platforms")]
        bind_platform(main, platforms)
        renamed = {name: self._unique(_FUNCTION if function is main else name) for name, function in own.items()}
        called = _texts(op, "function_list")
        for name, function in own.items():
            for inner in list(function.body.walk()):
                _rename(inner, renamed)
                if inner.name == "stablehlo.custom_call":
                    self._call_back(inner, called)
            function.detach()
            function.sym_name = renamed[name]
            function.sym_visibility = "private"
            function.arg_attrs = function.res_attrs = None
            self._module.body.block.add_op(function)
        return main

    def _unique(self, name: str) -> str:
        unique, number = name, 0
        while unique in self._taken:
            number += 1
            unique = f"{name}_{number}"
        self._taken.add(unique)
        return unique

    def _call_back(self, op: Operation, called: Sequence[str]) -> None:
        """Replaces a call of a function of TensorFlow by its number in the list of the outer op."""
        target = op.properties.get("call_target_name")
        if not isinstance(target, StringAttr) or target.data != _CALLS_BACK:
            return
        config = op.attributes.get("tf.backend_config")
        fields = config.data if isinstance(config, DictionaryAttr) else {}
        index = fields.get("called_index")
        name = called[index.value] if isinstance(index, IntegerAttr) and 0 <= index.value < len(called) else ""
        function = self._functions.get(name)
        if function is None:
            raise error_at(op, "missing-function", "the called function is not in the model", "the file is damaged")
        kind = function.function_type
        _check_count(op, "takes", len(kind.inputs), len(op.operands))
        _check_count(op, "returns", len(kind.results), len(op.results))
        build = TFBuilder(op)
        operands = [_converted(op, build, *pair) for pair in zip(op.operands, kind.inputs, strict=True)]
        call = build.tf_op("StatefulPartitionedCall", operands, kind.results, {"f": attrs.symbol(name)})
        replace_op(op, [_converted(op, build, *pair) for pair in zip(call.results, op.result_types, strict=True)])


def _refuse(op: Operation, what: str, hint: str) -> NoReturn:
    raise error_at(op, "unsupported-artifact", what, hint)


def _data(op: Operation) -> bytes:
    module = op.properties.get("module")
    if isinstance(module, BytesAttr):
        return module.data
    return module.data.encode("utf-8", "surrogateescape") if isinstance(module, StringAttr) else b""


def _texts(op: Operation, name: str) -> list[str]:
    """Returns the strings or the symbols of an array."""
    found = op.properties.get(name)
    if not isinstance(found, ArrayAttr):
        return []
    return [each.data if isinstance(each, StringAttr) else "".join(symbols(each)) for each in found.data]


def _check_count(op: Operation, verb: str, own: int, given: int) -> None:
    if own != given:
        raise error_at(op, "bad-call", f"its program {verb} {own} values, not {given}", "the model file is damaged")


def _dimensions(op: Operation, build: TFBuilder) -> list[Value]:
    """Returns the sizes of operands that old programs take as their first arguments.

    Raises:
        ConversionError: One of them is not a size of an operand (`bad-attribute`).
    """
    found = []
    for place in _texts(op, "dim_args_spec"):
        argument, _, dimension = place.partition(".")
        numbers = [int(text) if text.isdecimal() else -1 for text in (argument, dimension)]
        if min(numbers) < 0 or numbers[0] >= len(op.operands):
            raise error_at(op, "bad-attribute", f"{place!r} is no size of an operand", "the model file is damaged")
        operand, scalar = op.operands[numbers[0]], types.tensor(types.I32, ())
        rank = operand.shape
        sizes = build.tf("Shape", (operand,), types.tensor(types.I32, (-1 if rank is None else len(rank),)))
        found.append(build.tf("GatherV2", (sizes, numbers[1], 0), scalar, {"batch_dims": 0}))
    return found


def _converted(op: Operation, build: TFBuilder, value: Value, kind: Attribute) -> Value:
    """Returns a value as one of another type, whose sizes must be compatible."""
    if value.type is kind:
        return value
    if not dims.compatible(value.shape, types.shape_of(kind)):
        raise error_at(op, "bad-call", f"its program has {kind} where the op has {value.type}", "the file is damaged")
    return build.insert(tf.build("Cast", (value,), (kind,), {"Truncate": False}, op.location)).results[0]


def _rename(op: Operation, renamed: Mapping[str, str]) -> None:
    """Replaces the names of functions in an op's attributes."""
    if names(op):
        for attributes in (op.properties, op.attributes):
            for key, value in attributes.items():
                attributes[key] = _with_names(value, renamed)


def _with_names(value: Attribute, renamed: Mapping[str, str]) -> Attribute:
    if isinstance(value, SymbolRefAttr):
        return attrs.symbol(renamed.get(value.root, value.root))
    if isinstance(value, ArrayAttr):
        return ArrayAttr.get([_with_names(each, renamed) for each in value.data])
    return value
