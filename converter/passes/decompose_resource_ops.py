"""Pass `decompose-resource-ops`: variables are only read and assigned; what does more reads, computes, assigns (§8).

Before:

    func.func @main(%x: tensor<2xf32>) {
      %0 = "tf.VarHandleOp"() <{container = "", dtype = f32, shape = #tf_type.shape<2>, shared_name = "v"}>
          : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      "tf.AssignAddVariableOp"(%0, %x) : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
      func.return
    }

After:

    func.func @main(%x: tensor<2xf32>) {
      %0 = "tf.VarHandleOp"() <{container = "", dtype = f32, shape = #tf_type.shape<2>, shared_name = "v"}>
          : () -> tensor<!tf_type.resource<tensor<2xf32>>>
      %1 = "tf.ReadVariableOp"(%0) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
      %2 = "tf.AddV2"(%1, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      "tf.AssignVariableOp"(%0, %2) <{validate_shape = false}>
          : (tensor<!tf_type.resource<tensor<2xf32>>>, tensor<2xf32>) -> ()
      func.return
    }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from converter.rewrite.edit import erase
from schema.dialects import tensor_data, tf, types


@dataclass(frozen=True, slots=True)
class DecomposeResourceOps:
    """Writes what changes or looks up a part of a variable as reads, plain ops and assignments."""

    name: ClassVar[str] = "decompose-resource-ops"

    def apply(self, module: ModuleOp) -> Counter[str]:
        """Rewrites every function; returns how many ops of each name are gone."""
        applied: Counter[str] = Counter()
        for function in module.ops:
            if isinstance(function, FuncOp):
                for op in [op for op in function.body.walk() if op.name in _DECOMPOSED and not _spreads(op)]:
                    applied[op.name.removeprefix("tf.")] += 1
                    _DECOMPOSED[op.name](op)
                    erase(op)
        return applied


def _spreads(op: Operation) -> bool:
    """Tells whether one number is scattered over whole rows, which only ops on variables do."""
    scatters = op.name.startswith("tf.ResourceScatter") and not op.name.startswith("tf.ResourceScatterNd")
    return scatters and types.shape_of(op.operands[2].type) == () != types.shape_of(op.operands[1].type)


def _insert(
    op: Operation, name: str, operands: Sequence[SSAValue], results: Sequence[Attribute], attributes: Any = None
) -> Sequence[SSAValue]:
    new = tf.build(name, operands, results, attributes, op.location)
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    return new.results


def _read(op: Operation, element: Attribute | None = None) -> SSAValue:
    """Inserts a read of the variable that an op is about."""
    handle = op.operands[0].owner
    shape = None
    if isinstance(handle, Operation) and handle.name == "tf.VarHandleOp":
        shape, element = tf.get(handle, "shape"), handle.properties.get("dtype", element)
    assert element is not None, "only ops that tell the type are about what is no handle here"
    return _insert(op, "ReadVariableOp", (op.operands[0],), (types.tensor(element, shape),))[0]


def _assign(op: Operation, value: SSAValue) -> None:
    _insert(op, "AssignVariableOp", (op.operands[0], value), (), {"validate_shape": False})


def _update(compute: str, op: Operation) -> None:
    old = _read(op, types.element_of(op.operands[1].type))
    _assign(op, _insert(op, compute, (old, op.operands[1]), (old.type,))[0])


def _scatter(compute: str, op: Operation) -> None:
    """Each index is that of a row: a vector of one for the op that takes vectors."""
    old = _read(op, types.element_of(op.operands[2].type))
    indices = op.operands[1]
    shape = types.shape_of(indices.type)
    value = tensor_data.of_array(np.array(-1, np.int32))
    (last,) = _insert(op, "Const", (), (value.type,), {"value": value})
    vectors = types.tensor(types.element_of(indices.type), None if shape is None else (*shape, 1))
    (indices,) = _insert(op, "ExpandDims", (indices, last), (vectors,))
    _assign(op, _insert(op, compute, (old, indices, op.operands[2]), (old.type,))[0])


def _scatter_nd(compute: str, op: Operation) -> None:
    old = _read(op, types.element_of(op.operands[2].type))
    _assign(op, _insert(op, compute, (old, op.operands[1], op.operands[2]), (old.type,))[0])


def _gather(op: Operation) -> None:
    table = _read(op, types.element_of(op.results[0].type))
    batch_dims = tf.get(op, "batch_dims", 0)
    value = tensor_data.of_array(np.array(batch_dims, np.int32))
    (axis,) = _insert(op, "Const", (), (value.type,), {"value": value})
    results = [result.type for result in op.results]
    _hand_on(op, _insert(op, "GatherV2", (table, op.operands[1], axis), results, {"batch_dims": batch_dims}))


def _gather_nd(op: Operation) -> None:
    table = _read(op, types.element_of(op.results[0].type))
    _hand_on(op, _insert(op, "GatherNd", (table, op.operands[1]), [result.type for result in op.results]))


def _hand_on(op: Operation, values: Sequence[SSAValue]) -> None:
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)


def _drop(op: Operation) -> None:
    """Does nothing: the op is about how values are held in memory."""


_DECOMPOSED: Mapping[str, Callable[[Operation], None]] = {
    "tf.AssignAddVariableOp": partial(_update, "AddV2"),
    "tf.AssignSubVariableOp": partial(_update, "Sub"),
    "tf.DisableCopyOnRead": _drop,
    "tf.ResourceGather": _gather,
    "tf.ResourceGatherNd": _gather_nd,
    **{f"tf.ResourceScatter{name}": partial(_scatter, f"TensorScatter{name}")
       for name in ("Update", "Add", "Sub", "Min", "Max")},
    **{f"tf.ResourceScatterNd{name}": partial(_scatter_nd, f"TensorScatter{name}")
       for name in ("Update", "Add", "Sub", "Min", "Max")},
}  # fmt: skip
"""Op -> what writes it as others, before it is erased."""
