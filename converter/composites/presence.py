"""Whether functions say what they implement: most models' don't, and need not even load what treats them."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

IMPLEMENTS = "tf._implements"
"""Function attribute: the interface, as a string, or as `#tf_type.func<@name, {attributes}>`."""

API_IMPLEMENTS = "tf.api_implements"
"""Function attribute: the interface, as Keras writes it."""


def has_composites(module: ModuleOp) -> bool:
    """Tells whether a function of a module is marked."""
    return any(
        IMPLEMENTS in op.attributes or API_IMPLEMENTS in op.attributes for op in module.ops if isinstance(op, FuncOp)
    )
