"""The flags of the official command `tflite_convert`, of both generations, and what each becomes.

The command's front page needs this table: it imports nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Kind = Literal["value", "switch", "truth"]
"""Whether a flag has a value, has none, or may have `true` or `false`."""

Effect = Literal["maps", "no effect", "refused"]


class Flag(NamedTuple):
    """A flag.

    Attributes:
        effect: Whether it becomes something, has no effect, or is refused.
        text: What it becomes, or why it does not.
        kind: What follows it.
    """

    effect: Effect
    text: str
    kind: Kind = "value"


_ONE = "there is one converter"
_PRINT = "`tfconvert opt` prints the model before and after any pass"

FLAGS: Mapping[str, Flag] = {
    "output_file": Flag("maps", "`-o`"),
    "saved_model_dir": Flag("maps", "the model"),
    "keras_model_file": Flag("maps", "the model"),
    "graph_def_file": Flag("maps", "the model"),
    "saved_model_tag_set": Flag("maps", "`--tags`"),
    "saved_model_signature_key": Flag("maps", "`--signature`, several with commas"),
    "input_arrays": Flag("maps", "`--input`"),
    "output_arrays": Flag("maps", "`--output`"),
    "input_shapes": Flag("maps", "`--input-shape`, for the inputs that `--input_arrays` names, in their order"),
    "allow_custom_ops": Flag("maps", "`--allow-custom-ops`", "truth"),
    "post_training_quantize": Flag("maps", "`--quantize dynamic`", "switch"),
    "quantize_weights": Flag("maps", "`--quantize dynamic`", "switch"),
    "quantize_to_float16": Flag("maps", "`--quantize float16`, with `--post_training_quantize`", "switch"),
    "inference_type": Flag("maps", "`INT8`, `UINT8`, `QUANTIZED_UINT8`: `--quantize int8 --io`"),
    "inference_input_type": Flag("maps", "the first of the pair `--io`"),
    "target_ops": Flag(
        "maps", "`SELECT_TF_OPS`: `--allow-flex`; integers only need `--quantize int8 --strict` and `--samples`"
    ),
    "output_format": Flag("maps", "only `TFLITE` is written"),
    "enable_v1_converter": Flag("no effect", _ONE, "switch"),
    "experimental_new_converter": Flag("no effect", _ONE, "truth"),
    "experimental_new_quantizer": Flag("no effect", _ONE, "truth"),
    "custom_opdefs": Flag("no effect", "ops need no definition"),
    "experimental_select_user_tf_ops": Flag("maps", "`--flex-op`, if `target_ops` has `SELECT_TF_OPS`"),
    "drop_control_dependency": Flag(
        "no effect", "ops that change variables keep their order; others need none", "switch"
    ),
    "reorder_across_fake_quant": Flag("no effect", "numbers are rounded where the model rounds them", "switch"),
    "change_concat_input_ranges": Flag("no effect", "quantizing sees to the scales of what is concatenated"),
    "dump_graphviz_dir": Flag("no effect", _PRINT),
    "dump_graphviz_video": Flag("no effect", _PRINT, "switch"),
    "conversion_summary_dir": Flag("no effect", _PRINT),
    "std_dev_values": Flag("maps", "with `mean_values`, `--input-stats` for the inputs that `input_arrays` names"),
    "mean_values": Flag("maps", "see `std_dev_values`"),
    "default_ranges_min": Flag("maps", "with `default_ranges_max`, `--default-range`"),
    "default_ranges_max": Flag("maps", "see `default_ranges_min`"),
    "input_file": Flag("refused", "it was renamed: use `--graph_def_file`, or pass the model alone"),
    "savedmodel_directory": Flag("refused", "it was renamed: use `--saved_model_dir`, or pass the model alone"),
    "std_value": Flag("refused", "it was renamed: use `--std_dev_values`"),
    "mean_value": Flag("refused", "it was renamed: use `--mean_values`"),
    "batch_size": Flag("refused", "name the shape: `--input-shape x=1,224,224,3`"),
}
"""The flags by name, without the dashes."""
