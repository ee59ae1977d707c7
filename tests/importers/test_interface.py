"""Inputs and outputs are as the user wrote them: their order, names and sizes."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from click.testing import CliRunner

import tfconvert
from tests.support.flat_settings import converted
from tests.support.sample_models import traced
from tfconvert.cli.main import main
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.data import from_data
from tfconvert.settings.selection import Order

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

_SIZES = {"zeta": 1, "alpha": 2, "mid": 3}


def _module(tf: ModuleType, result: Callable[..., Any]) -> Any:
    """Returns a module with a function of three inputs whose names are not sorted, and of different sizes."""
    module = tf.Module()
    specs = [tf.TensorSpec([2, size], name=name) for name, size in _SIZES.items()]

    @traced(tf, *specs)
    def call(zeta: Any, alpha: Any, mid: Any) -> Any:
        return result(zeta, alpha, mid)

    module.call = call
    return module


def _saved(tf: ModuleType, folder: Path, result: Callable[..., Any]) -> Path:
    module = _module(tf, result)
    tf.saved_model.save(module, str(folder), signatures=module.call)
    return folder


def _tuple(zeta: Any, alpha: Any, mid: Any) -> Any:
    return mid * 4, zeta * 2, alpha * 3


def _dictionary(zeta: Any, alpha: Any, mid: Any) -> Any:
    return {"y": mid * 4, "x": zeta * 2, "w": alpha * 3}


def _names(model: object, **settings: Any) -> tuple[list[str], list[str]]:
    """Returns the names of inputs and outputs in the order of the file's subgraph."""
    return _places(bytes(converted(model, **settings)))


def _places(content: bytes) -> tuple[list[str], list[str]]:
    interpreter = Interpreter(model_content=content)
    details = interpreter.get_input_details(), interpreter.get_output_details()
    inputs, outputs = ([each["name"] for each in one] for one in details)
    return inputs, outputs


def _network(keras: ModuleType, *, dictionary: bool = False) -> Any:
    zeta, alpha = keras.Input((3,), name="zeta"), keras.Input((4,), name="alpha")
    last = keras.layers.Dense(2, name="out_z")(alpha)
    first = keras.layers.Dense(5, name="out_a")(zeta)
    return keras.Model([zeta, alpha], {"last": last, "first": first} if dictionary else [last, first])


def test_tuples_keep_the_order_of_arguments_and_results(tf: ModuleType, tmp_path: Path) -> None:
    folder = _saved(tf, tmp_path, _tuple)
    content = bytes(tfconvert.convert(folder))
    assert _places(content) == (["zeta", "alpha", "mid"], ["output_0", "output_1", "output_2"])
    values = {name: np.arange(2.0 * size, dtype=np.float32).reshape(2, size) for name, size in _SIZES.items()}
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values.values(), strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    found = [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]
    wanted = [values["mid"] * 4, values["zeta"] * 2, values["alpha"] * 3]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_ten_results_are_not_sorted_as_text(tf: ModuleType, tmp_path: Path) -> None:
    module = tf.Module()

    @traced(tf, *[tf.TensorSpec([2])] * 12)
    def call(*several: Any) -> Any:
        return [each * (index + 2) for index, each in enumerate(several)]

    module.call = call
    tf.saved_model.save(module, str(tmp_path), signatures=call)
    inputs, outputs = _names(tmp_path)
    assert inputs == [f"several_{index}" for index in range(12)]
    assert outputs == [f"output_{index}" for index in range(12)]


def test_the_function_s_own_calls_change_nothing(tf: ModuleType, tmp_path: Path) -> None:
    @traced(tf)
    def swapped(mid: Any, zeta: Any) -> Any:
        return zeta * 2, mid * 4

    folder = _saved(tf, tmp_path, lambda zeta, alpha, mid: [*swapped(mid, zeta)[::-1], alpha])
    assert _names(folder)[0] == ["zeta", "alpha", "mid"]


def test_a_model_that_was_loaded_and_saved_again(tf: ModuleType, tmp_path: Path) -> None:
    folder = _saved(tf, tmp_path / "first", _tuple)
    loaded = tf.saved_model.load(str(folder))
    tf.saved_model.save(loaded, str(tmp_path / "second"), signatures=loaded.signatures)
    assert _names(tmp_path / "second") == (["zeta", "alpha", "mid"], ["output_0", "output_1", "output_2"])
    assert _names(loaded)[0] == ["zeta", "alpha", "mid"]


