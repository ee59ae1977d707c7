"""Every attribute of the official converter, its default value, and what it does here.

One table: it decides what `convert()` does with an attribute, what the tests check, and what the documentation says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

from tfconvert.compat.enumerators import OpsSet
from tfconvert.compat.quantization import FLEX, SAMPLES, names, quantize, supported_ops
from tfconvert.compat.row import Mapped, OfficialAttribute, Values, refusal
from tfconvert.schema.diagnostics import NOTE, ConversionError, Diagnostic

TARGET = "target_spec."
"""The prefix of the attributes of the target in the names of values."""

EXCLUDED = "exclude_conversion_metadata"
_USERS = "target_spec.experimental_select_user_tf_ops"
_ALL = "_experimental_allow_all_select_tf_ops"

_BUILTINS_TOO = Diagnostic(
    "builtins-too",
    "target_spec.supported_ops has SELECT_TF_OPS only; builtins are written nevertheless where there are any: every "
    "runtime has them, and they are faster",
    severity=NOTE,
)


def _flex(values: Values) -> Mapped:
    """Maps what decides about ops that TensorFlow's own kernels compute.

    Raises:
        ConversionError: A value isn't known (`wrong-option`).
    """
    ops = supported_ops(values)
    further = sorted(names(_USERS, values[_USERS]))
    if FLEX not in ops:
        return Mapped()
    arguments: dict[str, Any] = {"allow_flex": True}
    if values[_ALL]:
        arguments["flex_ops"] = ("*",)
    elif further:
        arguments["flex_ops"] = tuple(further)
    return Mapped(arguments, (_BUILTINS_TOO,) if ops == {FLEX} else ())


def _custom_ops(values: Values) -> Mapped:
    return Mapped({"allow_custom_ops": bool(values["allow_custom_ops"])})


def _backends(values: Values) -> Mapped:
    name = f"{TARGET}experimental_supported_backends"
    strange = sorted(names(name, values[name]) - {"CPU", "GPU"})
    if strange:
        raise refusal(name, f"nothing is known of the backend {', '.join(strange)}", "choose from CPU, GPU")
    return Mapped()


def _output_format(values: Values) -> Mapped:
    # The official constants of the formats are the numbers 2 and 3.
    if values["output_format"] in (None, 2, "TFLITE"):
        return Mapped()
    if values["output_format"] in (3, "GRAPHVIZ_DOT"):
        text = f"output_format has no effect: only .tflite files are written; {_PRINT}"
        return Mapped(notes=(Diagnostic("no-effect", text, severity=NOTE),))
    raise refusal("output_format", f"{values['output_format']!r} is not known", "leave it out")


def _maps(name: str, default: Any, text: str) -> OfficialAttribute:
    return OfficialAttribute(name, default, "maps", text, maps=quantize)


def _ignored(name: str, default: Any, text: str) -> OfficialAttribute:
    return OfficialAttribute(name, default, "no effect", text)


def _refused(name: str, default: Any, text: str, hint: str) -> OfficialAttribute:
    return OfficialAttribute(name, default, "refused", text, hint)


_SAMPLES = "optimizations, representative_dataset and the types of inputs and outputs say how to quantize"
_CHOICE = "which operators are written is chosen for speed, and the results are the same"
_ONE = "there is one converter"
_PRINT = "`tfconvert opt` prints the model before and after any pass"
_METADATA = "the report tells what operators were made from; the file's metadata tells how it was made, and no more"

TARGET_ROWS: Sequence[OfficialAttribute] = (
    _maps(
        "supported_ops",
        {OpsSet.TFLITE_BUILTINS},
        'with `TFLITE_BUILTINS_INT8` or the set of 16-bit activations: `Quantize(mode="int8")` or `"int16"`, and '
        "`strict` if no set of floats is beside it; with `SELECT_TF_OPS`: `allow_flex`, for ops without a builtin,"
        " whether `TFLITE_BUILTINS` is beside it or not",
    ),
    _maps(
        "supported_types", set(), '`float16`: `Quantize(mode="float16")`; `int8` alone: as `TFLITE_BUILTINS_INT8` alone'
    ),
    OfficialAttribute(
        "experimental_select_user_tf_ops",
        set(),
        "maps",
        "`flex_ops`, if `supported_ops` has `SELECT_TF_OPS`",
        maps=_flex,
    ),
    OfficialAttribute(
        "experimental_supported_backends",
        None,
        "maps",
        "`GPU`: the report has a warning for each operator that the GPU delegate doesn't take; `CPU` takes all",
        maps=_backends,
    ),
    _ignored("_experimental_custom_op_registerers", [], "calibration runs LiteRT's own operators"),
    _maps(
        "_experimental_supported_accumulation_type", None, '`float16`: `Quantize("float16", accumulation="float16")`'
    ),
)
"""The attributes of `TargetSpec`."""

SHARED_ROWS: Sequence[OfficialAttribute] = (
    _maps(
        "optimizations",
        set(),
        '`DEFAULT` and its old names: `Quantize(mode="dynamic")`, or what the attributes below say; '
        "`EXPERIMENTAL_SPARSITY`: matrices of dense layers that are mostly zero are stored without their zeros, in "
        "the forms that LiteRT has kernels for",
    ),
    _maps(SAMPLES, None, '`Quantize(mode="int8", samples=..., slow_integers=True)`, or mode `"int16"`'),
    OfficialAttribute("allow_custom_ops", False, "maps", "`allow_custom_ops`", maps=_custom_ops),
    _maps("_experimental_disable_per_channel", False, "`Quantize(per_channel=False)`"),
    _maps(
        "_experimental_disable_per_channel_quantization_for_dense_layers", False, '`Quantize(per_channel="not-dense")`'
    ),
    _maps(
        "_experimental_full_integer_quantization_bias_type",
        None,
        '`Quantize(bias=...)`: the mode `"int8"` has `int32`, the mode `"int16"` has `int64`, or `int32` if '
        "this says so; others are refused",
    ),
    OfficialAttribute(
        EXCLUDED, False, "maps", "the file gets no entry `CONVERSION_METADATA`; the one of the runtime stays"
    ),
    _ignored("serialize_debug_metadata", False, _METADATA),
    _ignored("model_origin_framework", "UNSET", _METADATA),
    _ignored("saved_model_dir", None, "`from_saved_model` takes the directory"),
    _ignored("unfold_batchmatmul", False, _CHOICE),
    _ignored("_experimental_disable_batchmatmul_unfold", False, _CHOICE),
    _ignored("_experimental_disable_fuse_mul_and_fc", False, _CHOICE),
    _ignored("_experimental_unfold_large_splat_constant", False, _CHOICE),
    _ignored("_experimental_unsafe_fuse_dynamic_shaped_broadcast", False, _CHOICE),
    _ignored("_experimental_enable_dynamic_update_slice", False, _CHOICE),
    _ignored("_experimental_enable_composite_direct_lowering", True, _CHOICE),
    _ignored("_experimental_fold_fp16_casts_into_fully_connected", False, _CHOICE),
    _ignored("_experimental_fold_fp16_resource_casts", False, _CHOICE),
    _ignored("_experimental_unsafe_single_batch_rank_reduction", False, _CHOICE),
    _ignored("_experimental_guarantee_all_funcs_one_use", False, "functions are inlined where they are called"),
    _ignored("canonicalizing_inf_as_min_max_float", True, "infinities stay as the model has them"),
    _ignored("legalize_custom_tensor_list_ops", False, "lists of tensors become tensors"),
    _ignored(
        "_experimental_lower_tensor_list_ops", True, "lists of tensors become tensors; recurrent layers need no flag"
    ),
    _ignored(
        "_experimental_default_to_single_batch_in_tensor_list_ops",
        False,
        "lists of tensors become tensors, whatever the batch",
    ),
    _ignored("experimental_new_converter", True, _ONE),
    _maps(
        "experimental_new_quantizer",
        True,
        "`False`: `Quantize(float_ends=True)`, since the old quantizer left such inputs and outputs floats",
    ),
    _ignored("experimental_new_dynamic_range_quantizer", True, _ONE),
    _ignored("experimental_enable_resource_variables", True, "variables that the model changes are always kept"),
    OfficialAttribute(
        "_experimental_allow_all_select_tf_ops",
        False,
        "maps",
        '`flex_ops=["*"]`, if `supported_ops` has `SELECT_TF_OPS`',
        maps=_flex,
    ),
    _ignored("_experimental_sparsify_model", False, "`optimizations` has `EXPERIMENTAL_SPARSITY` for that"),
    _ignored("_experimental_use_buffer_offset", False, "buffers go behind the tables if the file is over 2 GB"),
    *(
        _ignored(name, None, _PRINT)
        for name in (
            "ir_dump_dir",
            "ir_dump_pass_regex",
            "ir_dump_func_regex",
            "print_ir_before",
            "print_ir_after",
            "print_ir_module_scope",
            "elide_elementsattrs_if_larger",
            "debug_dir",
            "enable_debug",
        )
    ),
    _ignored("enable_timing", None, "the report has the time of every stage"),
    _refused("experimental_use_stablehlo_quantizer", False, "there is no such quantizer here", _SAMPLES),
    _refused("experimental_stablehlo_quantizer_config", None, "there is no such quantizer here", _SAMPLES),
    _refused("_experimental_quantization_options", None, "there is no such quantizer here", _SAMPLES),
    _refused("_experimental_tf_quantization_mode", None, "there is no such quantizer here", _SAMPLES),
    _maps(
        "_experimental_qdq_conversion_mode",
        None,
        '`STATIC`: `Quantize("int8", trained_only=True, io="int8")`; `DYNAMIC`: `Quantize("dynamic", '
        "trained_only=True)`; nothing else is quantized",
    ),
    _maps(
        "_experimental_strict_qdq",
        False,
        '`Quantize("int8", trained_only=True)`: what is between fake quantization, as `int8` rather than `uint8`',
    ),
    _refused(
        "_experimental_calibrate_only",
        False,
        "no file that is only calibrated is written",
        "`tfconvert.Quantize(calibration=...)` keeps the ranges in a file",
    ),
    _ignored("_experimental_low_bit_qat", False, "weights always have the scale and range that they were trained for"),
    _refused(
        "_experimental_reduce_type_precision",
        False,
        "integers aren't narrowed by what they happen to be",
        "`tfconvert.Quantize(weights=4)` stores weights in 4 bits",
    ),
    _maps("_experimental_variable_quantization", False, '`Quantize(variables="integers")`, and `"float32"` without it'),
    _refused(
        "_experimental_preserve_assert_op",
        False,
        "LiteRT has no operator for asserts",
        "leave it out; the report names the asserts that were left out",
    ),
)
"""The attributes that both generations of the class have."""

ROWS: Sequence[OfficialAttribute] = (
    *SHARED_ROWS,
    _ignored("experimental_lower_to_saved_model", True, _ONE),
    _maps("inference_input_type", "float32", "the first of the pair `Quantize(io=(..., ...))`"),
    _maps("inference_output_type", "float32", "the second of the pair `Quantize(io=(..., ...))`"),
)
"""The attributes of `TFLiteConverter`, beside `target_spec`."""

V1_ROWS: Sequence[OfficialAttribute] = (
    *SHARED_ROWS,
    _maps("inference_type", "float32", 'an integer type: `Quantize(mode="int8", io=...)`'),
    _maps("inference_input_type", None, "`Quantize(io=...)`, by default as `inference_type`"),
    _maps("inference_output_type", None, "`Quantize(io=...)`, by default as `inference_type`"),
    OfficialAttribute("post_training_quantize", False, "maps", "`optimizations`: none, or `[Optimize.DEFAULT]`"),
    OfficialAttribute("target_ops", {OpsSet.TFLITE_BUILTINS}, "maps", "`target_spec.supported_ops`"),
    OfficialAttribute("output_format", 2, "maps", "`.tflite` files are written, whatever it is", maps=_output_format),
    OfficialAttribute(
        "quantized_input_stats",
        {},
        "maps",
        "integer types, frozen graphs and sessions: inputs get these ranges by fake quantization; elsewhere it is "
        "refused",
    ),
    _maps(
        "default_ranges_stats",
        None,
        "`Quantize(default_range=...)`: results are wrong, and a warning says so; samples tell right ranges",
    ),
    _ignored("drop_control_dependency", True, "ops that change variables keep their order; others need none"),
    _ignored("reorder_across_fake_quant", False, "numbers are rounded where the model rounds them"),
    _ignored("change_concat_input_ranges", False, "LiteRT's kernel takes parts of one scale, which quantizing sees to"),
    *(
        _ignored(name, default, _PRINT)
        for name, default in (
            ("dump_graphviz_dir", None),
            ("dump_graphviz_video", False),
            ("conversion_summary_dir", None),
        )
    ),
)
"""The attributes of `compat.v1.TFLiteConverter`, beside `target_spec`."""


def origin(values: Values, made: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns fields of the metadata, `None` if the file is to have none.

    Args:
        values: The values of all attributes.
        made: Fields that the model's kind decides.
    """
    if values[EXCLUDED]:
        return None
    return {**made, "force_select_tf_ops": supported_ops(values) == {FLEX}}


