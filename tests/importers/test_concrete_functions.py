"""Functions and modules in memory convert, compute what TensorFlow does, and leave nothing behind."""

from __future__ import annotations

import gc
import importlib
import io
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.importers.temporary_folders import LeftFolders
from tests.support.litert import RunTFLite
from tests.support.sample_models import traced
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError

_X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)

pytestmark = pytest.mark.usefixtures("temporary")


@pytest.fixture
def scaled(tf: ModuleType) -> Any:
    """Returns a module with one function, which uses a variable."""
    module = tf.Module()
    module.weight = tf.Variable(np.arange(4096 * 4, dtype=np.float32).reshape(4, 4096) / 1000)

    @traced(tf, tf.TensorSpec([None, 4], tf.float32, name="image"))
    def call(image: Any) -> Any:
        return {"scores": tf.matmul(image, module.weight)}

    module.call = call
    return module


def _table(tf: ModuleType) -> Any:
    module = tf.Module()
    filled = tf.lookup.KeyValueTensorInitializer(np.array([1, 2]), np.array([3, 4]))
    module.table = tf.lookup.StaticHashTable(filled, -1)

    @traced(tf, tf.TensorSpec([None], tf.int64, name="key"))
    def call(key: Any) -> Any:
        return {"value": module.table.lookup(key)}

    module.call = call
    return module


def _code(model: Any) -> str:
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(model)
    return caught.value.code


@pytest.mark.parametrize("kind", ["module", "function", "concrete", "list", "loaded", "loaded function"])
def test_each_kind_computes_what_tensorflow_does(
    kind: str, tf: ModuleType, scaled: Any, run_tflite: RunTFLite, tmp_path: Path
) -> None:
    model = scaled
    if kind == "function":
        model = scaled.call
    elif kind == "concrete":
        model = scaled.call.get_concrete_function()
    elif kind == "list":
        model = [scaled.call.get_concrete_function()]
    elif kind.startswith("loaded"):
        tf.saved_model.save(scaled, str(tmp_path / "saved"))
        loaded = tf.saved_model.load(str(tmp_path / "saved"))
        model = loaded.call if kind == "loaded function" else loaded
    content = bytes(tfconvert.convert(model))
    (scores,) = run_tflite(content, {"image": _X}, signature="serving_default")
    np.testing.assert_allclose(scores, scaled.call(_X)["scores"], rtol=1e-5, atol=1e-6)


def test_several_functions_are_signatures_by_their_names(tf: ModuleType, run_tflite: RunTFLite) -> None:
    @traced(tf, tf.TensorSpec([2], tf.float32, name="x"))
    def twice(x: Any) -> Any:
        return x * 2

    @traced(tf, tf.TensorSpec([2], tf.float32, name="x"))
    def more(x: Any) -> Any:
        return x + 5

    content = bytes(tfconvert.convert([twice, more.get_concrete_function()]))
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(run_tflite(content, {"x": x}, signature="twice")[0], [2, 4])
    np.testing.assert_array_equal(run_tflite(content, {"x": x}, signature="more")[0], [6, 7])
    assert _code([twice, twice]) == "no-signature"


def test_results_in_a_structure_are_a_list(tf: ModuleType, run_tflite: RunTFLite) -> None:
    module = tf.Module()
    module.count = tf.Variable([1.0, 2.0])

    @traced(tf, tf.TensorSpec([2], name="zeta"), tf.TensorSpec([2], name="alpha"))
    def call(zeta: Any, alpha: Any) -> Any:
        ragged = tf.RaggedTensor.from_row_lengths(alpha, [1, 1])
        module.count.assign_add(zeta)
        return [module.count.read_value(), None], {"z": (zeta - alpha,), "b": ragged}

    module.call = call
    values = {"zeta": np.array([3, 5], np.float32), "alpha": np.array([1, 7], np.float32)}
    content = bytes(tfconvert.convert(module))
    found = run_tflite(content, values, signature="serving_default")
    # The keys of a dictionary are sorted, and a ragged tensor is its values and where rows begin.
    for value, wanted in zip(found, ([4, 7], [1, 7], [0, 1, 2], [2, -2]), strict=True):
        np.testing.assert_array_equal(value, wanted)
    assert bytes(tfconvert.convert(call)) == content


def test_signatures_of_loaded_models_stay_and_may_be_chosen(tf: ModuleType, scaled: Any, tmp_path: Path) -> None:
    tf.saved_model.save(scaled, str(tmp_path / "saved"), signatures={"a": scaled.call, "b": scaled.call})
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    assert {name for each in tfconvert.convert(loaded).report.interfaces for name in each.keys} == {"a", "b"}
    chosen = tfconvert.convert(loaded, signatures="b").report.interfaces
    assert [list(each.keys) for each in chosen] == [["b"]]


def test_tables_come_with_their_module(tf: ModuleType, run_tflite: RunTFLite) -> None:
    module = _table(tf)
    (value,) = run_tflite(bytes(tfconvert.convert(module)), {"key": np.array([2, 7])}, signature="serving_default")
    np.testing.assert_array_equal(value, [4, -1])
    assert _code(module.call) == "untracked-resource"


