"""Scripts as people write them run with another import, and give what `tfconvert.convert` gives."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tfconvert
from tests.support.litert import RunTFLite
from tfconvert.api import convert_source
from tfconvert.importers.source import Source
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.selection import Order
from tfconvert.settings.targets import LiteRT


class Script(NamedTuple):
    """A script, and the setting that gives the same.

    Attributes:
        text: The script; its import is the first line.
        quantize: The setting.
        takes: The element type of the result's input.
        signatures: The signatures that the script converts, every one by default.
        custom_ops: Whether it allows custom ops.
        generation: The class's generation, which the metadata tells.
    """

    text: str
    quantize: dict[str, Any] | None = None
    takes: type = np.float32
    signatures: list[str] | None = None
    custom_ops: bool = False
    generation: int = 2


GENERATOR = """
def representative_dataset():
    for image in x_train[:20]:
        yield [image[np.newaxis]]
"""

SCRIPTS = {
    "floats": Script("""
import tfconvert as tflite
converter = tflite.TFLiteConverter.from_saved_model(saved_model_dir)
tflite_model = converter.convert()
with open("model.tflite", "wb") as f:
    f.write(tflite_model)
"""),
    "dynamic": Script(
        """
from tfconvert import Optimize, TFLiteConverter
converter = TFLiteConverter.from_saved_model(str(saved_model_dir), signature_keys=["serving_default"], tags={"serve"})
converter.optimizations = [Optimize.DEFAULT]
with open("model.tflite", "wb") as f:
    f.write(converter.convert())
""",
        {"mode": "dynamic"},
        signatures=["serving_default"],
    ),
    "float16": Script(
        """
import tfconvert as tflite
converter = tflite.TFLiteConverter.from_saved_model(saved_model_dir)
converter.optimizations = [tflite.Optimize.OPTIMIZE_FOR_SIZE]
converter.target_spec.supported_types = [tf.float16]
with open("model.tflite", "wb") as f:
    f.write(converter.convert())
""",
        {"mode": "float16"},
    ),
    "integers with floats": Script(
        f"""
import tfconvert as tflite
{GENERATOR}
converter = tflite.TFLiteConverter.from_saved_model(saved_model_dir)
converter.optimizations = [tflite.Optimize.DEFAULT]
converter.representative_dataset = representative_dataset
converter.experimental_new_converter = True
with open("model.tflite", "wb") as f:
    f.write(converter.convert())
""",
        {"mode": "int8"},
    ),
    "integers only": Script(
        f"""
import tfconvert as tflite
{GENERATOR}
converter = tflite.TFLiteConverter.from_saved_model(saved_model_dir)
converter.optimizations = [tflite.Optimize.DEFAULT]
converter.representative_dataset = tflite.RepresentativeDataset(representative_dataset)
converter.target_spec = tflite.TargetSpec(supported_ops=[tflite.OpsSet.TFLITE_BUILTINS_INT8])
converter.inference_input_type = tf.int8
converter.inference_output_type = tf.int8
with open("model.tflite", "wb") as f:
    f.write(converter.convert())
""",
        {"mode": "int8", "io": "int8", "strict": True},
        np.int8,
    ),
    "bytes for a microcontroller": Script(
        """
import tfconvert as tflite
def by_name():
    for image in x_train[:20]:
        yield {"pixels": tf.expand_dims(image, 0)}
converter = tflite.TFLiteConverter.from_saved_model(saved_model_dir)
converter.optimizations = [tflite.Optimize.DEFAULT]
converter.representative_dataset = by_name
converter.target_spec.supported_ops = [tflite.OpsSet.TFLITE_BUILTINS_INT8]
converter.inference_input_type = np.uint8
converter.inference_output_type = np.uint8
converter._experimental_disable_per_channel = True
with open("model.tflite", "wb") as f:
    f.write(converter.convert())
""",
        {"mode": "int8", "io": "uint8", "strict": True, "per_channel": False},
        np.uint8,
    ),
    "16-bit activations, by signature": Script(
        """
