"""Scripts as people write them for the official converter; only the line that imports it is to change.

What they find in their folder and around them is described in `test_official_scripts.py`. Each leaves `results`.
"""

from __future__ import annotations

from typing import NamedTuple


class Script(NamedTuple):
    """A script.

    Attributes:
        text: The script without its import.
        is_old: Whether it imports the first generation.
        atol: How far its results may be from the official converter's.
    """

    text: str
    is_old: bool = False
    atol: float = 1e-5


RUN = """
with open("model.tflite", "wb") as f:
    f.write(tflite_model)
interpreter = lite.Interpreter(model_path="model.tflite")
interpreter.allocate_tensors()
input_details = interpreter.get_input_details()
output_details = interpreter.get_output_details()
results = []
for image in x_test[:4]:
    data = image[np.newaxis]
    if input_details[0]["dtype"] != np.float32:
        scale, zero_point = input_details[0]["quantization"]
        data = np.round(data / scale + zero_point).astype(input_details[0]["dtype"])
    interpreter.set_tensor(input_details[0]["index"], data)
    interpreter.invoke()
    output = interpreter.get_tensor(output_details[0]["index"])
    if output_details[0]["dtype"] != np.float32:
        scale, zero_point = output_details[0]["quantization"]
        output = (output.astype(np.float32) - zero_point) * scale
    results.append(output)
"""

DATASET = """
def representative_data_gen():
    for value in x_train[:20]:
        yield [value[np.newaxis]]
"""

CONVERTER = "converter = lite.TFLiteConverter.from_keras_model(model)\n"
DEFAULT = "converter.optimizations = [lite.Optimize.DEFAULT]\n"
SAMPLES = f"{DATASET}{CONVERTER}{DEFAULT}converter.representative_dataset = representative_data_gen\n"
INT8 = "converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8]\n"
CONVERT = "tflite_model = converter.convert()\n"
STEP = 0.02
"""How far apart probabilities of two quantized models may be."""