def test_the_keys_of_a_dictionary_are_sorted_in_files_only(tf: ModuleType, tmp_path: Path) -> None:
    module = _module(tf, _dictionary)
    tf.saved_model.save(module, str(tmp_path), signatures=module.call)
    assert _names(tmp_path)[1] == ["w", "x", "y"]
    assert _names(module)[1] == _names(module.call.get_concrete_function())[1] == ["y", "x", "w"]
    assert _names(tf.saved_model.load(str(tmp_path)))[1] == ["w", "x", "y"]


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_keras_model(dictionary: bool, tmp_path: Path) -> None:
    keras = importlib.import_module("keras")
    network = _network(keras, dictionary=dictionary)
    outputs = ["last", "first"] if dictionary else ["output_0", "output_1"]
    assert _names(network) == (["zeta", "alpha"], outputs)
    network.export(str(tmp_path), verbose=False)
    assert _names(tmp_path) == (["zeta", "alpha"], sorted(outputs))


@pytest.mark.parametrize("written", ["as it is", "in the object graph", "damaged", "cut off", "gone"])
def test_a_keras_2_model(tmp_path: Path, written: str) -> None:
    network = _network(importlib.import_module("tf_keras"))
    assert _names(network) == (["zeta", "alpha"], ["out_z", "out_a"])
    network.save(str(tmp_path))
    metadata = tmp_path / "keras_metadata.pb"
    if written == "in the object graph":  # As TensorFlow 2.4 and older wrote it.
        message = pb.SavedModel.FromString((tmp_path / "saved_model.pb").read_bytes())
        text = metadata.read_bytes().partition(b"_tf_keras_network")[2]
        config = json.JSONDecoder().raw_decode(text[text.index(b"{") :].decode(errors="replace"))[0]
        message.meta_graphs[0].object_graph_def.nodes[0].user_object.metadata = json.dumps(config)
        (tmp_path / "saved_model.pb").write_bytes(message.SerializeToString())
    if written in ("in the object graph", "gone"):
        metadata.unlink()
    elif written != "as it is":
        metadata.write_bytes(metadata.read_bytes()[:500] if written == "cut off" else b"\xff" * 99)
    known = written in ("as it is", "in the object graph")
    assert _names(tmp_path) == (["zeta", "alpha"], ["out_z", "out_a"] if known else ["out_a", "out_z"])


def test_version_1_has_no_order_but_names(tf: ModuleType, tmp_path: Path) -> None:
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        first, second = v1.placeholder(tf.float32, [1], "b"), v1.placeholder(tf.float32, [1], "a")
        outputs = {"z": tf.add(first, 1.0, "c"), "y": tf.add(second, 1.0, "d")}
        v1.saved_model.simple_save(session, str(tmp_path / "model"), {"p": first, "q": second}, outputs)
    assert _names(tmp_path / "model") == (["p", "q"], ["y", "z"])


def test_the_order_is_one_of_a_few(digits_model: Path) -> None:
    for order in get_args(Order):
        Source(digits_model, order=order).open()
    with pytest.raises(ConversionError, match="order can't be 'sorted'") as caught:
        Source(digits_model, order="sorted").open()  # type: ignore[arg-type]
    assert caught.value.code == "wrong-option"


def test_names_are_replaced_everywhere(tf: ModuleType, tmp_path: Path) -> None:
    folder = _saved(tf, tmp_path, _tuple)
    content = bytes(tfconvert.convert(folder, rename={"zeta": "image", "output_1": "scores"}, verify=True))
    assert _places(content) == (["image", "alpha", "mid"], ["output_0", "scores", "output_2"])
    (signature,) = Interpreter(model_content=content).get_signature_list().values()
    assert set(signature["inputs"]) == {"image", "alpha", "mid"}
    assert set(signature["outputs"]) == {"output_0", "scores", "output_2"}


def test_names_may_be_exchanged(tf: ModuleType, tmp_path: Path) -> None:
    folder = _saved(tf, tmp_path, _tuple)
    assert _names(folder, rename={"zeta": "mid", "mid": "zeta"})[0] == ["mid", "alpha", "zeta"]


