"""Pass `find-training-mode`: warns about signatures that compute as in training; rewrites nothing.

Keras' own `model.export` writes the training mode of a model if one of its layers trains by default, such as those that
resize or augment images. Then batch normalization takes the statistics of each batch, and layers for dropout, noise and
augmentation draw random numbers. The pass reports these:

- A variable that no result of any signature depends on, and whose new value is made of its old one and of the mean of a
  batch. Results depend on that mean: it is a moving average of batch normalization.
- `FusedBatchNormV3` with `is_training`, unless its input was reshaped for it, as layer normalization does.
- Random numbers that decide which elements are kept, or are drawn in a layer of Keras that only acts in training.

Other random numbers get a note, since they may be what a model is for: a variational autoencoder, a generator. A
function that updates a variable that its results depend on is a step of training, or of a stream, and gets neither.

Noted with `training-mode`:

    func.func @main(%x: tensor<?x4x4x2xf32>, %s: tensor<2xf32>) -> tensor<?x4x4x2xf32> {
      %0 = "tf.Const"() <{value = dense<> : tensor<0xf32>}> : () -> tensor<0xf32>
      %1:6 = "tf.FusedBatchNormV3"(%x, %s, %s, %0, %0)
          <{data_format = "NHWC", epsilon = 0.001 : f32, exponential_avg_factor = 1.0 : f32, is_training = true}>
          : (tensor<?x4x4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<0xf32>, tensor<0xf32>)
          -> (tensor<?x4x4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<*xf32>)
      func.return %1#0 : tensor<?x4x4x2xf32>
    }
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.schema.diagnostics import NOTE, TRAINING_MODE, WARNING, Diagnostic
from tfconvert.schema.dialects import tensor_data, tf, tf_effects, types
from tfconvert.schema.dialects.call_interfaces import callees
from tfconvert.schema.dialects.func import FuncOp, defined_functions
from tfconvert.schema.dialects.locations import nodes_of, place_of
from tfconvert.schema.dialects.tf_saved_model import EXPORTED_NAMES
from tfconvert.schema.ir.attributes import ArrayAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import OpResult, Value

AUGMENTATION = re.compile(
    r"(^|/)(random_(brightness|color_\w+|contrast|crop|elastic\w*|erasing|flip|gaussian_blur|grayscale|height|hue|invert|"
    r"perspective|posterization|rotation|saturation|sharpness|shear|translation|width|zoom)|rand_augment|aug_mix|"
    r"mix_up|cut_mix|auto_contrast)(_\d+)*(/|$)"
)
"""The names of Keras' layers that augment images, in the path of a layer."""

# Parts of the names of other layers that draw random numbers in training only.
_TRAINS_ONLY = re.compile(r"dropout|drop_path|stochastic_depth|gaussian_noise|augment")

_HINT = (
    "convert the Keras model itself, in memory or as a .keras file, or export a function that calls it with "
    "training=False; if the model is to compute so, ignore this"
)
_DRAWN_HINT = "if only training should draw them, convert the Keras model itself, or export it with training=False"

_FLOATS = frozenset({types.F16, types.BF16, types.F32, types.F64})
_READ, _ASSIGN, _HANDLE = "tf.ReadVariableOp", "tf.AssignVariableOp", "tf.VarHandleOp"
_NORMS = "tf.FusedBatchNorm"
# The operands of a batch norm that it mixes with a batch's mean and variance.
_AVERAGES = slice(3, 5)
_REDUCTIONS = frozenset({"tf.Mean", "tf.Sum"})
_DRAWS = ("tf.Random", "tf.StatelessRandom", "tf.TruncatedNormal", "tf.StatelessTruncated", "tf.Parameterized")
_STATELESS = "tf.Stateless"
_GETS_SEED = "RandomGet"
_COMPARISONS = frozenset({"tf.GreaterEqual", "tf.Greater", "tf.Less", "tf.LessEqual"})
_SELECTIONS = frozenset({"tf.Select", "tf.SelectV2", "tf.Mul"})
# The scopes of functions that draw random numbers, inside of those of layers.
_DRAWING = re.compile(r"(stateless_)?(random|truncated)_")

# The scope of a function that JAX compiles.
_JIT = "jit("
# Keras' name of the variable of a layer's seed.
_SEED = "seed_generator_state"

# Maximum number of ops between a drawn number and the op that it decides about, or a mean and its moving average.
_MAX_DISTANCE = 32

# Maximum number of layers in a message.
_MAX_NAMES = 5


