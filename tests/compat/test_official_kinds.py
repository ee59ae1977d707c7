"""The kinds of models and settings that the official project tests its class with, each once; see `official_tests`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite
from tests.support.sample_models import traced
from tfconvert.schema.diagnostics import ConversionError

OPS = tfconvert.OpsSet
INT16 = OPS.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
FLEX = [OPS.TFLITE_BUILTINS, OPS.SELECT_TF_OPS]
RNG = np.random.default_rng(4)


def _samples(*shapes: tuple[int, ...]) -> Callable[[], Iterable[Any]]:
    return lambda: [[RNG.uniform(-1, 1, shape).astype(np.float32) for shape in shapes] for _ in range(5)]


def _converted(functions: Any, samples: Any = None, io: str = "float32", **settings: Any) -> bytes:
    functions = functions if isinstance(functions, list) else [functions.get_concrete_function()]
    converter = tfconvert.TFLiteConverter.from_concrete_functions(functions)
    if samples is not None:
        converter.optimizations = [tfconvert.Optimize.DEFAULT]
        converter.representative_dataset = samples
    converter.inference_input_type = converter.inference_output_type = io
    for name, value in settings.items():
        setattr(converter.target_spec if name == "supported_ops" else converter, name, value)
    return converter.convert()


def _types(content: bytes) -> list[str]:
    interpreter = tfconvert.Interpreter(model_content=content)
    details = [*interpreter.get_input_details(), *interpreter.get_output_details()]
    return [np.dtype(each["dtype"]).name for each in details]


def _operators(content: bytes) -> list[str]:
    return [row.name for row in tfconvert.experimental.Analyzer.rows(model_content=content).operators]


@pytest.fixture
def functions(tf: ModuleType) -> Any:
    """Returns a module with two functions that make their variables when they are traced."""

    class Functions(tf.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            self.y = self.z = None

        @tf.function  # type: ignore[untyped-decorator]
        def add(self, x: Any) -> Any:
            if self.y is None:
                self.y = tf.Variable(2.0)
            return x + self.y

        @tf.function  # type: ignore[untyped-decorator]
        def sub(self, x: Any) -> Any:
            if self.z is None:
                self.z = tf.Variable(3.0)
            return x - self.z

    return Functions()


def test_several_functions(functions: Any, tf: ModuleType) -> None:
    one = tf.constant(1.0, shape=[1])
    traces = [functions.add.get_concrete_function(one), functions.sub.get_concrete_function(one)]
    interpreter = tfconvert.Interpreter(model_content=_converted(traces))
    each = {"inputs": ["x"], "outputs": ["output_0"]}
    assert interpreter.get_signature_list() == {"add": each, "sub": each}
    assert interpreter.get_signature_runner("add")(x=one.numpy())["output_0"] == 3
    assert interpreter.get_signature_runner("sub")(x=one.numpy())["output_0"] == -2


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_one_function(functions: Any, tf: ModuleType, run_tflite: RunTFLite, shape: tuple[int, ...]) -> None:
    content = _converted([functions.add.get_concrete_function(tf.TensorSpec(shape, tf.float32))])
    (found,) = run_tflite(content, [np.ones(shape, np.float32)])
    np.testing.assert_array_equal(found, np.full(shape, 3))


def test_functions_that_are_not_traced_are_refused(functions: Any) -> None:
    with pytest.raises(ConversionError, match="get_concrete_function"):
        _converted([functions.add])


def test_no_inputs(tf: ModuleType) -> None:
    @traced(tf)
    def draw() -> Any:
        return tf.random.uniform(shape=[1])

    interpreter = tfconvert.Interpreter(model_content=_converted(draw))
    assert interpreter.get_signature_list()["serving_default"]["inputs"] == []


def _convolution(tf: ModuleType, filters: int = 16) -> Any:
    @traced(tf, tf.TensorSpec([1, 5, 5, 3], tf.float32))
    def call(x: Any) -> Any:
        return tf.nn.relu(tf.nn.conv2d(x, tf.ones([3, 3, 3, filters]), [1] * 4, "SAME"))

    return call


@pytest.mark.parametrize(
    ("io", "ops"),
    [
        ("float32", [OPS.TFLITE_BUILTINS]),
        ("int8", [OPS.TFLITE_BUILTINS]),
        ("uint8", [OPS.TFLITE_BUILTINS]),
        ("float32", [OPS.TFLITE_BUILTINS_INT8]),
        ("int8", [OPS.TFLITE_BUILTINS_INT8]),
        ("uint8", [OPS.TFLITE_BUILTINS_INT8]),
        ("float32", [INT16, OPS.TFLITE_BUILTINS]),
        ("int16", [INT16, OPS.TFLITE_BUILTINS]),
        ("float32", [INT16]),
        ("int16", [INT16]),
    ],
)
def test_integers(tf: ModuleType, io: str, ops: Any) -> None:
    function = _convolution(tf)
    content = _converted(function, _samples((1, 5, 5, 3)), io, supported_ops=ops)
    assert _types(content) == [io, io]
    assert len(content) < len(_converted(function))


def test_integers_that_are_refused(tf: ModuleType) -> None:
    function = _convolution(tf)
    for io in ("int8", "uint8", "int16"):
        with pytest.raises(ConversionError, match="nothing is quantized"):
            _converted(function, io=io)
    with pytest.raises(ConversionError, match="can't be int8 in the mode 'int16'"):
        _converted(function, _samples((1, 5, 5, 3)), "int8", supported_ops=[INT16, OPS.TFLITE_BUILTINS])
    for kind in ("int64", "float32"):
        with pytest.raises(ConversionError, match="bias type to be int32"):
            _converted(function, _samples((1, 5, 5, 3)), _experimental_full_integer_quantization_bias_type=kind)


@pytest.mark.parametrize(("disable", "count"), [(False, 38), (True, 1)])
def test_scales_by_channel(tf: ModuleType, disable: bool, count: int) -> None:
    content = _converted(_convolution(tf, 38), _samples((1, 5, 5, 3)), _experimental_disable_per_channel=disable)
    details = tfconvert.Interpreter(model_content=content).get_tensor_details()
    filters = [each for each in details if each["shape"].tolist() == [38, 3, 3, 3]]
    scales = [len(each["quantization_parameters"]["scales"]) for each in filters]
    assert scales == [count]


@pytest.mark.parametrize("has_samples", [False, True])
@pytest.mark.parametrize(
    ("flags", "counts"),
    [([], [38, 40]), (["_for_dense_layers"], [38, 1]), ([""], [1, 1]), (["", "_for_dense_layers"], [1, 1])],
)
def test_scales_of_dense_layers(
    tf: ModuleType, run_tflite: RunTFLite, flags: list[str], counts: list[int], has_samples: bool
) -> None:
    rng = np.random.default_rng(38)
    filters = tf.constant(rng.normal(size=(3, 3, 16, 38)).astype(np.float32))
    weight = tf.constant(rng.normal(size=(38, 40)).astype(np.float32))

    @traced(tf, tf.TensorSpec([1, 5, 5, 16], tf.float32))
    def call(x: Any) -> Any:
        return tf.matmul(tf.reduce_mean(tf.nn.conv2d(x, filters, [1] * 4, "SAME"), [1, 2]), weight)

    disable = "_experimental_disable_per_channel"
    settings: dict[str, Any] = {f"{disable}_quantization{flag}" if flag else disable: True for flag in flags}
    inputs = [rng.uniform(-1, 1, (1, 5, 5, 16)).astype(np.float32) for _ in range(5)]
    samples = (lambda: [[each] for each in inputs]) if has_samples else None
    content = _converted(call, samples, optimizations=[tfconvert.Optimize.DEFAULT], **settings)
    details = tfconvert.Interpreter(model_content=content).get_tensor_details()
    integers = [each for each in details if each["dtype"] == np.int8]
    scales = {tuple(each["shape"].tolist()): len(each["quantization_parameters"]["scales"]) for each in integers}
    assert [scales[38, 3, 3, 16], scales[40, 38]] == counts
    expected = np.asarray(call(inputs[0]))  # what isn't among the samples may be out of their ranges
    np.testing.assert_allclose(run_tflite(content, inputs[:1])[0], expected, atol=0.05 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("io", "ops"),
    [
        ("int8", [OPS.TFLITE_BUILTINS]),
        ("uint8", [OPS.TFLITE_BUILTINS_INT8, OPS.TFLITE_BUILTINS]),
        ("int16", [INT16, OPS.TFLITE_BUILTINS]),
    ],
)
def test_operators_without_integers(tf: ModuleType, io: str, ops: Any) -> None:
    @traced(tf, tf.TensorSpec([3], tf.float32), tf.TensorSpec([3], tf.float32))
    def call(a: Any, b: Any) -> Any:
        right = tf.tanh(b)
        return tf.math.ceil(tf.math.ceil(a) + right), right

    assert _types(_converted(call, _samples((3,), (3,)), io, supported_ops=ops)) == [io] * 4


def test_samples_are_in_the_order_of_arguments(tf: ModuleType) -> None:
    @traced(tf, tf.TensorSpec([1, 2], tf.float32), tf.TensorSpec([], tf.bool))
    def call(x: Any, b: Any) -> Any:
        return tf.cond(b, lambda: x + x, lambda: x * x) + x

    values = np.ones((1, 2), np.float32)
    content = _converted(call, lambda: [[values, tf.constant(True)], [values, tf.constant(False)]], "int8")
    assert _types(content) == ["int8", "bool", "int8"]


def test_an_operator_without_integers_alone(tf: ModuleType) -> None:
    function = tf.function(tf.math.ceil, input_signature=[tf.TensorSpec([1, 5], tf.float32)])
    assert _operators(_converted(function, _samples((1, 5)))) == ["CEIL"]


@pytest.mark.parametrize(
    ("io", "ops"),
    [("float32", FLEX), ("int8", [OPS.TFLITE_BUILTINS_INT8, OPS.SELECT_TF_OPS]), ("int16", [INT16, OPS.SELECT_TF_OPS])],
)
def test_flex_is_not_needed(tf: ModuleType, io: str, ops: Any) -> None:
    @traced(tf, tf.TensorSpec([3] * 5, tf.float32))
    def call(x: Any) -> Any:
        return tf.tanh(tf.math.erf(tf.nn.conv3d(tf.tanh(x), tf.ones([3] * 5), [1] * 5, "SAME")))

    content = _converted(call, _samples((3,) * 5), io, supported_ops=ops)
    assert _types(content) == [io, io]
    assert "CONV_3D" in _operators(content)


def test_trained_for_integers(tf: ModuleType, run_tflite: RunTFLite) -> None:
    fake = tf.quantization.fake_quant_with_min_max_args

    @traced(tf, tf.TensorSpec([2, 2], tf.float32))
    def call(x: Any) -> Any:
        weight = fake(tf.constant([[1.0, -2.0], [0.5, 3.0]]), -6.0, 6.0)
        return fake(tf.matmul(fake(x, -6.0, 6.0), weight), -6.0, 6.0)

    x = np.array([[1, -1], [0.5, 0.25]], np.float32)
    for io in ("float32", "int8", "uint8"):
        content = _converted(call, io=io, optimizations=[tfconvert.Optimize.DEFAULT])
        assert _types(content) == [io, io]
    (found,) = run_tflite(_converted(call, optimizations=[tfconvert.Optimize.DEFAULT]), [x])
    np.testing.assert_allclose(found, call(x), atol=1.5 * 12 / 255)


def test_biases_that_are_large(tf: ModuleType, run_tflite: RunTFLite) -> None:
    bias = np.array([-1.0, 2.0], np.float32)

    @traced(tf, tf.TensorSpec([1, 2], tf.float32, name="x"))
    def call(x: Any) -> Any:
        return tf.matmul(x, tf.constant([[1e-6, 1e-6], [1e-6, -1e-6]])) + bias

    x = np.array([[-1e-3, 1e-3]], np.float32)
    (found,) = run_tflite(_converted(call, lambda: [{"x": x}]), [x])
    np.testing.assert_allclose(found[0], bias, atol=0.02)


def test_embeddings_and_gathers(tf: ModuleType, run_tflite: RunTFLite) -> None:
    table = tf.constant(RNG.normal(size=(200, 30)).astype(np.float32))
    function = tf.function(lambda x: tf.gather(table, x), input_signature=[tf.TensorSpec([20], tf.int32)])
    x = np.arange(20, dtype=np.int32)
    (found,) = run_tflite(_converted(function), [x])
    np.testing.assert_array_equal(found, table.numpy()[:20])


@pytest.mark.parametrize("flag", [True, False])
def test_loops_and_lists(tf: ModuleType, run_tflite: RunTFLite, flag: bool) -> None:
    @traced(tf, tf.TensorSpec([2, 2], tf.float32))
    def call(x: Any) -> Any:
        kept = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False, element_shape=())
        kept = kept.write(0, 10.0).write(1, 20.0).write(2, 30.0)
        grown = tf.while_loop(lambda v: tf.reduce_sum(v) < 100, lambda v: v + 1.5, [x])[0]
        return tf.cond(x[0, 0] > 0, lambda: grown, lambda: -grown) + kept.read(0) + kept.read(2)

    x = np.array([[1, 2], [3, 4]], np.float32)
    ops = [tfconvert.OpsSet.TFLITE_BUILTINS] if flag else FLEX
    content = _converted(call, supported_ops=ops, _experimental_lower_tensor_list_ops=flag)
    for value in (x, -x):
        np.testing.assert_allclose(run_tflite(content, [value])[0], call(value), rtol=1e-6)


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "SimpleRNN"])
@pytest.mark.parametrize("is_single", [True, False])
def test_recurrent_layers(tf: ModuleType, run_tflite: RunTFLite, layer: str, is_single: bool) -> None:
    model = tf.keras.Sequential([tf.keras.Input((10, 10)), getattr(tf.keras.layers, layer)(10)])
    converter = tfconvert.TFLiteConverter.from_keras_model(model)
    converter._experimental_default_to_single_batch_in_tensor_list_ops = is_single
    if not is_single:
        converter.target_spec.supported_ops = FLEX
    x = RNG.random((4, 10, 10), np.float32)
    np.testing.assert_allclose(run_tflite(converter.convert(), [x])[0], model(x), atol=1e-5)


def test_layers_in_both_directions(tf: ModuleType, run_tflite: RunTFLite) -> None:
    lstm = tf.keras.layers.LSTM(6, return_sequences=True)
    model = tf.keras.Sequential([tf.keras.Input((5, 4)), tf.keras.layers.Bidirectional(lstm)])
    x = RNG.random((1, 5, 4), np.float32)
    content = tfconvert.TFLiteConverter.from_keras_model(model).convert()
    np.testing.assert_allclose(run_tflite(content, [x])[0], model(x), atol=1e-5)


@pytest.mark.parametrize("quantized", [False, True])
def test_open_sizes(tf: ModuleType, run_tflite: RunTFLite, quantized: bool) -> None:
    @traced(tf, tf.TensorSpec([None, 33], tf.float32))
    def call(x: Any) -> Any:
        return tf.matmul(tf.matmul(tf.transpose(tf.fill(tf.shape(x), 1.0)), x), tf.ones([33, 33]))

    content = _converted(call, optimizations=[tfconvert.Optimize.DEFAULT] if quantized else [])
    interpreter = tfconvert.Interpreter(model_content=content)
    assert interpreter.get_input_details()[0]["shape_signature"].tolist() == [-1, 33]
    x = RNG.random((10, 33), np.float32)
    np.testing.assert_allclose(run_tflite(content, [x])[0], call(x), rtol=0.02 if quantized else 1e-5)


def test_versions_of_operators(tf: ModuleType) -> None:
    @traced(tf, tf.TensorSpec([1, 5, 5, 1], tf.float32))
    def call(x: Any) -> Any:
        return tf.compat.v1.image.resize_bilinear(x, [2, 2], half_pixel_centers=True)

    from tensorflow.lite.python import schema_py_generated as schema

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(_converted(call), 0))
    assert [code.version for code in model.operatorCodes] == [3]


@pytest.mark.parametrize("shape", [[], [2, 3], [None, 16, 3], None])
def test_shapes_of_all_ranks(
    tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite, shape: list[int | None] | None
) -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        fed = tf.compat.v1.placeholder(tf.float32, shape, name="input")
        tf.compat.v1.saved_model.simple_save(session, str(tmp_path), {"input": fed}, {"output": fed + fed})
    content = tfconvert.TFLiteConverter.from_saved_model(tmp_path).convert()
    ones = np.ones([3] if shape is None else [size or 4 for size in shape], np.float32)
    np.testing.assert_array_equal(run_tflite(content, [ones])[0], 2 * ones)


def test_models_without_signatures_are_refused(functions: Any, tf: ModuleType, tmp_path: Path) -> None:
    tf.saved_model.save(functions, str(tmp_path))
    with pytest.raises(ConversionError, match="signature"):
        tfconvert.TFLiteConverter.from_saved_model(tmp_path).convert()


def test_variables_beside_small_floats(tf: ModuleType, tmp_path: Path) -> None:
    module = tf.Module()
    module.total = tf.Variable(tf.zeros([4]))
    weight = tf.constant(RNG.normal(size=(4, 4)).astype(np.float32))

    @traced(tf, tf.TensorSpec([1, 4], tf.float32, name="x"))
    def call(x: Any) -> Any:
        return {"y": module.total.assign_add(tf.matmul(x, weight)[0])}

    module.call = call
    tf.saved_model.save(module, str(tmp_path), signatures={"call": call})
    converter = tfconvert.TFLiteConverter.from_saved_model(tmp_path)
    converter.optimizations = [tfconvert.Optimize.DEFAULT]
    converter.target_spec.supported_types = [np.float16]
    runner = tfconvert.Interpreter(model_content=converter.convert()).get_signature_runner("call")
    x = np.ones((1, 4), np.float32)
    for count in (1, 2):
        expected = count * weight.numpy().sum(0)
        np.testing.assert_allclose(runner(x=x)["y"], expected, atol=0.02)
    converter._experimental_variable_quantization = True
    with pytest.raises(ConversionError, match="only supported for full-integer modes"):
        converter.convert()


def test_convolutions_that_recur(tf: ModuleType, run_tflite: RunTFLite) -> None:
    layer = tf.keras.layers.ConvLSTM2D(3, 3, padding="same", return_sequences=True)
    model = tf.keras.Sequential([tf.keras.Input((3, 8, 8, 2), batch_size=1), layer])
    converter = tfconvert.TFLiteConverter.from_keras_model(model)
    converter.target_spec.supported_ops = FLEX
    x = RNG.random((1, 3, 8, 8, 2), np.float32)
    np.testing.assert_allclose(run_tflite(converter.convert(), [x])[0], model(x), atol=1e-5)


def test_slices_that_start_anywhere(tf: ModuleType) -> None:
    @traced(tf, tf.TensorSpec([6], tf.float32), tf.TensorSpec([1], tf.int32))
    def call(a: Any, begin: Any) -> Any:
        return tf.strided_slice(a, begin, begin + 3)

    runner = tfconvert.Interpreter(model_content=_converted(call)).get_signature_runner()
    (found,) = runner(a=np.arange(6, dtype=np.float32), begin=np.array([2], np.int32)).values()
    assert found.tolist() == [2, 3, 4]


def test_tables(tf: ModuleType, tmp_path: Path) -> None:
    module = tf.Module()
    initializer = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
    module.table = tf.lookup.StaticHashTable(initializer, tf.constant(-1, tf.int64))
    module.f = tf.function(module.table.lookup, input_signature=[tf.TensorSpec([3], tf.string, name="key")])
    tf.saved_model.save(module, str(tmp_path), signatures=module.f.get_concrete_function())
    content = tfconvert.TFLiteConverter.from_saved_model(str(tmp_path)).convert()
    runner = tfconvert.Interpreter(model_content=content).get_signature_runner()
    for _ in range(2):
        assert runner(key=np.array([b"a", b"z", b"b"]))["output_0"].tolist() == [1, -1, 2]


def test_signatures_of_saved_models(functions: Any, tf: ModuleType, tmp_path: Path) -> None:
    one = tf.constant(1.0, shape=[1])
    traces = {name: getattr(functions, name).get_concrete_function(one) for name in ("add", "sub")}
    tf.saved_model.save(functions, str(tmp_path), traces)
    make = tfconvert.TFLiteConverter.from_saved_model
    each = {"inputs": ["x"], "outputs": ["output_0"]}
    for keys, expected in ((None, ["add", "sub"]), ([], ["add", "sub"]), (["sub"], ["sub"])):
        interpreter = tfconvert.Interpreter(model_content=make(str(tmp_path), signature_keys=keys).convert())
        assert interpreter.get_signature_list() == dict.fromkeys(expected, each)
    with pytest.raises(ConversionError, match="INVALID"):
        make(str(tmp_path), signature_keys=["INVALID"]).convert()
    converter = make(str(tmp_path))
    converter.optimizations = [tfconvert.Optimize.DEFAULT]
    converter.representative_dataset = lambda: [(key, {"x": np.ones(1, np.float32)}) for key in ("add", "sub")]
    converter.inference_input_type = converter.inference_output_type = "int8"
    runner = tfconvert.Interpreter(model_content=converter.convert()).get_signature_runner("sub")
    assert runner.get_output_details()["output_0"]["dtype"] == np.int8


@pytest.mark.filterwarnings("ignore:.*experimental_preserve_all_tensors:UserWarning")
def test_tensors_keep_names(tf: ModuleType) -> None:
    @traced(tf, tf.TensorSpec([], tf.float32, name="x"))
    def call(x: Any) -> Any:
        y = tf.add(x, x, name="y")
        return tf.sin(tf.multiply(y, y, name="z"), name="w")

    content = _converted(call)
    interpreter = tfconvert.Interpreter(model_content=content, experimental_preserve_all_tensors=True)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.float32(2))
    interpreter.invoke()
    found = {each["name"]: interpreter.get_tensor(each["index"]) for each in interpreter.get_tensor_details()}
    assert (found["x"], found["y"], found["z"]) == (2, 4, 16)


def test_sparse_weights(tf: ModuleType, run_tflite: RunTFLite) -> None:
    weight = np.zeros((16, 8), np.float32)
    weight[3, 1] = 2
    function = tf.function(lambda x: tf.matmul(x, weight), input_signature=[tf.TensorSpec([1, 16], tf.float32)])
    content = _converted(function, optimizations=[tfconvert.Optimize.EXPERIMENTAL_SPARSITY])
    x = RNG.random((1, 16), np.float32)
    np.testing.assert_allclose(run_tflite(content, [x])[0], x @ weight, rtol=1e-6)
