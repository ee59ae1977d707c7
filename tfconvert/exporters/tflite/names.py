"""How tensors are called: as the user knows them, or as TensorFlow's own converter calls them; unique in a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tfconvert.schema.dialects import tfl
from tfconvert.schema.dialects.func import FuncOp
from tfconvert.schema.dialects.locations import node_of
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION, EXPORTED_NAMES, entry_names, port_names
from tfconvert.schema.dialects.tfl import TFLOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.locations import FusedLoc
from tfconvert.schema.ir.values import Value

_QUANTIZE = "quantize"
_CONVOLUTIONS = ("conv_2d", "depthwise_conv_2d")
_ACTIVATION = "fused_activation_function"

# Which operands of an operator are its filter and its bias.
_WEIGHTS = {"conv_2d": (1, 2), "depthwise_conv_2d": (1, 2), "fully_connected": (1, 2), "transpose_conv": (1, 3)}


class Naming(NamedTuple):
    """How tensors are called.

    Attributes:
        is_official: Whether as TensorFlow's converter calls them, which scripts look for: inputs and outputs by the
            graph's tensors (`serving_default_x:0`, `StatefulPartitionedCall:0`), fused operators by all that is in
            them. Otherwise inputs and outputs have their names in the signature, and operators that of their last node.
    """

    is_official: bool = False

    def ports(self, function: FuncOp, which: str) -> list[str]:
        """Returns names of a function's inputs or outputs; there may be too few.

        Args:
            function: The function.
            which: `inputs` or `outputs`.
        """
        if EXPORTED_NAMES not in function.attributes:
            names = entry_names(function, which)
            return [name.removesuffix(":0") for name in names] if self.is_official else names
        is_named = ENTRY_FUNCTION in function.attributes and self.is_official
        return entry_names(function, which) if is_named else port_names(function, which)

    def operator(self, op: TFLOp) -> str:
        """Returns the name of what an operator computes."""
        if self.is_official and op.op_name == _QUANTIZE:
            return op.name  # It has no node: the quantizer has inserted it.
        return self.node(op.location) or op.op_name

    def constant(self, location: Attribute, op: TFLOp | None = None, position: int = 0) -> str:
        """Returns the name of a constant.

        Args:
            location: Its location.
            op: The operator that is the first to use it.
            position: As which operand.
        """
        weights = _WEIGHTS.get(op.op_name) if op is not None and self.is_official else None
        if op is not None and weights is not None and position in weights:
            nodes = list(dict.fromkeys(_nodes(op.location)))
            # A filter has the name of the node that multiplies; so has a bias that the model doesn't have, but for a
            # kernel that asks for one. Others have that of all that is fused.
            if position == weights[1]:
                has_activation = tfl.attribute(op, _ACTIVATION) not in (None, "NONE")
                return ";".join(nodes if len(nodes) > 1 + has_activation else nodes[-1:]) or "constant"
            if nodes and nodes[-1] not in _nodes(location):
                return nodes[-1]
        return self.node(location) or "constant"

    def node(self, location: Attribute) -> str:
        """Returns the name of a location; empty if it has none."""
        return ";".join(dict.fromkeys(_nodes(location))) if self.is_official else node_of(location)

    def operands(self, op: TFLOp) -> Iterator[tuple[int, Value]]:
        """Yields the operands in the order in which they are named, each with its position."""
        found = list(enumerate(op.operands))
        # TensorFlow's converter meets the bias of a convolution before its filter: the filter gets the number.
        return reversed(found) if self.is_official and op.op_name in _CONVOLUTIONS else iter(found)

    def empty(self) -> Names:
        """Returns no names, for a subgraph or a file."""
        return Names("" if self.is_official else "_")


USERS = Naming()
"""The names that the user knows."""


def _nodes(location: Attribute) -> Iterator[str]:
    """Yields the nodes of a location, the one that named the result first."""
    left = [location]
    while left:
        each = left.pop()
        if isinstance(each, FusedLoc):
            left.extend(each.locations)
        elif name := node_of(each):
            yield name


class Names:
    """The names that are taken in a subgraph, or in a file.

    Args:
        joint: What stands between a name and the number that makes it unique.
    """

    def __init__(self, joint: str = "_") -> None:
        self._joint = joint
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def unique(self, wanted: str) -> str:
        """Returns a name, with a number appended if it is taken, and reserves it."""
        name = wanted
        while name in self._taken:
            number = self._next[wanted] = self._next.get(wanted, 0) + 1
            name = f"{wanted}{self._joint}{number}"
        self._taken.add(name)
        return name
