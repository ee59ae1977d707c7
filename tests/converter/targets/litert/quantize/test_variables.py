"""Integer variables: selection, scales, and streaming models call by call against TensorFlow."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from click.testing import CliRunner

import tfconvert
from tests.converter.pass_texts import FileCheck
from tests.converter.targets.litert.quantize.runs import signal_to_noise
from tests.support.run_text import parse
from tests.support.sample_models import traced
from tests.support.stateful import runners, same
from tfconvert.cli.main import main
from tfconvert.converter.targets.litert.passes.quantize import QuantizeOps
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.quantization import Quantize

Array = np.ndarray[Any, np.dtype[Any]]

INT8 = QuantizeOps(Quantize("int8"))
STRICT = QuantizeOps(Quantize("int8", strict=True))
FRAMES = np.random.default_rng(0).normal(0, 1, (30, 1, 1, 8)).astype(np.float32)

HANDLE = """
      %v = "tfl.var_handle"() <{container = "", shared_name = "v"}>
          : () -> tensor<!tf_type.resource<tensor<1x4xf32>>>"""


def _read(low: float, high: float) -> str:
    return (
        HANDLE
        + f"""
      %r = "tfl.read_variable"(%v) {{tfl.ranges = array<f32: {low}, {high}>}}
          : (tensor<!tf_type.resource<tensor<1x4xf32>>>) -> tensor<1x4xf32>"""
    )


def _assign(value: str) -> str:
    return f"""
      "tfl.assign_variable"(%v, {value}) : (tensor<!tf_type.resource<tensor<1x4xf32>>>, tensor<1x4xf32>) -> ()"""


def _of_one(op: str, low: float, high: float, operands: str = "%r, %x") -> str:
    taken = ", ".join(["tensor<1x4xf32>"] * (operands.count(",") + 1))
    return f"""
      %0 = "tfl.{op}"({operands}) <{{fused_activation_function = "NONE"}}> {{tfl.ranges = array<f32: {low}, {high}>}}
          : ({taken}) -> tensor<1x4xf32>"""


def _function(body: str, result: str = "%0") -> str:
    return f"""
    func.func @main(%x: tensor<1x4xf32>) -> tensor<1x4xf32> attributes {{tfl.ranges = array<f32: -1.0, 1.0>}} {{
      {body}
      func.return {result} : tensor<1x4xf32>
    }}"""


def test_a_variable_has_one_scale_in_all_functions(filecheck: FileCheck) -> None:
    # -3 is assigned by another function, so there is one scale for all, and the product is computed in it.
    filecheck(
        INT8,
        _function(
            _read(-1, 1) + _of_one("mul", -1, 1, "%x, %x") + _assign("%0") + _of_one("add", -2, 2).replace("%0", "%1"),
            "%1",
        )
        + """
    func.func private @first() {"""
        + HANDLE
        + """
      %c = "tfl.pseudo_const"() <{value = dense<[[0.0, -3.0, 1.0, 0.0]]> : tensor<1x4xf32>}> : () -> tensor<1x4xf32>
      """
        + _assign("%c")
        + """
      func.return
    }
    // CHECK: "tfl.var_handle"
    // CHECK-SAME: tensor<!tf_type.resource<tensor<1x4x!quant.uniform<i8:f32, [[S:.*]]>>>>
    // CHECK: "tfl.read_variable"
    // CHECK-SAME: -> tensor<1x4x!quant.uniform<i8:f32, [[S]]>>
    // CHECK: "tfl.mul"
    // CHECK-SAME: -> tensor<1x4x!quant.uniform<i8:f32, [[S]]>>
    // CHECK-NEXT: "tfl.assign_variable"
    // CHECK: "tfl.pseudo_qconst"() <{{.*}}dense<{{\\[\\[}}63, -128, 127, 63]]> : tensor<1x4xi8>
    // CHECK-SAME: !quant.uniform<i8:f32, [[S]]>
    // CHECK-NEXT: "tfl.assign_variable"
    """,
    )


def test_what_cannot_have_the_scale_is_converted(filecheck: FileCheck) -> None:
    # The kernel of TANH has a scale of its own, and the variable holds more than that has room for.
    filecheck(
        STRICT,
        _function(
            _read(-5, 5)
            + _of_one("add", -6, 6)
            + _of_one("tanh", -1, 1, "%x").replace("%0", "%1").replace('<{fused_activation_function = "NONE"}> ', "")
            + _assign("%1")
        )
        + """
    // CHECK: [[T:%[0-9]+]] = "tfl.tanh"
    // CHECK-SAME: -> tensor<1x4x!quant.uniform<i8:f32, 0.0078125>>
    // CHECK: [[Q:%[0-9]+]] = "tfl.quantize"([[T]])
    // CHECK-SAME: -> tensor<1x4x!quant.uniform<i8:f32, 0.039215688:-1>>
    // CHECK: "tfl.assign_variable"(%{{[0-9a-z]+}}, [[Q]])
    """,
    )


SUM = _function(_read(-5, 5) + _of_one("add", -5, 5) + _assign("%0"))


@pytest.mark.parametrize(
    ("wanted", "is_integers"),
    [
        (Quantize("int8"), False),
        (Quantize("int8", io="int8"), False),
        (Quantize("int8", strict=True), True),
        (Quantize("int8", variables="integers"), True),
        (Quantize("int16", variables="integers"), True),
        (Quantize("int8", variables="integers", exclude=["ASSIGN_VARIABLE"]), False),
    ],
)
def test_sums_stay_floats_unless_integers_are_requested(wanted: Quantize, is_integers: bool) -> None:
    module = parse(SUM)
    QuantizeOps(wanted).apply(module)
    held = [str(op.operands[1].type) for op in module.walk() if op.name == "tfl.assign_variable"]
    assert ["quant" in each for each in held] == [is_integers]


def test_a_variable_stays_float_where_nothing_gains(filecheck: FileCheck) -> None:
    cos = '%0 = "tfl.cos"(%r) : (tensor<1x4xf32>) -> tensor<1x4xf32>'
    filecheck(
        INT8,
        _function(_read(-5, 5) + _assign("%x") + cos)
        + """
    // CHECK-NOT: quant
    """,
    )


def test_a_range_that_no_sample_has_shown_is_an_error() -> None:
    text = SUM + _function(_assign("%x").join((HANDLE, "")), "%x").replace("@main", "@other").replace(
        "attributes {tfl.ranges = array<f32: -1.0, 1.0>}", ""
    )
    with pytest.raises(ConversionError, match=r"(?s)read_variable.*unknown.*assign_variable.*unknown"):
        STRICT.apply(parse(text))


def test_the_setting_is_checked() -> None:
    with pytest.raises(ConversionError, match="variables can't be 'int8'"):
        Quantize("int8", variables="int8").check()  # type: ignore[arg-type]


def _streaming(tf: ModuleType) -> tuple[Any, Any]:
    """Convolutions over ring buffers, as keyword spotters have them."""
    random = np.random.default_rng(1)
    first, deep, dense = (
        tf.constant(random.normal(0, spread, shape).astype(np.float32))
        for shape, spread in (((5, 1, 8, 16), 0.3), ((7, 1, 16, 1), 0.2), ((16, 3), 0.3))
    )
    module = tf.Module()
    module.rings = [tf.Variable(tf.zeros(shape), name="ring") for shape in ((1, 4, 1, 8), (1, 6, 1, 16))]

    @traced(tf, tf.TensorSpec([1, 1, 1, 8], tf.float32, name="frame"))
    def call(frame: Any) -> Any:
        seen = tf.concat([module.rings[0], frame], 1)
        module.rings[0].assign(seen[:, -4:])
        frame = tf.nn.relu(tf.nn.conv2d(seen, first, 1, "VALID"))
        seen = tf.concat([module.rings[1], frame], 1)
        module.rings[1].assign(seen[:, -6:])
        frame = tf.nn.relu(tf.nn.depthwise_conv2d(seen, deep, [1, 1, 1, 1], "VALID"))
        return {"scores": tf.nn.softmax(tf.matmul(tf.reshape(frame, [1, 16]), dense))}

    return module, call


@pytest.fixture(scope="module")
def stream(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Array]]:
    """Returns a saved streaming model, and TensorFlow's results for the frames one by one."""
    module, call = _streaming(tf)
    folder = tmp_path_factory.mktemp("stream")
    tf.saved_model.save(module, str(folder / "model"), signatures=call)
    np.savez(folder / "frames.npz", frame=FRAMES[:, np.newaxis])
    return folder, [call(frame=tf.constant(frame[np.newaxis]))["scores"].numpy() for frame in FRAMES]