def targeted(rows: Iterable[OfficialAttribute]) -> list[OfficialAttribute]:
    """Returns the attributes of a converter and those of its target, which have the prefix."""
    return [*rows, *(row._replace(name=f"{TARGET}{row.name}") for row in TARGET_ROWS)]


def mapped(rows: Sequence[OfficialAttribute], values: Values) -> Mapped:
    """Returns what attributes mean for `convert`.

    Raises:
        ConversionError: Some can't be honoured (`wrong-option`); all of them are named.
    """
    _check_truth(rows, values)
    arguments: dict[str, Any] = {}
    notes: list[Diagnostic] = []
    problems: list[Diagnostic] = []
    for row in rows:
        value = values[row.name]
        if row.effect == "refused" and _is_given(value):
            problems += refusal(row.name, row.text, row.hint).diagnostics
        elif row.effect == "no effect" and _is_given(value) != _is_given(row.default):
            notes.append(Diagnostic("no-effect", f"{row.name} has no effect: {row.text}", severity=NOTE))
    for maps in dict.fromkeys(row.maps for row in rows if row.maps is not None):
        try:
            result = maps(values)
        except ConversionError as problem:
            problems += problem.diagnostics
        else:
            arguments |= result.arguments
            notes += result.notes
    if problems:
        raise ConversionError(dict.fromkeys(problems))
    return Mapped(arguments, tuple(notes))


def _check_truth(rows: Sequence[OfficialAttribute], values: Values) -> None:
    """Checks that values are true or false, as an array isn't; samples may be one."""
    for row in rows:
        value = values[row.name]
        try:
            bool(None if row.name == SAMPLES else value)
        except (TypeError, ValueError):
            raise refusal(row.name, f"{value!r} has several values", "pass a single value") from None


def _is_given(value: Any) -> bool:
    """Returns whether a value is more than a way to say no."""
    return value not in (None, False, "UNSET") and not (isinstance(value, Sized) and not len(value))