class FindTrainingMode:
    """Warns about signatures in training mode."""

    __slots__ = ()

    name: ClassVar[str] = "find-training-mode"

    def apply(self, module: ModuleOp) -> PassResult:
        functions = defined_functions(module)
        public = [each for each in functions.values() if each.sym_visibility in (None, "public")]
        views = [_View(each, functions) for each in public]
        inner = {name for each in functions.values() if each not in public for name in _reads(each.body.walk())}
        notes: list[Diagnostic] = []
        for view in views:
            others = inner.union(*(each.used for each in views if each is not view))
            notes += view.notes(others)
        return PassResult(Counter(), notes)


class _View:
    """A signature's function.

    Args:
        function: The function.
        functions: All functions by name.

    Attributes:
        reached: The ops that its results depend on.
        used: The names of the variables that its results depend on.
    """

    def __init__(self, function: FuncOp, functions: Mapping[str, FuncOp]) -> None:
        self._function = function
        self._functions = functions
        last = function.body.block.last_op
        self.reached = _slice(last.operands if last is not None else ())
        self.used = set(_reads(self.reached))

    def notes(self, used_elsewhere: set[str]) -> list[Diagnostic]:
        """Returns what is to be said about the function.

        Args:
            used_elsewhere: The names of variables that other functions use.
        """
        updates = [(name, op) for op in self._function.body.block.ops if (name := _assigned(op))]
        if any(name in self.used and op.operands[1].element in _FLOATS for name, op in updates):
            return []  # It is a step of training, or of a stream.
        mixed = [(name, op) for name, op in updates if name not in self.used and self._is_average(name, op)]
        averages = [op for name, op in mixed if name not in used_elsewhere]
        norms = [] if mixed else [op for op in self.reached if _is_norm(op) and not _is_reshaped(op)]
        # JAX computes random numbers from a seed; there is no op that draws them.
        drawn = list(self._draws()) or [_source(op) for name, op in updates if name in self.used and _SEED in name]
        trains = [op for op in drawn if averages or norms or _trains_only(op)]
        parts = [
            *_part(
                "batches are normalized with their own mean and variance, and moving averages are updated that "
                "nothing reads",
                map(_layer_of_average, averages),
            ),
            *_part("batches are normalized with their own mean and variance", map(_layer, norms)),
            *_part("random numbers are drawn", map(_layer, trains)),
        ]
        if parts:
            message = f"{self._keys} computes as in training: {'; '.join(parts)}"
            return [Diagnostic(TRAINING_MODE, message, hint=_HINT, severity=WARNING)]
        if varying := [op for op in drawn if self._varies(op)]:
            (part,) = _part("random numbers are drawn", map(_layer, varying))
            message = f"{self._keys} gives other results at each run: {part}"
            return [Diagnostic("random-numbers", message, hint=_DRAWN_HINT, severity=NOTE)]
        return []

    def _varies(self, draw: Operation) -> bool:
        """Returns whether random numbers differ between runs: those of a seed that is constant or an input don't."""
        if not draw.name.startswith(_STATELESS) or draw.parent is not self._function.body.block:
            return True
        return not all(map(tf_effects.is_pure, _slice(draw.operands)))

    @property
    def _keys(self) -> str:
        names = self._function.attributes.get(EXPORTED_NAMES)
        keys = names.data if isinstance(names, ArrayAttr) else ()
        return ", ".join(each.data for each in keys if isinstance(each, StringAttr)) or "the model"

    def _is_average(self, name: str, op: Operation) -> bool:
        """Returns whether an assignment mixes a variable's value and a batch's mean, on which results depend."""
        found = _slice(op.operands[1:], stops=_is_mean, limit=_MAX_DISTANCE)
        mixed = [*found, *_slice(value for each in found if _is_norm(each) for value in each.operands[_AVERAGES])]
        return name in _reads(mixed) and any(_is_mean(each) and each in self.reached for each in found)

    def _draws(self) -> Iterator[Operation]:
        """Yields the ops that draw random numbers, also in branches and loops."""
        pending, seen = list(self.reached), set[str]()
        while pending:
            op = pending.pop()
            if op.name.startswith(_DRAWS) and _GETS_SEED not in op.name:
                yield op
            for name in callees(op):
                if name in self._functions and name not in seen:
                    seen.add(name)
                    pending += self._functions[name].body.walk()