def test_names_of_a_graph(tf: ModuleType, tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        tf.add(tf.compat.v1.placeholder(tf.float32, [None, 2], "x"), 1.0, name="y")
    message = graph.as_graph_def()
    settings: dict[str, Any] = {"inputs": ["x:0"], "outputs": ["y"]}
    model = tfconvert.convert(message, **settings, rename={"x:0": "image", "y": "scores"}, batch=3)
    assert _places(bytes(model)) == (["image"], ["scores"])
    assert str(model.report.interfaces[0]) == "main: image f32[3,2] -> scores f32[3,2]"


@pytest.mark.parametrize(
    ("rename", "message"),
    [
        ({"beta": "x"}, "no input or output beta"),
        ({"zeta": "mid"}, "two tensors would have the name mid"),
        ({"zeta": "output_0"}, "two tensors would have the name output_0"),
        ({"zeta": "a,b"}, "can't be a name"),
        ({"zeta": ""}, "can't be a name"),
    ],
)
def test_names_that_can_t_be(tf: ModuleType, tmp_path: Path, rename: dict[str, str], message: str) -> None:
    folder = _saved(tf, tmp_path, _tuple)
    with pytest.raises(ConversionError, match=message) as caught:
        tfconvert.convert(folder, rename=rename)
    assert caught.value.code == "wrong-option"


def _batches(tf: ModuleType, tmp_path: Path) -> Path:
    module = tf.Module()
    specs = [
        tf.TensorSpec([None, None, 3], name="image"),
        tf.TensorSpec([], name="scale"),
        tf.TensorSpec(None, name="any"),
        tf.TensorSpec([2, 3], name="fixed"),
    ]

    @traced(tf, *specs)
    def call(image: Any, scale: Any, any: Any, fixed: Any) -> Any:
        return image * scale, any + 1.0, fixed * 2.0

    module.call = call
    tf.saved_model.save(module, str(tmp_path), signatures=call)
    return tmp_path


def test_the_batch_is_pinned_where_it_is_open(tf: ModuleType, tmp_path: Path) -> None:
    model = tfconvert.convert(_batches(tf, tmp_path), batch=2)
    (interface,) = model.report.interfaces
    assert [each.type for each in interface.inputs] == ["f32[2,?,3]", "f32[]", "f32[...]", "f32[2,3]"]
    assert _shape(bytes(model), "image") == [2, -1, 3]


def test_a_function_of_two_names_is_one_signature(digits_model: Path) -> None:
    model = tfconvert.convert(digits_model)
    assert [each.keys for each in model.report.interfaces] == [("serving_default",)]
    (note,) = (each for each in model.report.notes if each.code == "same-signature")
    assert "'serve'" in note.message
    # The line of the signature has its other name; the note and its hint are for those who want more.
    assert "  serving_default (in the model also serve): pixels" in model.report.to_text()
    assert note.message not in model.report.to_text()
    assert note.message in model.report.to_text(verbose=True)
    runner = Interpreter(model_content=bytes(model)).get_signature_runner()
    assert list(runner.get_input_details()) == ["pixels"]
    for wanted in (["serve", "serving_default"], ["serve"]):
        model = tfconvert.convert(digits_model, signatures=wanted)
        assert list(Interpreter(model_content=bytes(model)).get_signature_list()) == wanted
        assert not model.report.notes
    # Samples may still name it.
    image = {"pixels": np.ones((1, 8, 8, 1), np.float32)}
    contents = {
        bytes(tfconvert.convert(digits_model, quantize=tfconvert.Quantize("int8", samples={key: [image]})))
        for key in ("serve", "serving_default")
    }
    assert len(contents) == 1


@pytest.mark.parametrize("first", [1, 2])
def test_signatures_of_the_same_tensors_are_one(tf: ModuleType, tmp_path: Path, first: int) -> None:
    if first == 1:
        old = tf.compat.v1
        with old.Graph().as_default(), old.Session() as session:
            x = old.placeholder(tf.float32, [2], name="x")
            signature = old.saved_model.predict_signature_def({"x": x}, {"y": x + 1.0})
            other = old.saved_model.predict_signature_def({"x": x}, {"z": x + 2.0})
            builder = old.saved_model.Builder(str(tmp_path / "saved"))
            builder.add_meta_graph_and_variables(
                session, ["serve"], {"predict": signature, "serving_default": signature, "other": other}
            )
            builder.save()
    else:
        module = tf.Module()
        one = traced(tf, tf.TensorSpec([2], name="x"))(lambda x: {f"y{at}": x + float(at) for at in range(10)})
        two = traced(tf, tf.TensorSpec([2], name="x"))(lambda x: {"z": x + 2.0})
        signatures = {"predict": one, "serving_default": one, "other": two}
        tf.saved_model.save(module, str(tmp_path / "saved"), signatures)
    model = tfconvert.convert(tmp_path / "saved", verify=True)
    assert {each.keys for each in model.report.interfaces} == {("serving_default",), ("other",)}
    assert "'predict'" in next(each.message for each in model.report.notes if each.code == "same-signature")
    # TensorFlow's own converter leaves out nothing but Keras's name.
    official = tfconvert.convert(tfconvert.Source(tmp_path / "saved", order="official"))
    assert {each.keys for each in official.report.interfaces} == {("predict", "serving_default"), ("other",)}


def test_names_of_tensorflow_s_own(digits_model: Path, tf: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "digits.tflite"
    command = [str(digits_model), "-o", str(path), "--names", "official", "--verify", "-q"]
    assert CliRunner().invoke(main, command).exit_code == 0
    interpreter = Interpreter(str(path))
    (image,), (scores,) = interpreter.get_input_details(), interpreter.get_output_details()
    assert (image["name"], scores["name"]) == ("serving_default_pixels:0", "StatefulPartitionedCall_1:0")
    assert interpreter.get_signature_list() == {"serving_default": {"inputs": ["pixels"], "outputs": ["output_0"]}}
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [1, 2], name="x")
        tf.split(x * 2.0, 2, axis=1, name="y")
    model = tfconvert.convert(
        graph.as_graph_def(),
        inputs=["x:0"],
        outputs=["y:0", "y:1"],
        verify=True,
        target=tfconvert.LiteRT(names="official"),
    )
    assert _places(bytes(model)) == (["x"], ["y", "y:1"])
    for settings, message in (
        ({"names": "short"}, "one of signature, official"),
        ({"recurrent": "loop", "target": "stablehlo"}, "recurrent .* is a setting of LiteRT, and the target is"),
        ({"names": "official", "target": "stablehlo"}, "names .* is a setting of LiteRT"),
    ):
        with pytest.raises(ConversionError, match=message) as caught:
            from_data(settings)[1].check()
        assert caught.value.code == "wrong-option"


def _shape(content: bytes, name: str) -> list[int]:
    details = Interpreter(model_content=content).get_input_details()
    (shape,) = (each["shape_signature"].tolist() for each in details if each["name"] == name)
    assert isinstance(shape, list)
    return shape


def test_a_batch_that_contradicts_the_model(tf: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="'fixed' contradicts") as caught:
        tfconvert.convert(_batches(tf, tmp_path), batch=1)
    assert caught.value.code == "shape-mismatch"
    with pytest.raises(ConversionError, match="batch can't be 0"):
        tfconvert.convert(tmp_path, batch=0)


@pytest.mark.parametrize("setting", [{"batch": 1}, {"rename": {"x": "y"}}])
def test_files_that_are_imported_whole(digits_model: Path, tmp_path: Path, setting: dict[str, Any]) -> None:
    path = tmp_path / "model.tflite"
    tfconvert.convert(digits_model).save(path)
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(path, **setting)
    assert caught.value.code == "wrong-option"


def test_open_sizes_are_noted(tf: ModuleType, tmp_path: Path) -> None:
    model = tfconvert.convert(_batches(tf, tmp_path), batch=2)
    without, sizes = model.report.input_notes
    assert without.message.endswith("have no batch: scale f32[], any f32[...]")
    assert sizes.message.endswith("these are dynamic: image f32[2,?,3], any f32[...]")
    assert sizes.hint == "input_shapes (--input-shape image=2,N,3 --input-shape any=N,N) fixes them"
    assert {without.severity, sizes.severity} == {"note"}
    shown = model.report.to_text()
    assert f"note: {sizes.message}" in shown
    assert [note["code"] for note in model.report.to_dict()["notes"]][-2:] == ["no-batch", "open-sizes"]


def test_a_first_dimension_is_not_taken_for_a_batch(tf: ModuleType) -> None:
    @traced(tf, tf.TensorSpec([None, None, 3], name="image"))
    def brighter(image: Any) -> Any:
        return image * 2.0

    (note,) = tfconvert.convert(brighter).report.input_notes
    assert note.hint == "input_shapes (--input-shape image=N,N,3) fixes them"


def test_a_batch_that_contradicts_the_model_is_the_batch_s_fault(tf: ModuleType) -> None:
    @traced(tf, tf.TensorSpec([2, 3], name="x"))
    def double(x: Any) -> Any:
        return x * 2.0

    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(double, batch=1)
    assert caught.value.diagnostics[0].hint == "the model has only this batch: leave --batch (batch) out"


def test_only_a_batch_is_fixed_by_a_word(digits_model: Path) -> None:
    (note,) = tfconvert.convert(digits_model).report.input_notes
    assert (note.code, note.hint) == ("open-sizes", "batch=1 (--batch 1) fixes them")
    assert not tfconvert.convert(digits_model, batch=1).report.input_notes


@pytest.mark.parametrize("name", ["image", "pixels"])
def test_shapes_are_by_old_or_new_names(tf: ModuleType, name: str) -> None:
    @traced(tf, tf.TensorSpec([None, None, 3], name="image"))
    def brighter(image: Any) -> Any:
        return image * 2.0

    rename = {"image": "pixels"}
    (note,) = tfconvert.convert(brighter, rename=rename).report.input_notes
    assert note.hint == "input_shapes (--input-shape pixels=N,N,3) fixes them"
    model = tfconvert.convert(brighter, rename=rename, input_shapes={name: (4, 5, 3)})
    assert [(each.name, each.shape) for each in model.inputs] == [("pixels", (4, 5, 3))]
    with pytest.raises(ConversionError, match="two shapes of the input 'image'"):
        tfconvert.convert(brighter, rename=rename, input_shapes={"image": (4, 5, 3), "pixels": (4, 5, 3)})