def _outputs(content: bytes, *, builtin: bool = False) -> list[Array]:
    """Returns a model's results for the frames one by one, as floats."""
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if builtin else OpResolverType.AUTO
    interpreter = Interpreter(model_content=content, num_threads=1, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    taken, given = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    results = []
    for frame in FRAMES[:, np.newaxis]:
        scale, zero = taken["quantization"]
        info = np.iinfo(taken["dtype"]) if scale else None
        fed = np.clip(np.round(frame / scale) + zero, info.min, info.max) if info is not None else frame
        interpreter.set_tensor(taken["index"], fed.astype(taken["dtype"]))
        interpreter.invoke()
        result = interpreter.get_tensor(given["index"])
        scale, zero = given["quantization"]
        results.append((result.astype(np.float32) - zero) * scale if scale else result)
    return results


def _types_of_variables(content: bytes) -> set[str]:
    """Returns the types of what is read from variables."""
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    types = {detail["index"]: np.dtype(detail["dtype"]).name for detail in interpreter.get_tensor_details()}
    return {
        types[index]
        for op in interpreter._get_ops_details()
        if op["op_name"] == "READ_VARIABLE"
        for index in op["outputs"]
    }


@pytest.mark.parametrize(
    ("mode", "more", "held", "least"),
    [
        ("int8", (), {"int8"}, 40),
        ("int8", ("--strict", "--io", "int8"), {"int8"}, 38),
        ("int8", ("--variables", "float32"), {"float32"}, 40),
        ("int16", ("--strict",), {"int16"}, 50),
    ],
)
def test_a_streaming_model_by_the_command(
    stream: tuple[Path, list[Array]], tmp_path: Path, mode: str, more: tuple[str, ...], held: set[str], least: float
) -> None:
    folder, expected = stream
    file = tmp_path / "stream.tflite"
    arguments = [str(folder / "model"), "-o", str(file), "--quantize", mode, "--samples", str(folder / "frames.npz")]
    done = CliRunner().invoke(main, [*arguments, *more], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    content = file.read_bytes()
    assert _types_of_variables(content) == held
    for builtin in (False, True):
        assert signal_to_noise(np.array(expected), np.array(_outputs(content, builtin=builtin))) > least


@pytest.mark.parametrize(("setting", "held"), [(True, {"int8"}), (False, {"float32"})])
def test_a_streaming_model_by_the_class(stream: tuple[Path, list[Array]], setting: bool, held: set[str]) -> None:
    folder, expected = stream
    converter = tfconvert.TFLiteConverter.from_saved_model(str(folder / "model"))
    converter.optimizations = [tfconvert.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([frame[np.newaxis]] for frame in FRAMES)
    converter.target_spec.supported_ops = [tfconvert.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type, converter.inference_output_type = np.int8, np.uint8
    converter._experimental_variable_quantization = setting
    content = converter.convert()
    assert _types_of_variables(content) == held
    assert signal_to_noise(np.array(expected), np.array(_outputs(content))) > 38


def test_variables_of_the_class_need_integers(stream: tuple[Path, list[Array]]) -> None:
    converter = tfconvert.TFLiteConverter.from_saved_model(str(stream[0] / "model"))
    converter.optimizations = [tfconvert.Optimize.DEFAULT]
    converter._experimental_variable_quantization = True
    with pytest.raises(ConversionError, match="only supported for full-integer modes"):
        converter.convert()


@pytest.mark.parametrize("order", [("step", "clear"), ("clear", "step")])
def test_two_signatures_share_a_variable(tf: ModuleType, tmp_path: Path, order: tuple[str, str]) -> None:
    weight = tf.constant(np.random.default_rng(2).normal(0, 0.5, (8, 4)).astype(np.float32))
    module = tf.Module()
    module.ring = tf.Variable(tf.zeros([3, 8]), name="ring")

    @traced(tf, tf.TensorSpec([1, 8], tf.float32, name="x"))
    def step(x: Any) -> Any:
        module.ring.assign(tf.concat([module.ring[1:], x], 0))
        return {"y": tf.matmul(module.ring, weight)}

    @traced(tf)
    def clear() -> Any:
        module.ring.assign(tf.zeros([3, 8]))
        return {"left": tf.reduce_sum(module.ring)}

    tf.saved_model.save(module, str(tmp_path), signatures={"step": step, "clear": clear})
    rows = FRAMES[:, 0]
    samples: dict[str, list[dict[str, Array]]] = {"step": [{"x": row} for row in rows], "clear": [{}]}
    quantize = Quantize("int8", samples={key: samples[key] for key in order})
    model = tfconvert.convert(tmp_path, quantize=quantize)
    # The input and the output are converted, and nothing else.
    assert (model.report.operators["QUANTIZE"], model.report.operators["DEQUANTIZE"]) == (1, 1)
    run = runners(model)
    for row in (*rows[:5], None, *rows[5:8]):
        if row is None:
            same(run("clear")(), clear())
        else:
            same(run("step")(x=row), step(x=tf.constant(row)), 0.05)
