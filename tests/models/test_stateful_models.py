"""Models that carry state from call to call, as users write them: recurrent layers, training, metrics, TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.stateful import compare_calls, runners, same
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

Call = tuple[str, dict[str, np.ndarray]]


def vector(call: int) -> np.ndarray:
    return np.array([call, 1.5, -1], np.float32)


def functions(tf: ModuleType, **bodies: tuple[list[Any], Callable[..., Any]]) -> dict[str, Any]:
    """Returns traced functions. Modules don't keep them: saving would trace them again."""
    made = {name: tf.function(body, input_signature=specs) for name, (specs, body) in bodies.items()}
    return {name: function.get_concrete_function() for name, function in made.items()}


@pytest.fixture
def shared(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Returns a module with signatures that use different parts of its state, and one that nothing writes."""
    module = tf.Module()
    module.total, module.steps, module.scale = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(1.0), tf.Variable(0.5)

    def add(x: Any) -> Any:
        module.total.assign_add(x * module.scale)
        return {"y": module.total.read_value()}

    def mix() -> Any:
        module.steps.assign_add(2.0)
        module.total.assign(module.total * module.steps / 3.0)
        return {"y": module.total.read_value()}

    def read() -> Any:
        return {"total": module.total.read_value(), "scale": module.scale.read_value()}

    def step() -> Any:
        return {"steps": module.steps.assign_add(1.0)}

    x = tf.TensorSpec([3], name="x")
    return module, functions(tf, add=([x], add), mix=([], mix), read=([], read), step=([], step))


@pytest.mark.parametrize("order", ["add mix read step", "read step add mix", "step read mix add"])
def test_signatures_see_each_others_writes_whichever_comes_first(
    tf: ModuleType, tmp_path: Path, shared: tuple[Any, dict[str, Any]], order: str
) -> None:
    calls: list[Call] = [
        (key, {"x": vector(turn)} if key == "add" else {}) for turn in range(5) for key in order.split()
    ]
    model = compare_calls(tf, tmp_path, *shared, calls)
    assert model.report.rewrites["freeze-variables"]["frozen"] == 1


def test_variables_that_only_another_signature_writes_are_constants(
    tf: ModuleType, tmp_path: Path, shared: tuple[Any, dict[str, Any]]
) -> None:
    module, signatures = shared
    tf.saved_model.save(module, str(tmp_path), signatures=signatures)
    model = tfconvert.convert(tmp_path, signatures=["read"])
    assert model.report.rewrites["freeze-variables"]["frozen"] == 2
    assert "VAR_HANDLE" not in model.report.operators
    same(runners(model)("read")(), signatures["read"]())


@pytest.mark.parametrize("kind", ["uniform", "normal", "truncated_normal"])
def test_a_generator_draws_the_same_numbers_and_counts_them(tf: ModuleType, tmp_path: Path, kind: str) -> None:
    module = tf.Module()
    module.generator = tf.random.Generator.from_seed(3)
    # The lower half of the counter overflows.
    module.generator.state.assign(tf.constant([-700, 4, 5], tf.int64))

    def draw(x: Any) -> Any:
        return {"y": x + getattr(module.generator, kind)([3]), "z": module.generator.uniform([2])}

    signatures = functions(tf, draw=([tf.TensorSpec([3], name="x")], draw))
    compare_calls(tf, tmp_path, module, signatures, [("draw", {"x": vector(turn)}) for turn in range(4)])


def _layers(name: str) -> Callable[[Any], list[Any]]:
    def make(keras: Any) -> list[Any]:
        layers = keras.layers
        if name == "Bidirectional":
            return [layers.Bidirectional(layers.LSTM(3, stateful=True, return_sequences=True))]
        if name == "stacked":
            return [layers.LSTM(4, stateful=True, return_sequences=True), layers.GRU(3, stateful=True)]
        if name == "masked":
            return [layers.Masking(), layers.GRU(3, stateful=True)]
        return [getattr(layers, name)(4, stateful=True)]

    return make


RECURRENT = {
    **{
        f"keras {name}": ("keras", _layers(name))
        for name in ("LSTM", "GRU", "SimpleRNN", "Bidirectional", "stacked", "masked")
    },
    **{f"tf_keras {name}": ("tf_keras", _layers(name)) for name in ("LSTM", "GRU")},
}


@pytest.mark.parametrize("name", RECURRENT)
def test_stateful_layers_go_on_where_they_stopped_until_they_are_reset(
    tf: ModuleType, tmp_path: Path, name: str
) -> None:
    library, make = RECURRENT[name]
    keras = pytest.importorskip(library)
    keras.utils.set_random_seed(1)
    layers = make(keras)
    given = value = keras.Input((4, 3), batch_size=2)
    for layer in layers:
        value = layer(value)
    module = tf.Module()
    module.network = keras.Model(given, value)
    module.variables_of_keras = [getattr(each, "value", each) for each in module.network.variables]
    module.variables_of_keras = [each for each in module.variables_of_keras if not callable(each)]

    def reset() -> Any:
        for layer in layers:
            if getattr(layer, "stateful", False):
                (layer.reset_state if library == "keras" else layer.reset_states)()
        return {"done": tf.constant(1)}

    spec = tf.TensorSpec([2, 4, 3], name="x")
    signatures = functions(tf, run=([spec], lambda x: {"y": module.network(x)}), reset=([], reset))
    data = np.random.default_rng(1).normal(size=(10, 2, 4, 3)).astype(np.float32)
    calls: list[Call] = [("run", {"x": x}) for x in data]
    compare_calls(tf, tmp_path, module, signatures, [*calls[:6], ("reset", {}), *calls[6:]], 1e-4)


SCALARS: Mapping[str, float] = {
    "alpha": 0.1,
    "lr": 0.1,
    "lr_power": -0.5,
    "momentum": 0.9,
    "rho": 0.9,
    "epsilon": 1e-3,
    "beta": 0.9,
    "beta1": 0.9,
    "beta2": 0.99,
    "beta1_power": 0.8,
    "beta2_power": 0.97,
    "l1": 0.01,
    "l2": 0.1,
    "l2_shrinkage": 0.05,
    "logbase": 0.3,
    "sign_decay": 0.7,
}

STEPS = (
    "AdaMax",
    "Adadelta",
    "Adagrad",
    "AdagradV2",
    "Adam",
    "AdamWithAmsgrad",
    "AddSign",
    "CenteredRMSProp",
    "Ftrl",
    "FtrlV2",
    "GradientDescent",
    "KerasMomentum",
    "Momentum",
    "PowerSign",
    "ProximalAdagrad",
    "ProximalGradientDescent",
    "RMSProp",
)
FLAGS = {"use_nesterov": (False, True), "update_slots": (True, False), "multiply_linear_by_lr": (False, True)}


def _step(tf: Any, module: Any, op: str, x: Any, chosen: int) -> None:
    """Runs one step of an optimizer on the module's variables, which are named as the op names its operands."""
    definition = op_defs.lookup(op)
    assert definition is not None
    operands = {}
    for argument in definition.input_arg:
        if argument.type == pb.DT_RESOURCE:
            if not hasattr(module, argument.name):
                setattr(module, argument.name, tf.Variable([0.5, 0.2, 0.9]))
            operands[argument.name] = getattr(module, argument.name).handle
        else:
            operands[argument.name] = tf.constant(SCALARS[argument.name]) if argument.name in SCALARS else x
    flags = {attr.name: FLAGS[attr.name][chosen] for attr in definition.attr if attr.name in FLAGS}
    getattr(tf.raw_ops, op)(**operands, **flags)


def _stepping(tf: Any, part: Any, op: str, chosen: int) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        _step(tf, part, op, x, chosen)
        return {name: value.read_value() for name, value in vars(part).items() if isinstance(value, tf.Variable)}

    return run


@pytest.mark.parametrize("chosen", [0, 1], ids=["plain", "flags"])
def test_optimizers_steps(tf: ModuleType, tmp_path: Path, chosen: int) -> None:
    """All in one file, each a signature with variables of its own."""
    module = tf.Module()
    signatures: dict[str, Any] = {}
    for name in STEPS:
        part, op = tf.Module(), f"ResourceApply{name}"
        setattr(module, f"of_{name}", part)
        _step(tf, part, op, tf.zeros([3]), chosen)
        signatures |= functions(tf, **{name: ([tf.TensorSpec([3], name="x")], _stepping(tf, part, op, chosen))})
    calls: list[Call] = [(name, {"x": vector(call) / 4}) for call in range(10) for name in STEPS]
    compare_calls(tf, tmp_path, module, signatures, calls, 1e-4)


def _rows(layers: Any) -> list[Any]:
    # A bias before the normalization would have gradients of pure rounding errors, which Adam amplifies.
    return [layers.Dense(8, use_bias=False), layers.BatchNormalization(), layers.ReLU()]


def _images(layers: Any) -> list[Any]:
    return [
        layers.Conv2D(4, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.SeparableConv2D(5, 3, strides=2, padding="same", depth_multiplier=2, activation="relu6"),
        layers.Conv2DTranspose(3, 3, strides=2),
        layers.BatchNormalization(),
        layers.AveragePooling2D(3, 2, padding="same"),
        layers.Flatten(),
    ]


def _sequences(layers: Any) -> list[Any]:
    return [layers.LSTM(4, return_sequences=True), layers.GRU(3)]


TRAINED: Mapping[str, tuple[Callable[[Any], list[Any]], tuple[int, ...], int]] = {
    "rows": (_rows, (6,), 10),
    "images": (_images, (8, 8, 2), 4),
    "sequences": (_sequences, (5, 3), 4),
}
"""The layers before the last one, the shape of an input, and the number of steps."""


@pytest.mark.parametrize(
    ("library", "name"), [*(("keras", name) for name in TRAINED), ("tf_keras", "rows"), ("tf_keras", "images")]
)
def test_a_network_is_trained_in_litert(tf: ModuleType, tmp_path: Path, library: str, name: str) -> None:
    """With batches of any size; the values of all variables are returned and assigned, as an app keeps them."""
    keras = pytest.importorskip(library)
    keras.utils.set_random_seed(1)
    (make, shape, steps), layers = TRAINED[name], keras.layers
    network = keras.Sequential([keras.Input(shape), *make(layers), layers.Dense(3)])
    optimizer = keras.optimizers.Adam(0.05) if name == "rows" else keras.optimizers.SGD(0.05, momentum=0.9)
    optimizer.build(network.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    module = tf.Module()
    module.network, module.optimizer = network, optimizer
    kept = list(network.weights)
    if library == "keras":
        kept = [each.value for each in kept]
        module.kept = [each.value for each in (*network.variables, *optimizer.variables)]

    def train(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(y, network(x, training=True))
        gradients = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables, strict=True))
        return {"loss": loss}

    def save() -> Any:
        return {f"value{index}": each.read_value() for index, each in enumerate(kept)}

    def restore(*values: Any) -> Any:
        for each, value in zip(kept, values, strict=True):
            each.assign(value)
        return {"done": tf.constant(1)}

    x, y = tf.TensorSpec([None, *shape], name="x"), tf.TensorSpec([None], tf.int32, name="y")
    signatures = functions(
        tf,
        train=([x, y], train),
        infer=([x], lambda x: {"logits": network(x)}),
        save=([], save),
        restore=([tf.TensorSpec(each.shape, name=f"value{index}") for index, each in enumerate(kept)], restore),
    )
    random = np.random.default_rng(1)
    start = {f"value{index}": each.numpy() for index, each in enumerate(kept)}
    calls: list[Call] = []
    for _ in range(steps):
        batch = random.normal(size=(4, *shape)).astype(np.float32)
        labels = batch.reshape(4, -1)[:, :3].argmax(1).astype(np.int32)
        calls += [("train", {"x": batch, "y": labels}), ("infer", {"x": batch})]
    calls += [("save", {}), ("restore", start), ("infer", {"x": batch})]
    model = compare_calls(tf, tmp_path, module, signatures, calls, 1e-4)
    assert not [name for name in model.report.operators if name.startswith("Flex")]


def test_a_metric_adds_up_until_it_is_reset(tf: ModuleType, tmp_path: Path) -> None:
    metric, module = tf.keras.metrics.Mean(), tf.Module()
    module.kept = [each.value for each in metric.variables]

    def update(x: Any) -> Any:
        metric.update_state(x)
        return {"done": tf.constant(1)}

    def reset() -> Any:
        metric.reset_state()
        return {"done": tf.constant(1)}

    spec = tf.TensorSpec([3], name="x")
    signatures = functions(
        tf, update=([spec], update), result=([], lambda: {"mean": metric.result()}), reset=([], reset)
    )
    calls: list[Call] = [each for call in range(10) for each in [("update", {"x": vector(call)}), ("result", {})]]
    compare_calls(tf, tmp_path, module, signatures, [*calls[:8], ("reset", {}), *calls[8:]])


def _variable(tf: Any, shape: Any, *start: float) -> Any:
    return tf.Variable(np.array(start, np.float32), shape=shape)


def _table(tf: Any) -> Any:
    return tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1)


def _longer(m: Any, tf: Any, x: Any) -> Any:
    return m.state.assign(tf.concat([m.state, x], 0))


REFUSED: Mapping[str, tuple[Callable[[Any], Any], Callable[..., Any], str, str]] = {
    "grows": (lambda tf: _variable(tf, [None], 1), _longer, "variable-shape", "tf.VarHandleOp"),
    "of any rank": (
        lambda tf: _variable(tf, tf.TensorShape(None), 1),
        lambda m, tf, x: m.state.assign(x[None]),
        "variable-shape",
        "tf.VarHandleOp",
    ),
    "empty": (
        lambda tf: _variable(tf, [0]),
        lambda m, tf, x: m.state.assign_add(x[:0]),
        "variable-shape",
        "tf.VarHandleOp",
    ),
    "strings": (
        lambda tf: tf.Variable("a"),
        lambda m, tf, x: m.state.assign(tf.strings.as_string(x[0])),
        "variable-type",
        "tf.VarHandleOp",
    ),
    "table": (
        _table,
        lambda m, tf, x: m.state.insert([1], [tf.cast(x[0], tf.int64)]),
        "unsupported-op",
        "tf.MutableHashTableV2",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_state_that_litert_cannot_keep_is_reported(tf: ModuleType, tmp_path: Path, name: str) -> None:
    make, use, code, op = REFUSED[name]
    module = tf.Module()
    module.state = make(tf)

    def run(x: Any) -> Any:
        use(module, tf, x)
        return {"y": x}

    tf.saved_model.save(module, str(tmp_path), signatures=tf.function(run, input_signature=[tf.TensorSpec([3])]))
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(tmp_path)
    found = caught.value.diagnostics[0]
    assert (found.code, found.op) == (code, op)
    assert found.node
    assert found.hint


def test_a_variable_that_may_but_does_not_change_its_shape(tf: ModuleType, tmp_path: Path) -> None:
    module = tf.Module()
    module.state = _variable(tf, [None], 1, 2, 3)

    def run(x: Any) -> Any:
        module.state.assign(module.state * 0.5 + x)
        return {"y": module.state.read_value()}

    signatures = functions(tf, run=([tf.TensorSpec([3], name="x")], run))
    compare_calls(tf, tmp_path, module, signatures, [("run", {"x": vector(call)}) for call in range(10)])