import tfconvert as tflite
def representative_dataset():
    for image in x_train[:20]:
        yield "serving_default", {"pixels": image[np.newaxis]}
converter = tflite.TFLiteConverter.from_saved_model(saved_model_dir)
converter.optimizations = [tflite.Optimize.DEFAULT]
converter.representative_dataset = representative_dataset
converter.target_spec.supported_ops = [
    tflite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8, tflite.OpsSet.TFLITE_BUILTINS]
with open("model.tflite", "wb") as f:
    f.write(converter.convert())
""",
        {"mode": "int16"},
    ),
    "flags from the forum": Script(
        """
import tfconvert as tflite
converter = tflite.TFLiteConverter.from_saved_model(saved_model_dir)
converter.target_spec.supported_ops = [tflite.OpsSet.TFLITE_BUILTINS, tflite.OpsSet.SELECT_TF_OPS]
converter._experimental_lower_tensor_list_ops = False
converter.experimental_enable_resource_variables = True
converter.allow_custom_ops = True
with open("model.tflite", "wb") as f:
    f.write(converter.convert())
assert [note.code for note in converter.report.notes] == ["same-signature", "no-effect"], converter.report
""",
        custom_ops=True,
    ),
    "first generation": Script(
        """
from tfconvert.compat.v1 import TFLiteConverter
converter = TFLiteConverter.from_saved_model(saved_model_dir, tag_set={"serve"}, signature_key="serving_default")
converter.post_training_quantize = True
converter.drop_control_dependency = True
with open("model.tflite", "wb") as f:
    f.write(converter.convert())
""",
        {"mode": "dynamic"},
        signatures=["serving_default"],
        generation=1,
    ),
    "interpreter": Script(
        """
import tfconvert as tflite
model = tflite.compat.v1.TFLiteConverter.from_saved_model(saved_model_dir).convert()
interpreter = tflite.Interpreter(model_content=model)
interpreter.allocate_tensors()
assert interpreter.get_input_details()[0]["dtype"] == np.float32
with open("model.tflite", "wb") as f:
    f.write(model)
""",
        signatures=["serving_default"],
        generation=1,
    ),
}


@pytest.fixture(scope="module")
def images(digits_model: Path) -> np.ndarray:
    with np.load(digits_model.parent / "held_out.npz") as held_out:
        pixels: np.ndarray = held_out["pixels"]
    return (pixels / 16).astype(np.float32)[..., np.newaxis]


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(
    name: str,
    digits_model: Path,
    images: np.ndarray,
    tf: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_tflite: RunTFLite,
) -> None:
    script = SCRIPTS[name]
    monkeypatch.chdir(tmp_path)
    names = {"saved_model_dir": digits_model.resolve(), "x_train": images, "np": np, "tf": tf}
    exec(compile(script.text, name, "exec"), names)  # noqa: S102
    content = (tmp_path / "model.tflite").read_bytes()
    quantize = None
    if script.quantize is not None:
        is_static = script.quantize["mode"] in ("int8", "int16")
        quantize = Quantize(
            **script.quantize,
            samples=[[image[np.newaxis]] for image in images[:20]] if is_static else None,
            slow_integers=is_static,
        )
    options = Options(
        target=LiteRT(
            allow_custom_ops=script.custom_ops,
            quantize=quantize,
            allow_flex="SELECT_TF_OPS" in script.text,
            names="official",
            origin={"api_version": script.generation},
        )
    )
    order: Order = "official-v1" if script.generation == 1 else "official"
    assert content == bytes(convert_source(Source(digits_model, signatures=script.signatures, order=order), options))
    # Grey values are from 0 to 1, in steps of the range of the integers.
    taken = images[:8]
    if script.takes is not np.float32:
        taken = np.round(taken * 255 - (128 if script.takes is np.int8 else 0)).astype(script.takes)
    (found,) = run_tflite(content, [taken])
    (expected,) = run_tflite(bytes(tfconvert.convert(digits_model)), [images[:8]])
    assert (found.argmax(1) == expected.argmax(1)).all()
