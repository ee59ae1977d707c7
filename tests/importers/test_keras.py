"""Keras models, in memory and in files, convert and compute what Keras does; what can't be read safely is refused."""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import json
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tests.importers.temporary_folders import LeftFolders
from tests.support.litert import RunTFLite
from tfconvert.cli.main import main
from tfconvert.importers import keras as keras_importer
from tfconvert.schema.diagnostics import ConversionError

_X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)

pytestmark = [
    pytest.mark.usefixtures("temporary"),
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning"),
]


@pytest.fixture(params=["keras", "tf_keras"])
def keras(request: pytest.FixtureRequest, tf: ModuleType) -> ModuleType:
    """Returns Keras 3, or Keras 2."""
    return importlib.import_module(request.param)


def _network(keras: ModuleType) -> Any:
    """Returns a model that computes something else in training."""
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((4,), name="image"), layers.Dense(3), layers.BatchNormalization(), layers.Dropout(0.9)]
    )


def _heads(keras: ModuleType) -> Any:
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    return keras.Model([a, b], [keras.layers.Add()([a, b]), keras.layers.Dense(2)(a)])


def _own(keras: ModuleType) -> Any:
    base: Any = keras.Model

    class Own(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, x: Any) -> Any:
            return self.dense(x) * 2

    return Own()


def _error(model: Any) -> ConversionError:
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(model)
    return caught.value


def _check(content: bytes, inputs: dict[str, np.ndarray], wanted: list[Any], run_tflite: RunTFLite) -> None:
    found = run_tflite(content, inputs, signature="serving_default")
    assert len(found) == len(wanted)
    for value in wanted:
        assert any(one.shape == value.shape and np.allclose(one, value, rtol=1e-5, atol=1e-6) for one in found)


def test_a_sequential_model_is_that_of_inference(keras: ModuleType, run_tflite: RunTFLite) -> None:
    network = _network(keras)
    model = tfconvert.convert(network)
    assert model.report.source == "the Sequential model in memory"
    (interface,) = model.report.interfaces
    assert list(interface.keys) == ["serving_default"]
    for batch in (_X, _X[:1]):
        _check(bytes(model), {"image": batch}, [network(batch).numpy()], run_tflite)


def test_a_functional_model_keeps_its_names(keras: ModuleType, run_tflite: RunTFLite) -> None:
    network = _heads(keras)
    wanted = [value.numpy() for value in network([_X, _X * 2])]
    _check(bytes(tfconvert.convert(network)), {"a": _X, "b": _X * 2}, wanted, run_tflite)


def test_a_model_of_a_class_converts_once_it_was_called(keras: ModuleType, run_tflite: RunTFLite) -> None:
    network = _own(keras)
    assert _error(network).code == "not-built"
    wanted = network(_X).numpy()
    model = tfconvert.convert(network)
    (name,) = (one.name for one in model.report.interfaces[0].inputs)
    _check(bytes(model), {name: _X}, [wanted], run_tflite)


def test_a_model_without_input_shapes_is_reported(keras: ModuleType) -> None:
    problem = _error(keras.Sequential([keras.layers.Dense(2)]))
    assert problem.code == "not-built"
    assert "keras.Input" in problem.diagnostics[0].hint


def test_a_fixed_batch_stays(keras: ModuleType, run_tflite: RunTFLite) -> None:
    layers = keras.layers
    sequential = keras.Sequential([keras.Input(batch_shape=(2, 4), name="image"), layers.Dense(3)])
    one, other = keras.Input(batch_shape=(2, 4), name="one"), keras.Input((4,), name="other")
    nested = keras.Model({"one": one, "other": other}, {"sum": one + 1.0, "other": layers.Dense(2)(other)})
    for network, inputs in ((sequential, {"image": _X}), (nested, {"one": _X, "other": _X[:1]})):
        model = tfconvert.convert(network)
        (interface,) = model.report.interfaces
        assert {each.name: each.shape for each in interface.inputs} == {
            name: (None if name == "other" else 2, 4) for name in inputs
        }
        found = network(inputs["image"] if len(inputs) == 1 else inputs)
        wanted = [value.numpy() for value in (found.values() if isinstance(found, dict) else [found])]
        _check(bytes(model), inputs, wanted, run_tflite)


