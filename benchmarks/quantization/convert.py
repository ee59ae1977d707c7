"""Converts a model with a quantization, by us or by the official converter.

    python -m benchmarks.quantization.convert ours SAVED_MODEL CALIBRATION.npz int8 RESULT.tflite
    python -m benchmarks.quantization.convert official SAVED_MODEL CALIBRATION.npz int16 RESULT.tflite --mixed

Kept as small as a user's own script would be, since the whole process is measured. The .npz file has an array for each
input; its first axis counts the samples. `--mixed` allows the official converter operators on floats beside those on
integers; we need no leave.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import tfconvert

MIXED: Final = "--mixed"


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to quantize."""

    name: str  # Its name on the command line.
    quantize: str = ""  # Our name of it; empty for none.
    io: str = "float32"  # Element type of float inputs and outputs.
    # Whether it takes samples; a model that was trained with quantization has its ranges already.
    is_calibrated: bool = False

    @property
    def is_static(self) -> bool:
        """Whether activations are integers, too."""
        return self.quantize in ("int8", "int16")


# The modes by name. `-io`: inputs and outputs are quantized, too.
MODES: Final[dict[str, Mode]] = {
    mode.name: mode
    for mode in (
        Mode("float"),
        Mode("dynamic", "dynamic"),
        Mode("float16", "float16"),
        Mode("int8", "int8", is_calibrated=True),
        Mode("int16", "int16", is_calibrated=True),
        Mode("qat", "int8"),
        Mode("int8-io", "int8", "int8", is_calibrated=True),
        Mode("uint8-io", "int8", "uint8", is_calibrated=True),
        Mode("int16-io", "int16", "int16", is_calibrated=True),
        Mode("qat-io", "int8", "int8"),
    )
}


def samples(calibration: Path) -> Iterator[dict[str, np.ndarray]]:
    """Yields the samples of a file, each as a batch of one."""
    with np.load(calibration) as stored:
        arrays = {name: stored[name] for name in stored.files}
    for index in range(min(map(len, arrays.values()))):
        yield {name: array[index : index + 1] for name, array in arrays.items()}


def our_settings(mode: Mode, calibration: Path) -> tfconvert.Quantize | None:
    """Returns how to quantize, as `tfconvert.convert` takes it."""
    import tfconvert

    if not mode.quantize:
        return None
    settings: dict[str, Any] = {"io": mode.io} if mode.is_static else {}
    if mode.is_calibrated:
        settings["samples"] = lambda: samples(calibration)
    return tfconvert.Quantize(mode.quantize, **settings)  # type: ignore[arg-type]  # a text, known to be a mode


def convert(saved_model: Path, calibration: Path, mode: Mode, target: Path) -> None:
    """Converts by us."""
    import tfconvert

    tfconvert.convert(saved_model, quantize=our_settings(mode, calibration)).save(target)


def convert_officially(saved_model: Path, calibration: Path, mode: Mode, target: Path, is_mixed: bool) -> None:
    """Converts by the official converter."""
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_saved_model(str(saved_model))
    if mode.quantize:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if mode.quantize == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if mode.is_calibrated:
        kinds = tf.lite.OpsSet
        int16 = kinds.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        integers = int16 if mode.quantize == "int16" else kinds.TFLITE_BUILTINS_INT8
        converter.target_spec.supported_ops = [integers, kinds.TFLITE_BUILTINS] if is_mixed else [integers]
        converter.representative_dataset = lambda: (list(each.values()) for each in samples(calibration))
    if mode.io != "float32":
        converter.inference_input_type = converter.inference_output_type = getattr(tf, mode.io)
    target.write_bytes(converter.convert())


def main() -> None:
    """Runs the command line."""
    who, saved_model, calibration, mode, target, *rest = sys.argv[1:]
    if who == "ours":
        convert(Path(saved_model), Path(calibration), MODES[mode], Path(target))
    else:
        convert_officially(Path(saved_model), Path(calibration), MODES[mode], Path(target), MIXED in rest)


if __name__ == "__main__":
    main()
