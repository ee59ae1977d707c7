"""What xDSL's parser needs to read our dialects: classes of `tf` and `tfl` ops are made when a text names them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.ir import Dialect, Operation

from schema.dialects import tf, tfl, types
from schema.dialects.tf_executor import TF_EXECUTOR
from schema.dialects.tf_saved_model import TF_SAVED_MODEL

TF_TYPE = Dialect("tf_type", [], [*types.NAMED_TYPES, tf.ShapeAttr, tf.FunctionAttr, tf.PlaceholderAttr])


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


def dialect_context() -> DialectContext:
    """Returns a context with all dialects of the project."""
    context = DialectContext()
    for dialect in (Builtin, Func, TF_TYPE, TF_EXECUTOR, TF_SAVED_MODEL):
        context.load_dialect(dialect)
    return context