def _slice(
    values: Iterable[Value], stops: Callable[[Operation], bool] = lambda op: False, limit: int = 0
) -> dict[Operation, None]:
    """Returns the ops that values depend on, in a fixed order.

    Args:
        values: The values.
        stops: Whether not to look beyond an op.
        limit: Maximum number of ops; zero for no limit.
    """
    found: dict[Operation, None] = {}
    pending = list(values)
    while pending and not (limit and len(found) >= limit):
        value = pending.pop()
        if isinstance(value, OpResult) and value.op not in found:
            found[value.op] = None
            if not stops(value.op):
                # Averages that a batch norm updates are not in its result.
                pending += value.op.operands[: _AVERAGES.start if _is_norm(value.op) else None]
    return found


def _variable(op: Operation) -> str:
    """Returns the name of the variable that an op reads or writes; empty if it is unknown."""
    handle = op.operands[0]
    if not isinstance(handle, OpResult) or handle.op.name != _HANDLE:
        return ""
    name = handle.op.properties.get("shared_name")
    return name.data if isinstance(name, StringAttr) else ""


def _reads(ops: Iterable[Operation]) -> Iterator[str]:
    return (_variable(op) for op in ops if op.name == _READ)


def _assigned(op: Operation) -> str:
    return _variable(op) if op.name == _ASSIGN else ""


def _is_norm(op: Operation) -> bool:
    return op.name.startswith(_NORMS) and "Grad" not in op.name and bool(tf.get(op, "is_training", True))


def _is_reshaped(op: Operation) -> bool:
    source = op.operands[0]
    return isinstance(source, OpResult) and source.op.name == "tf.Reshape"


def _is_mean(op: Operation) -> bool:
    """Returns whether an op computes statistics of a batch."""
    if op.name not in _REDUCTIONS:
        return _is_norm(op)
    shape, axes = op.operands[0].shape, tensor_data.constant_of(op.operands[1])
    if shape is None or len(shape) < 2 or axes is None or tensor_data.constant_of(op.operands[0]) is not None:
        return False
    return any(int(axis) in (0, -len(shape)) for axis in tensor_data.to_array(axes).ravel())


def _trains_only(op: Operation) -> bool:
    nodes = list(nodes_of(op.location))
    layer = place_of(op.location).layer
    return any(AUGMENTATION.search(each) or _TRAINS_ONLY.search(each) for each in (*nodes, layer)) or _decides(op)


def _decides(draw: Operation) -> bool:
    """Returns whether random numbers are compared with a constant, which decides what is kept of something."""
    pending, seen = [(draw, False)], {draw}
    while pending and len(seen) < _MAX_DISTANCE:
        op, is_mask = pending.pop()
        for use in (use for result in op.results for use in result.uses):
            user = use.operation
            others = [each for index, each in enumerate(user.operands) if index != use.index]
            constants = [tensor_data.constant_of(each) is not None for each in others]
            if is_mask and user.name in _SELECTIONS:
                # Something is kept, or a constant takes its place; a choice of two values has other purposes.
                return constants.count(False) == 1
            is_constant = all(constants)
            if user not in seen and is_constant:
                seen.add(user)
                pending.append((user, is_mask or user.name in _COMPARISONS))
    return False


def _source(assignment: Operation) -> Operation:
    """Returns the op that computes a variable's new value."""
    value = assignment.operands[1]
    return value.op if isinstance(value, OpResult) else assignment


def _layer_of_average(assignment: Operation) -> str:
    """Returns the name of the layer that a variable belongs to; Keras on JAX has it only in the names of ops."""
    handle = assignment.operands[0]
    node = place_of(handle.op.location).node if isinstance(handle, OpResult) else ""
    return node.rpartition("/")[0] or _layer(_source(assignment))


def _layer(op: Operation) -> str:
    """Returns the name of the layer that an op is in, or the scopes around it."""
    place = place_of(op.location)
    scopes = [scope for scope in place.layer.split("/") if not scope.startswith(_JIT)]
    acting = [at for at, scope in enumerate(scopes, 1) if AUGMENTATION.search(scope) or _TRAINS_ONLY.search(scope)]
    while not acting and len(scopes) > 1 and _DRAWING.match(scopes[-1]):
        scopes.pop()
    return "/".join(scopes[: acting[0]] if acting else scopes) or place.node


def _part(what: str, layers: Iterable[str]) -> list[str]:
    """Returns a part of a message with the names of layers; nothing without layers."""
    found = list(layers)
    names = sorted({layer for layer in found if layer})
    more = len(names) - _MAX_NAMES
    text = ", ".join(names[:_MAX_NAMES]) + (f" and {more} others" if more > 0 else "")
    return [f"{what} in {text}" if text else what] if found else []