def test_errors_name_lines_of_source(tf: ModuleType) -> None:
    @traced(tf, tf.TensorSpec([2, 2], tf.float32, name="x"))
    def call(x: Any) -> Any:
        return tf.linalg.eigh(x)[0]

    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(call)
    assert Path(__file__).name in caught.value.diagnostics[0].location


def test_the_temporary_folder_stays_as_long_as_the_result(tf: ModuleType, left_folders: LeftFolders) -> None:
    model = tfconvert.convert(_table(tf))
    (note,) = [note for note in model.report.notes if note.code == "saved-first"]
    assert note.message == "the Module in memory was saved to a temporary directory first: it uses tables or files"
    assert model.report.stages[0].name == "save"
    (folder,) = left_folders()
    assert folder.stat().st_mode & 0o077 == 0 or sys.platform == "win32"
    stream = io.BytesIO()
    model.save(stream)
    assert stream.getvalue() == bytes(model)
    del model
    gc.collect()
    assert left_folders() == []


def test_nothing_is_saved_of_a_function_of_variables(scaled: Any, left_folders: LeftFolders, tmp_path: Path) -> None:
    model = tfconvert.convert(scaled)
    assert left_folders() == []
    assert not [note for note in model.report.notes if note.code == "saved-first"]
    importlib.import_module("tensorflow").saved_model.save(scaled, str(tmp_path / "saved"), scaled.call)
    saved = bytes(tfconvert.convert(tmp_path / "saved"))
    # The metadata tells what the model was.
    (differing,) = (pair for pair in zip(bytes(model), saved, strict=True) if len(set(pair)) > 1)
    assert differing == (3, 1)


def test_a_model_is_converted_as_it_was(tf: ModuleType, scaled: Any) -> None:
    first = bytes(tfconvert.convert(scaled))
    model = tfconvert.convert(scaled)
    scaled.weight.assign_add(tf.ones_like(scaled.weight))
    scaled.weight.assign(tf.zeros_like(scaled.weight))
    assert bytes(model) == first
    assert bytes(tfconvert.convert(scaled)) != first


def test_captured_constants_and_repeated_names(tf: ModuleType, run_tflite: RunTFLite) -> None:
    module = tf.Module()
    module.offset = tf.constant(np.arange(512, dtype=np.float32))
    module.weights = [tf.Variable(np.full(512, at, np.float32), name="same name") for at in (2, 3)]

    @traced(tf, tf.TensorSpec([None, 512], tf.float32, name="a b"), tf.TensorSpec([512], tf.float32, name="a b"))
    def call(one: Any, other: Any) -> Any:
        return one * module.weights[0] + other * module.weights[1] + module.offset

    module.call = call
    (found,) = run_tflite(
        bytes(tfconvert.convert(module)),
        {"a b": np.ones((1, 512), np.float32), "a b_1": np.ones(512, np.float32)},
        signature="serving_default",
    )
    np.testing.assert_array_equal(found, np.arange(5, 517, dtype=np.float32)[None])


def test_errors_leave_no_folder(tf: ModuleType, left_folders: LeftFolders) -> None:
    fails = tf.function(tf.linalg.eigvalsh, input_signature=[tf.TensorSpec([2, 2])])
    with pytest.raises(ConversionError, match="SelfAdjointEigV2") as caught:
        tfconvert.convert(fails)
    assert caught.value.code == "unsupported-op"
    with pytest.raises(ConversionError) as other:
        tfconvert.convert(_table(tf).call)
    assert other.value.code == "untracked-resource"
    assert left_folders() == []


def test_results_can_be_verified(scaled: Any) -> None:
    assert tfconvert.convert(scaled, verify=True).report.verification


def test_the_report_names_the_model_and_the_time_to_trace_it(scaled: Any) -> None:
    report = tfconvert.convert(scaled.call).report
    assert report.source == "the Function in memory"
    assert report.stages[0].name == "trace"


def test_invalid_models_are_reported(tf: ModuleType) -> None:
    assert _code(tf.function(lambda x: x)) == "no-signature"
    assert _code(tf.Module()) == "no-signature"
    things: tuple[Any, ...] = (tf.constant(1.0), tf.Variable(1.0), tf.TensorSpec([2]), [], [7], {}, print)
    for thing in things:
        assert _code(thing) == "unknown-format"


def test_nothing_is_left_of_a_model_that_has_no_such_tensor(scaled: Any, left_folders: LeftFolders) -> None:
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(scaled, outputs=["y"])
    assert caught.value.code == "unknown-tensor"
    assert left_folders() == []


def test_files_need_no_tensorflow(digits_model: Path) -> None:
    program = (
        "import sys, tfconvert\n"
        f"tfconvert.convert({str(digits_model)!r})\n"
        "try: tfconvert.convert([print])\n"
        "except tfconvert.ConversionError as problem: assert problem.code == 'unknown-format'\n"
        "assert not {'tensorflow', 'keras', 'tf_keras', 'tfconvert.importers.temporary_model'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_source_on_the_disk_is_itself(digits_model: Path) -> None:
    source = Source(digits_model)
    assert source.importable() is source
    source.discard()
    assert digits_model.is_dir()