SCRIPTS = {
    "Keras": Script(CONVERTER + CONVERT + RUN),
    "Keras file": Script('model = tf.keras.models.load_model("model.keras")\n' + CONVERTER + CONVERT + RUN),
    "HDF5 file": Script('model = tf.keras.models.load_model("model.h5", compile=False)\n' + CONVERTER + CONVERT + RUN),
    "SavedModel": Script(
        """
converter = lite.TFLiteConverter.from_saved_model("saved_model")
tflite_model = converter.convert()
"""
        + RUN
    ),
    "dynamic range": Script(CONVERTER + DEFAULT + CONVERT + RUN, atol=STEP),
    "old name of the optimization": Script(
        f"""
{CONVERTER}converter.optimizations = [lite.Optimize.OPTIMIZE_FOR_SIZE]
converter.experimental_new_converter = True
converter.experimental_new_quantizer = True
{CONVERT}{RUN}""",
        atol=STEP,
    ),
    "float16": Script(
        CONVERTER + DEFAULT + "converter.target_spec.supported_types = [tf.float16]\n" + CONVERT + RUN, atol=2e-3
    ),
    "integers with floats": Script(SAMPLES + CONVERT + RUN, atol=STEP),
    "integers only": Script(
        f"""
{SAMPLES}{INT8}converter.inference_input_type = tf.int8
converter.inference_output_type = tf.int8
{CONVERT}assert lite.Interpreter(model_content=tflite_model).get_input_details()[0]["dtype"] == np.int8
{RUN}""",
        atol=STEP,
    ),
    "bytes without sign": Script(
        f"""
{SAMPLES}{INT8}converter.inference_input_type = tf.uint8
converter.inference_output_type = tf.uint8
{CONVERT}{RUN}""",
        atol=STEP,
    ),
    "bytes in, floats out": Script(
        f"""
{SAMPLES}converter.inference_input_type = tf.uint8
{CONVERT}{RUN}
assert input_details[0]["dtype"] == np.uint8 and output_details[0]["dtype"] == np.float32
""",
        atol=STEP,
    ),
    "16-bit activations": Script(
        f"""
{SAMPLES}converter.target_spec.supported_ops = [
    lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8, lite.OpsSet.TFLITE_BUILTINS]
{CONVERT}{RUN}""",
        atol=STEP,
    ),
    "samples from tf.data": Script(
        f"""
def representative_data_gen():
    for input_value in tf.data.Dataset.from_tensor_slices(x_train).batch(1).take(20):
        yield [input_value]
{CONVERTER}{DEFAULT}converter.representative_dataset = lite.RepresentativeDataset(representative_data_gen)
{CONVERT}{RUN}""",
        atol=STEP,
    ),
    "samples by name": Script(
        f"""
def representative_dataset():
    for value in x_train[:20]:
        yield {{"image": value[np.newaxis]}}
converter = lite.TFLiteConverter.from_saved_model("saved_model", signature_keys=["serving_default"])
{DEFAULT}converter.representative_dataset = representative_dataset
{CONVERT}{RUN}""",
        atol=STEP,
    ),
    "without scales by channel": Script(
        SAMPLES + INT8 + "converter._experimental_disable_per_channel = True\n" + CONVERT + RUN, atol=2 * STEP
    ),
    "signature runner": Script("""
converter = lite.TFLiteConverter.from_saved_model("saved_model", signature_keys=["serving_default"])
interpreter = lite.Interpreter(model_content=converter.convert())
signatures = interpreter.get_signature_list()
assert list(signatures) == ["serving_default"], signatures
runner = interpreter.get_signature_runner("serving_default")
results = [runner(image=x_test[:1])["output_0"]]
"""),
    "signatures": Script("""
converter = lite.TFLiteConverter.from_saved_model("two_signatures", signature_keys=["double", "encode"])
interpreter = lite.Interpreter(model_content=converter.convert())
assert sorted(interpreter.get_signature_list()) == ["double", "encode"]
double, encode = (interpreter.get_signature_runner(name) for name in ("double", "encode"))
x = np.arange(4, dtype=np.float32)
results = [double(x=x)["y"], encode(x=x)["code"]]
"""),
    "concrete function": Script("""
@tf.function(input_signature=[tf.TensorSpec(shape=[None, 3], dtype=tf.float32)])
def f(x):
    return tf.nn.softmax(tf.cumsum(x, axis=1))
converter = lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()])
interpreter = lite.Interpreter(model_content=converter.convert())
interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [5, 3])
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x_test[0].reshape(-1)[:15].reshape(5, 3))
interpreter.invoke()
results = [interpreter.get_tensor(interpreter.get_output_details()[0]["index"])]
"""),
    "concrete function of a module": Script("""
class Adder(tf.Module):
    def __init__(self):
        self.bias = tf.Variable([1.0, 2.0])
    @tf.function
    def __call__(self, x):
        return x + self.bias
module = Adder()
concrete = module.__call__.get_concrete_function(tf.TensorSpec([2], tf.float32))
converter = lite.TFLiteConverter.from_concrete_functions([concrete], module)
interpreter = lite.Interpreter(model_content=converter.convert())
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([3, 4], np.float32))
interpreter.invoke()
results = [interpreter.get_tensor(interpreter.get_output_details()[0]["index"])]
"""),
    "Keras function of fixed batch": Script(
        """
run_model = tf.function(lambda x: model(x))
concrete_func = run_model.get_concrete_function(tf.TensorSpec([1, 8, 8, 1], model.inputs[0].dtype))
converter = lite.TFLiteConverter.from_concrete_functions([concrete_func])
tflite_model = converter.convert()
"""
        + RUN
        + 'assert input_details[0]["shape"].tolist() == [1, 8, 8, 1]\n'
    ),
    "subclassed model": Script(
        """
class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.flatten = tf.keras.layers.Flatten()
        self.dense = tf.keras.layers.Dense(3, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=1))
    def call(self, x):
        return self.dense(self.flatten(x))
model = Net()
model(x_test[:1])
"""
        + CONVERTER
        + CONVERT
        + RUN
    ),
    "several inputs and outputs": Script("""
image = tf.keras.Input((4,), name="image")
meta = tf.keras.Input((2,), name="meta")
hidden = tf.keras.layers.Concatenate()([meta, image])
label = tf.keras.layers.Lambda(lambda t: t * 2.0, name="label")(hidden)
box = tf.keras.layers.Lambda(lambda t: t - 1.0, name="box")(image)
model = tf.keras.Model([image, meta], {"label": label, "box": box})
converter = lite.TFLiteConverter.from_keras_model(model)
runner = lite.Interpreter(model_content=converter.convert()).get_signature_runner()
found = runner(image=np.ones((1, 4), np.float32), meta=np.zeros((1, 2), np.float32))
results = [found["label"], found["box"]]
"""),
    "open batch": Script(
        CONVERTER
        + CONVERT
        + """
interpreter = lite.Interpreter(model_content=tflite_model)
interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], (3, 8, 8, 1))
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x_test[:3])
interpreter.invoke()
results = [interpreter.get_tensor(interpreter.get_output_details()[0]["index"])]
"""
    ),
    "recurrent, flags of the forum": Script("""
model = tf.keras.Sequential([tf.keras.Input((6, 4), batch_size=1), tf.keras.layers.LSTM(5), tf.keras.layers.Dense(2)])
converter = lite.TFLiteConverter.from_keras_model(model)
converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS, lite.OpsSet.SELECT_TF_OPS]
converter.experimental_enable_resource_variables = True
tflite_model = converter.convert()
interpreter = lite.Interpreter(model_content=tflite_model)
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x_test[0].reshape(-1)[:24].reshape(1, 6, 4))
interpreter.invoke()
results = [interpreter.get_tensor(interpreter.get_output_details()[0]["index"])]
np.testing.assert_allclose(results[0], model(x_test[0].reshape(-1)[:24].reshape(1, 6, 4)), atol=1e-5)
results = [results[0].shape]  # The weights are random.
"""),
    "tokens": Script("""
embedding = tf.keras.layers.Embedding(50, 6, embeddings_initializer=tf.keras.initializers.RandomUniform(seed=2))
model = tf.keras.Sequential([tf.keras.Input((7,), dtype="int32", batch_size=1), embedding,
                             tf.keras.layers.GlobalAveragePooling1D()])
converter = lite.TFLiteConverter.from_keras_model(model)
converter._experimental_disable_batchmatmul_unfold = True
interpreter = lite.Interpreter(model_content=converter.convert())
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([[1, 2, 3, 4, 5, 6, 49]], np.int32))
interpreter.invoke()
results = [interpreter.get_tensor(interpreter.get_output_details()[0]["index"])]
"""),
    "counter": Script("""
class Counter(tf.Module):
    def __init__(self):
        self.count = tf.Variable(0.0)
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="step")])
    def add(self, step):
        return {"count": self.count.assign_add(step)}
counter = Counter()
tf.saved_model.save(counter, "counter", signatures={"add": counter.add})
converter = lite.TFLiteConverter.from_saved_model("counter")
converter.experimental_enable_resource_variables = True
add = lite.Interpreter(model_content=converter.convert()).get_signature_runner("add")
results = [add(step=np.float32(value))["count"] for value in (1, 2, 4)]
"""),
    "trained for integers": Script(
        f"""
class Trained(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([1, 4], tf.float32)])
    def __call__(self, x):
        x = tf.quantization.fake_quant_with_min_max_args(x, -1, 1)
        weight = tf.constant(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))
        weight = tf.quantization.fake_quant_with_min_max_args(weight, -1, 1, narrow_range=True)
        return tf.quantization.fake_quant_with_min_max_args(tf.matmul(x, weight), -2, 2)
module = Trained()
converter = lite.TFLiteConverter.from_concrete_functions([module.__call__.get_concrete_function()], module)
{DEFAULT}{CONVERT}interpreter = lite.Interpreter(model_content=tflite_model)
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([[0.5, -0.3, 0.8, 0.1]], np.float32))
interpreter.invoke()
results = [interpreter.get_tensor(interpreter.get_output_details()[0]["index"])]
""",
        atol=4 / 255 * 1.01,
    ),
    "custom operator": Script("""
@tf.function(input_signature=[tf.TensorSpec([2, 40, 40], tf.float32)])
def f(x):
    return tf.linalg.sqrtm(x)
converter = lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()])
converter.allow_custom_ops = True
results = [b"MatrixSquareRoot" in converter.convert()]
"""),
    "C array": Script(
        CONVERTER
        + CONVERT
        + """
with open("model.h", "w") as header:
    header.write("alignas(8) const unsigned char g_model[] = {")
    header.write(", ".join(f"0x{byte:02x}" for byte in tflite_model))
    header.write(f"}};\\nconst int g_model_len = {len(tflite_model)};\\n")
text = open("model.h").read()
tflite_model = bytes(int(each, 16) for each in text[text.index("{") + 1 : text.index("}")].split(", "))
"""
        + RUN
    ),
    "analyzer": Script(
        CONVERTER
        + CONVERT
        + """
import contextlib, io
text = io.StringIO()
with contextlib.redirect_stdout(text):
    lite.experimental.Analyzer.analyze(model_content=tflite_model, gpu_compatibility=True)
results = [name in text.getvalue() for name in ("Subgraph#0", "CONV_2D", "FULLY_CONNECTED", "SOFTMAX", "T#0(", "looks")]
"""
    ),
    "debugger": Script(
        SAMPLES
        + """
debugger = lite.experimental.QuantizationDebugger(converter=converter, debug_dataset=representative_data_gen)
debugger.run()
with open("layers.csv", "w") as f:
    debugger.layer_statistics_dump(f)
import csv
rows = [row for row in csv.DictReader(open("layers.csv")) if row["op_name"] == "CONV_2D"]
results = [float(rows[0][name]) for name in ("num_elements", "scale", "zero_point")]
results.append(np.sqrt(float(rows[0]["mean_squared_error"])) / float(rows[0]["scale"]))
""",
        atol=0.05,
    ),
    "authoring": Script("""
@lite.experimental.authoring.compatible
@tf.function(input_signature=[tf.TensorSpec(shape=[None], dtype=tf.float32)])
def f(x):
    return tf.tanh(x)
results = [f(tf.constant([0.0, 1.0])), f.get_compatibility_log()]
"""),
    "v1 SavedModel, weights quantized": Script(
        """
converter = lite.TFLiteConverter.from_saved_model("saved_model", signature_key="serving_default")
converter.post_training_quantize = True
tflite_model = converter.convert()
"""
        + RUN,
        is_old=True,
        atol=STEP,
    ),
    "v1 frozen graph": Script(
        """
converter = lite.TFLiteConverter.from_frozen_graph("frozen.pb", ["x"], ["y"], input_shapes={"x": [1, 4]})
interpreter = lite.Interpreter(model_content=converter.convert())
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([[0.5, -0.25, 1, -1]], np.float32))
interpreter.invoke()
results = [interpreter.get_tensor(interpreter.get_output_details()[0]["index"])]
""",
        is_old=True,
        atol=8 / 255 * 1.01,
    ),
    "v1 session": Script(
        """
with tf.Graph().as_default(), tf.compat.v1.Session() as sess:
    x = tf.compat.v1.placeholder(tf.float32, [1, 3], name="x")
    w = tf.compat.v1.get_variable("w", initializer=tf.constant([[1.0], [2.0], [3.0]]))
    y = tf.identity(tf.matmul(x, w), name="y")
    sess.run(tf.compat.v1.global_variables_initializer())
    converter = lite.TFLiteConverter.from_session(sess, [x], [y])
    assert converter.get_input_arrays() == ["x"]
    tflite_model = converter.convert()
interpreter = lite.Interpreter(model_content=tflite_model)
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([[1, 2, 4]], np.float32))
interpreter.invoke()
results = [interpreter.get_tensor(interpreter.get_output_details()[0]["index"])]
""",
        is_old=True,
    ),
    "v1 trained for integers": Script(
        """
converter = lite.TFLiteConverter.from_frozen_graph("frozen.pb", ["x"], ["y"])
converter.inference_type = tf.uint8
converter.quantized_input_stats = {"x": (128.0, 127.0)}
interpreter = lite.Interpreter(model_content=converter.convert())
interpreter.allocate_tensors()
assert interpreter.get_input_details()[0]["dtype"] == np.uint8
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([[200, 100, 255, 1]], np.uint8))
interpreter.invoke()
scale, zero = interpreter.get_output_details()[0]["quantization"]
results = [(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).astype(np.float32) - zero) * scale]
""",
        is_old=True,
        atol=8 / 255 * 1.01,
    ),
}
