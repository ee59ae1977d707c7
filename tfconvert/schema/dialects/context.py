"""What xDSL's parser needs to read our dialects: classes of `tf` and `tfl` ops are made when a text names them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.ir import Attribute, Dialect, Operation, TypeAttribute

from tfconvert.schema.dialects import quant, tf, tfl, types
from tfconvert.schema.dialects.tensor_proto import TensorProtoAttr
from tfconvert.schema.dialects.tf_executor import TF_EXECUTOR
from tfconvert.schema.dialects.tf_saved_model import TF_SAVED_MODEL

TF_TYPE = Dialect(
    "tf_type", [], [*types.NAMED_TYPES, tf.ShapeAttr, tf.FunctionAttr, tf.PlaceholderAttr, TensorProtoAttr]
)

TFL = Dialect("tfl", [], [tfl.ConstBytesAttr])
"""Attributes only: there are too many ops to make all their classes."""


class _Resources(OpAsmDialectInterface):
    """The resource section of a file, whose names stay as they are, however many files are parsed."""

    def declare_resource(self, key: str) -> str:
        self._blob_storage[key] = ""
        return key


class DialectContext(Context):
    """A context in which every `tf` op is known, whether or not TensorFlow's registry has it, and every `tfl` op."""

    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        """Returns the class of an op by its full name, `None` if no dialect has it."""
        dialect, _, op_name = name.partition(".")
        if dialect == "tf" and op_name:
            return tf.op_class(op_name)
        if dialect == "tfl" and op_name:
            try:
                return tfl.op_class(op_name)
            except KeyError:
                return None
        return super().get_optional_op(name, dialect_stack=dialect_stack)

    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        """Returns the class of a type by its full name, `None` if no dialect has it."""
        return super().get_optional_type(name) or types.ref_syntax(name)

    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        """Returns the class of an attribute or a type by its full name, `None` if no dialect has it."""
        return super().get_optional_attr(name) or types.ref_syntax(name)


def dialect_context() -> DialectContext:
    """Returns a context with all dialects of the project."""
    context = DialectContext()
    builtin = Dialect("builtin", list(Builtin.operations), list(Builtin.attributes), [_Resources()])
    for dialect in (builtin, Arith, Func, TF_TYPE, TF_EXECUTOR, TF_SAVED_MODEL, TFL, quant.QUANT):
        context.load_dialect(dialect)
    return context