def test_a_model_of_a_class_has_the_keys_of_its_inputs(tf: ModuleType, run_tflite: RunTFLite) -> None:
    keras = importlib.import_module("keras")
    base: Any = keras.Model

    class Own(base):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x["zeta"] * 2.0 + x["alpha"][0]

    network = Own()
    wanted = network({"zeta": _X, "alpha": [_X * 3]}).numpy()
    model = tfconvert.convert(network)
    (interface,) = model.report.interfaces
    # What it was called with says nothing of the batch.
    assert {each.name: each.shape for each in interface.inputs} == {"zeta": (None, 4), "alpha": (None, 4)}
    _check(bytes(model), {"zeta": _X, "alpha": _X * 3}, [wanted], run_tflite)


_IMAGES = np.random.default_rng(0).normal(3, 2, (3, 6, 6, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def default_training() -> Any:
    """Returns a class of layers that are in training mode unless they are told otherwise."""
    keras = importlib.import_module("keras")
    base: Any = keras.layers.Layer

    @keras.saving.register_keras_serializable("tests")
    class DefaultTraining(base):  # type: ignore[misc]
        def call(self, x: Any, training: bool = True) -> Any:
            return x * 2.0 if training else x - 1.0

    return DefaultTraining


def _layer(name: str, default_training: Any, **settings: Any) -> Any:
    layers = importlib.import_module("keras").layers
    return default_training() if name == "own" else getattr(layers, name)(**settings)


def _predicted(network: Any, inputs: Any) -> np.ndarray:
    """Returns what a network predicts, with moving averages that are not those of the images."""
    for weight in network.weights:
        if "moving" in weight.path:
            weight.assign(np.linspace(0.5, 2, weight.shape[0]))
    return np.asarray(network.predict(inputs, verbose=0))


@pytest.mark.parametrize(("after", "size"), [("BatchNormalization", {}), ("Dropout", {"rate": 0.5}), ("own", {})])
@pytest.mark.parametrize(
    ("before", "settings"),
    [
        ("Resizing", {"height": 4, "width": 4}),
        ("CenterCrop", {"height": 4, "width": 4}),
        ("RandomFlip", {}),
        ("RandomRotation", {"factor": 0.2}),
        ("own", {}),
    ],
)
def test_layers_are_those_of_inference_after_one_that_trains_by_default(
    before: str,
    settings: dict[str, Any],
    after: str,
    size: dict[str, Any],
    default_training: Any,
    tmp_path: Path,
    run_tflite: RunTFLite,
) -> None:
    keras = importlib.import_module("keras")
    given = keras.Input((6, 6, 3), name="image")
    hidden = _layer(before, default_training, **settings)(given)
    network = keras.Model(given, _layer(after, default_training, **size)(hidden))
    wanted = _predicted(network, _IMAGES)
    path = tmp_path / "network.keras"
    network.save(path)
    for model in (network, path):
        made = tfconvert.convert(model)
        _check(bytes(made), {"image": _IMAGES}, [wanted], run_tflite)
        assert "ASSIGN_VARIABLE" not in made.report.operators


@pytest.mark.parametrize("older", [False, True])
def test_each_way_in_traces_inference(
    older: bool, tf: ModuleType, run_tflite: RunTFLite, monkeypatch: pytest.MonkeyPatch
) -> None:
    if older:  # An older Keras 3 has these functions elsewhere, and exports the model itself.
        monkeypatch.setattr(keras_importer, "_export_utils", lambda: None)
    keras = importlib.import_module("keras")
    image, word = keras.Input((6, 6, 3), name="image"), keras.Input((), dtype="string", name="word")
    hidden = keras.layers.BatchNormalization()(keras.layers.Resizing(4, 4)(image))
    number = keras.layers.StringLookup(vocabulary=["a", "b"])(word)
    plain = keras.Model(image, hidden)
    wanted = _predicted(plain, _IMAGES)
    for made in (tfconvert.convert(plain), tfconvert.TFLiteConverter.from_keras_model(plain).convert()):
        _check(bytes(made), {"image": _IMAGES}, [wanted], run_tflite)
    with_table = keras.Model([image, word], [hidden, number])
    words = np.array([b"b", b"a", b"x"])
    found = bytes(tfconvert.convert(with_table))
    _check(found, {"image": _IMAGES, "word": words}, [wanted, np.array([2, 1, 0])], run_tflite)
    assert "__call__" not in vars(with_table)


def test_models_of_a_class_trace_inference(default_training: Any, run_tflite: RunTFLite) -> None:
    keras = importlib.import_module("keras")
    base: Any = keras.Model

    class Plain(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            given = keras.Input((6, 6, 3))
            self.inner = keras.Model(given, keras.layers.Dropout(0.5)(default_training()(given)))
            self.norm = keras.layers.BatchNormalization()

        # `predict` passes no `training` to such a model.
        def call(self, x: Any) -> Any:
            return self.norm(self.inner(x, training=False))

    class Told(Plain):
        def call(self, x: Any, training: bool = True) -> Any:
            return self.norm(self.inner(x), training=training)

    for network in (Plain(), Told()):
        network(_IMAGES, training=False)
        wanted = _predicted(network, _IMAGES)
        model = tfconvert.convert(network)
        (name,) = (one.name for one in model.report.interfaces[0].inputs)
        _check(bytes(model), {name: _IMAGES}, [wanted], run_tflite)


def test_a_layer_is_rejected(keras: ModuleType) -> None:
    assert _error(keras.layers.Dense(2)).code == "unknown-format"


@pytest.mark.parametrize("ending", ["keras", "h5"])
def test_files_are_read_by_the_keras_that_wrote_them(
    keras: ModuleType, ending: str, tmp_path: Path, run_tflite: RunTFLite
) -> None:
    network = _network(keras)
    path = tmp_path / f"network.{ending}"
    network.save(path)
    model = tfconvert.convert(path)
    assert model.report.source == str(path)
    _check(bytes(model), {"image": _X}, [network(_X).numpy()], run_tflite)


def test_the_command_line_takes_files(tmp_path: Path) -> None:
    path, output = tmp_path / "network.keras", tmp_path / "network.tflite"
    _network(importlib.import_module("keras")).save(path)
    done = CliRunner().invoke(main, [str(path), "-o", str(output)])
    assert done.exit_code == 0, done.output
    assert output.read_bytes() == bytes(tfconvert.convert(path))
    done = CliRunner().invoke(main, ["opt", str(path), "--pipeline", "tflite"])
    assert "tfl.fully_connected" in done.output


@pytest.mark.parametrize(("ending", "code"), [("keras", "load-failed"), ("h5", "unsafe-model")])
def test_code_in_files_is_not_run(
    keras: ModuleType, ending: str, code: str, tmp_path: Path, left_folders: LeftFolders
) -> None:
    network = keras.Sequential([keras.Input((4,)), keras.layers.Lambda(lambda x: x * 2)])
    path = tmp_path / f"network.{ending}"
    network.save(path)
    assert _error(path).code == code
    assert left_folders() == []


def test_files_without_a_model_are_reported(keras: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "only.weights.h5"
    _network(keras).save_weights(path)
    assert "weights only" in str(_error(path))
    for name in ("damaged.keras", "damaged.h5"):
        (tmp_path / name).write_bytes(b"PK damaged")
        assert _error(tmp_path / name).code == "not-a-keras-model"
    for number, text in enumerate(("[" * 50_000, "[" * 500_000, "no JSON")):
        with zipfile.ZipFile(tmp_path / f"{number}.keras", "w") as archive:
            archive.writestr("metadata.json", text)
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file.attrs.create("model_config", text[:60_000])
        for ending in ("keras", "h5"):
            assert _error(tmp_path / f"{number}.{ending}").code == "not-a-keras-model"
    (tmp_path / "text.hdf5").write_bytes(b"damaged")
    assert _error(tmp_path / "text.hdf5").code == "not-a-keras-model"
    assert _error(tmp_path / "missing.keras").code == "model-not-found"


def _changed_config(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the configuration of the model in a file."""
    if path.suffix == ".h5":
        with h5py.File(path, "a") as file:
            config = json.loads(file.attrs["model_config"])
            change(config)
            file.attrs["model_config"] = json.dumps(config)
        return
    members = _members(path)
    config = json.loads(members["config.json"])
    change(config)
    _write_members(path, {**members, "config.json": json.dumps(config).encode()})


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _write_members(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def _dense(config: dict[str, Any]) -> dict[str, Any]:
    return next(each for each in config["config"]["layers"] if each["class_name"] == "Dense")


DAMAGES: dict[str, tuple[Callable[[dict[str, Any]], None], str, str]] = {
    "class 5": (lambda config: config.update(class_name=5), "damaged-model", "class 5, which is not a name"),
    "class list": (lambda config: _dense(config).update(class_name=["Dense"]), "damaged-model", "not a name"),
    "class null": (lambda config: _dense(config).update(class_name=None), "damaged-model", "not a name"),
    "no name": (lambda config: _dense(config)["config"].update(units=3), "", ""),
    "a list": (lambda config: _dense(config).update(config=[1]), "damaged-model", ""),
    "unknown": (lambda config: _dense(config).update(class_name="Other"), "load-failed", "Other"),
    "settings": (lambda config: _dense(config)["config"].update(other=1), "load-failed", "other"),
    "much": (lambda config: _dense(config)["config"].update(units=10**15), "out-of-memory", "not enough memory"),
}


@pytest.mark.parametrize("ending", ["keras", "h5"])
@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_configurations_are_reported(keras: ModuleType, ending: str, name: str, tmp_path: Path) -> None:
    change, code, message = DAMAGES[name]
    path = tmp_path / f"network.{ending}"
    keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]).save(path)
    _changed_config(path, change)
    problem = _error(path)
    assert problem.code == (code or problem.code) != "internal-error"
    assert str(path) in str(problem)
    assert message in str(problem)


def test_damaged_weights_are_reported(tmp_path: Path) -> None:
    keras = importlib.import_module("keras")
    path = tmp_path / "network.keras"
    _network(keras).save(path)
    members = _members(path)
    weights = members["model.weights.h5"]
    for damaged in (b"", weights[:100], weights[: len(weights) // 2]):
        _write_members(path, {**members, "model.weights.h5": damaged})
        problem = _error(path)
        assert (problem.code, "its weights can't be read" in str(problem)) == ("damaged-model", True)
    _write_members(path, members)
    with h5py.File(tmp_path / "weights.h5", "w") as file:
        file.create_group("layers")
    _write_members(path, {**members, "model.weights.h5": (tmp_path / "weights.h5").read_bytes()})
    assert _error(path).code == "damaged-model"


def test_what_h5py_raises_is_a_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "network.h5"
    _network(importlib.import_module("tf_keras")).save(path)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("Unable to get link info")

    monkeypatch.setattr(
        h5py.Group, "get", FunctionType(fail.__code__, {**vars(builtins), "__name__": "h5py._hl.group"})
    )
    assert _error(path).code == "damaged-model"
    # Our own mistakes aren't the file's.
    monkeypatch.undo()
    own = FunctionType(fail.__code__, {**vars(builtins), "__name__": keras_importer.__name__})
    monkeypatch.setattr(keras_importer, "check_hdf5", own)
    with pytest.raises(RuntimeError, match="link info"):
        tfconvert.convert(path)


@pytest.mark.parametrize("problem", [KeyError("own"), TypeError("own")])
def test_errors_of_own_classes_are_not_damage(problem: Exception, tmp_path: Path) -> None:
    keras = importlib.import_module("keras")

    class Own(keras.layers.Layer):  # type: ignore[misc, name-defined]
        def __init__(self, **options: Any) -> None:
            super().__init__()
            if options:
                raise problem

        def call(self, x: Any) -> Any:
            return x

    path = tmp_path / "network.keras"
    keras.Sequential([keras.Input((4,)), Own()]).save(path)
    with keras.saving.custom_object_scope({"Own": Own}):
        assert _error(path).code == "load-failed"


@pytest.mark.parametrize("module", ["keras", "tf_keras"])
def test_exhausted_memory_is_not_a_failed_export(
    module: str, tf: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keras = importlib.import_module(module)
    network = _network(keras)
    path = tmp_path / f"network.{'keras' if module == 'keras' else 'h5'}"
    network.save(path)
    problems = [
        tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[99999]"),
        MemoryError("std::bad_alloc"),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes"),
        ValueError("2 objects could not be loaded: Unable to allocate 8.0 GiB for an array"),
    ]
    for problem in problems:

        def fail(*_: object, problem: Exception = problem, **__: object) -> None:
            raise problem

        for model, owner, name in ((network, network, "call"), (path, keras.models, "load_model")):
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, fail)
                found = _error(model)
            assert found.code == "out-of-memory"
            assert str(path if model is path else type(network).__name__) in str(found)


@pytest.mark.parametrize(
    ("missing", "ending", "pip"),
    [("tensorflow", "keras", "tfconvert[tensorflow]"), ("h5py", "h5", "keras h5py"), ("tf_keras", "h5", "tf_keras")],
)
def test_missing_packages_are_reported(
    missing: str, ending: str, pip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"network.{ending}"
    _network(importlib.import_module("tf_keras")).save(path)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else find(name))
    problem = _error(path)
    assert problem.code == "no-tensorflow"
    assert f"pip install '{pip}'" in problem.diagnostics[0].hint or f"pip install {pip}" == problem.diagnostics[0].hint


def test_other_backends_are_reported(tf: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    keras = importlib.import_module("keras")
    network = _network(keras)
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    problem = _error(network)
    assert problem.code == "wrong-backend"
    assert "KERAS_BACKEND=jax" in problem.diagnostics[0].hint
    assert "litert-torch" in problem.diagnostics[0].hint


def test_models_that_keras_cannot_export_are_reported(tf: ModuleType, left_folders: LeftFolders) -> None:
    keras = importlib.import_module("keras")
    network = _network(keras)

    def fail(*inputs: Any, **options: Any) -> Any:
        raise KeyError("nothing")

    network.call = fail
    problem = _error(network)
    assert problem.code == "export-failed"
    assert "nothing" in str(problem)
    assert left_folders() == []


def test_errors_name_lines_of_source(tf: ModuleType) -> None:
    keras = importlib.import_module("keras")
    base: Any = keras.layers.Layer

    class Fails(base):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return tf.linalg.eigh(x)[0]

    given = keras.Input((2, 2))
    problem = _error(keras.Model(given, Fails()(given)))
    assert Path(__file__).name in problem.diagnostics[0].location


@pytest.mark.parametrize(
    ("second", "third", "is_whole"),
    [
        (["a", 0, 0, {}], ["b", 0, 0, {}], True),
        (["c", 0, 0, {}], ["a", 0, 0, {}], True),  # In another order.
        (["c", 0, 0, {}], ["b", 0, 0, {}], False),  # In a circle.
        (["a", 0, 0, {}], ["b", -1, 0, {}], False),
        (["a", 0, 0, {}], ["b", 1, 0, {}], False),
        (["a", 0, 0, {}], ["b", None, 0, {}], False),
        (["a", 0, 0, {"mask": ["c", 0, 0]}], ["b", 0, 0, {}], False),
        (["a", 7, 0, {}], ["nobody", 0, 0, {}], True),  # An input has one result; Keras refuses unknown names.
        (["model", 1, 0, {}], ["b", 0, 0, {}], True),
    ],
)
def test_calls_without_an_order_are_damage(second: list[Any], third: list[Any], is_whole: bool) -> None:
    layers = [
        {"name": "a", "class_name": "InputLayer", "inbound_nodes": []},
        {"name": "b", "class_name": "B", "inbound_nodes": [[second]]},
        {"name": "c", "class_name": "C", "inbound_nodes": [[third]]},
        {"name": "model", "class_name": "M", "config": {"layers": []}, "inbound_nodes": [[["a", 0, 0, {}]]]},
    ]
    with nullcontext() if is_whole else pytest.raises(ConversionError, match="never is there"):
        keras_importer.check_calls(Path("x.h5"), {"config": {"layers": layers}})


def test_zips_have_the_limits_of_archives(tmp_path: Path) -> None:
    """The same as in the service."""
    path = tmp_path / "network.keras"
    _network(importlib.import_module("keras")).save(path)
    members = _members(path)
    assets = {f"assets/{number}": b"" for number in range(10_000)}
    for added, code in (
        ({"model.weights.npz": b"x"}, "unsafe-model"),
        ({"model.py": b"x"}, "bad-archive"),
        ({"../x": b"x"}, "bad-archive"),
        (assets, "archive-too-large"),
        ({"__MACOSX/._config.json": b"x"}, ""),
    ):
        _write_members(path, {**members, **added})
        if code:
            problem = _error(path)
            assert (problem.code, str(path) in str(problem)) == (code, True)
        else:
            tfconvert.convert(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (members | {"assets/zeros": bytes(80 << 20)}).items():
            archive.writestr(name, content)
    assert _error(path).code == "archive-too-large"
    # Also if another entry is the first.
    _write_members(path, {"assets/x": b"x", **members, "model.py": b"x"})
    assert _error(path).code == "bad-archive"
    _write_members(path, members)
    path.write_bytes(path.read_bytes()[:-10])
    assert _error(path).code == "damaged-model"


def test_weights_that_keras_does_not_load_are_refused(tmp_path: Path) -> None:
    """Keras writes them on request, as pickles."""
    path = tmp_path / "network.keras"
    saving = importlib.import_module("keras.src.saving.saving_lib")
    saving.save_model(_network(importlib.import_module("keras")), path, weights_format="npz")
    with pytest.raises(ValueError, match="allow_pickle"):
        importlib.import_module("keras").models.load_model(path)
    assert "model.weights.npz" in str(_error(path))
