"""The flags of the official command `tflite_convert`, of both generations, and what each becomes.

The command's front page needs this table: it imports nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Kind = Literal["value", "switch", "truth"]
"""Whether a flag has a value, has none, or may have `true` or `false`."""

Effect = Literal["maps", "no effect", "refused"]


class OfficialFlag(NamedTuple):
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

FLAGS: Mapping[str, OfficialFlag] = {
    "output_file": OfficialFlag("maps", "`-o`"),
    "saved_model_dir": OfficialFlag("maps", "the model"),
    "keras_model_file": OfficialFlag("maps", "the model"),
    "graph_def_file": OfficialFlag("maps", "the model"),
    "saved_model_tag_set": OfficialFlag("maps", "`--tags`"),
    "saved_model_signature_key": OfficialFlag("maps", "`--signature`, several with commas"),
    "input_arrays": OfficialFlag("maps", "`--input`"),
    "output_arrays": OfficialFlag("maps", "`--output`"),
    "input_shapes": OfficialFlag("maps", "`--input-shape`, for the inputs that `--input_arrays` names, in their order"),
    "allow_custom_ops": OfficialFlag("maps", "`--allow-custom-ops`", "truth"),
    "post_training_quantize": OfficialFlag("maps", "`--quantize dynamic`", "switch"),
    "quantize_weights": OfficialFlag("maps", "`--quantize dynamic`", "switch"),
    "quantize_to_float16": OfficialFlag("maps", "`--quantize float16`, with `--post_training_quantize`", "switch"),
    "inference_type": OfficialFlag("maps", "`INT8`, `UINT8`, `QUANTIZED_UINT8`: `--quantize int8 --io`"),
    "inference_input_type": OfficialFlag("maps", "the first of the pair `--io`"),
    "target_ops": OfficialFlag(
        "maps", "`SELECT_TF_OPS`: `--allow-flex`; integers only need `--quantize int8 --strict` and `--samples`"
    ),
    "output_format": OfficialFlag("maps", "only `TFLITE` is written"),
    "enable_v1_converter": OfficialFlag("no effect", _ONE, "switch"),
    "experimental_new_converter": OfficialFlag("no effect", _ONE, "truth"),
    "experimental_new_quantizer": OfficialFlag("no effect", _ONE, "truth"),
    "custom_opdefs": OfficialFlag("no effect", "ops need no definition"),
    "experimental_select_user_tf_ops": OfficialFlag("maps", "`--flex-op`, if `target_ops` has `SELECT_TF_OPS`"),
    "drop_control_dependency": OfficialFlag(
        "no effect", "ops that change variables keep their order; others need none", "switch"
    ),
    "reorder_across_fake_quant": OfficialFlag("no effect", "numbers are rounded where the model rounds them", "switch"),
    "change_concat_input_ranges": OfficialFlag("no effect", "quantizing sees to the scales of what is concatenated"),
    "dump_graphviz_dir": OfficialFlag("no effect", _PRINT),
    "dump_graphviz_video": OfficialFlag("no effect", _PRINT, "switch"),
    "conversion_summary_dir": OfficialFlag("no effect", _PRINT),
    "std_dev_values": OfficialFlag(
        "maps", "with `mean_values`, `--input-stats` for the inputs that `input_arrays` names"
    ),
    "mean_values": OfficialFlag("maps", "see `std_dev_values`"),
    "default_ranges_min": OfficialFlag("maps", "with `default_ranges_max`, `--default-range`"),
    "default_ranges_max": OfficialFlag("maps", "see `default_ranges_min`"),
    "input_file": OfficialFlag("refused", "it was renamed: use `--graph_def_file`, or pass the model alone"),
    "savedmodel_directory": OfficialFlag("refused", "it was renamed: use `--saved_model_dir`, or pass the model alone"),
    "std_value": OfficialFlag("refused", "it was renamed: use `--std_dev_values`"),
    "mean_value": OfficialFlag("refused", "it was renamed: use `--mean_values`"),
    "batch_size": OfficialFlag("refused", "name the shape: `--input-shape x=1,224,224,3`"),
}
"""The flags by name, without the dashes."""
