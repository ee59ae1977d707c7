"""Every row of the table does what it says, and the table has every attribute of the official converter."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tfconvert.compat import attributes, table, v1
from tfconvert.compat.attributes import ROWS, TARGET_ROWS, V1_ROWS
from tfconvert.compat.row import OfficialAttribute
from tfconvert.compat.table import NAMES
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.quantization import Quantize

DEFAULT = [tfconvert.Optimize.DEFAULT]
INT8_OPS = [tfconvert.OpsSet.TFLITE_BUILTINS_INT8]
INT16_OPS = [tfconvert.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]
FLOAT_OPS = [tfconvert.OpsSet.TFLITE_BUILTINS]
SPARSE = [tfconvert.Optimize.EXPERIMENTAL_SPARSITY]
OLD = {"_experimental_disable_batchmatmul_unfold", "post_training_quantize", "target_ops"}
"""Attributes that the official converter had once, or as a property."""

NEW = {
    "_experimental_fold_fp16_casts_into_fully_connected",
    "_experimental_fold_fp16_resource_casts",
    "_experimental_unsafe_single_batch_rank_reduction",
    "debug_dir",
    "enable_debug",
}
"""Attributes of releases after the one that is installed: TensorFlow 2.23."""


def _samples() -> list[Any]:
    return [[np.zeros((1, 8), np.float32)]]


def _mapped(rows: Sequence[OfficialAttribute] = ROWS, **values: Any) -> tuple[dict[str, Any], list[str]]:
    """Returns the arguments that some values map to, and the codes of the notes."""
    every = attributes.targeted(rows)
    names = {row.name.removeprefix(attributes.TARGET): row.name for row in every}
    given = {names[name]: value for name, value in values.items()}
    result = attributes.mapped(every, {row.name: row.default for row in every} | given)
    return {key: value for key, value in result.arguments.items() if value}, [note.code for note in result.notes]


def _refused(rows: Sequence[OfficialAttribute] = ROWS, **values: Any) -> str:
    with pytest.raises(ConversionError) as caught:
        _mapped(rows, **values)
    assert {problem.code for problem in caught.value.diagnostics} == {"wrong-option"}
    assert all(problem.hint for problem in caught.value.diagnostics)
    return str(caught.value)


@pytest.mark.parametrize("rows", [ROWS, V1_ROWS])
def test_defaults_say_nothing(rows: Sequence[OfficialAttribute]) -> None:
    assert _mapped(rows) == ({}, [])


def _others(effect: str) -> list[Any]:
    return [
        pytest.param(rows, row, id=f"{version}-{row.name}")
        for version, rows in (("v2", ROWS), ("v1", V1_ROWS))
        for row in attributes.targeted(rows)
        if row.effect == effect
    ]


def _other(default: Any) -> Any:
    """Returns a value that says the opposite of a default value."""
    return not default if isinstance(default, bool) else "something"


@pytest.mark.parametrize(("rows", "row"), _others("no effect"))
def test_attributes_without_effect_give_a_note(rows: Sequence[OfficialAttribute], row: OfficialAttribute) -> None:
    name = row.name.removeprefix(attributes.TARGET)
    assert _mapped(rows, **{name: _other(row.default)}) == ({}, ["no-effect"])


@pytest.mark.parametrize(("rows", "row"), _others("refused"))
def test_refused_attributes_say_why(rows: Sequence[OfficialAttribute], row: OfficialAttribute) -> None:
    assert not row.default
    message = _refused(rows, **{row.name: _other(row.default)})
    assert row.name in message
    assert row.text in message


def test_everything_that_is_refused_is_told_at_once() -> None:
    message = _refused(
        _experimental_reduce_type_precision=True, inference_input_type="int8", _experimental_calibrate_only=True
    )
    for name in ("_experimental_reduce_type_precision", "inference_input_type", "_experimental_calibrate_only"):
        assert name in message


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"optimizations": DEFAULT}, Quantize("dynamic")),
        ({"optimizations": [tfconvert.Optimize.OPTIMIZE_FOR_SIZE]}, Quantize("dynamic")),
        ({"optimizations": {tfconvert.Optimize.OPTIMIZE_FOR_LATENCY}}, Quantize("dynamic")),
        ({"optimizations": ["DEFAULT"]}, Quantize("dynamic")),
        ({"optimizations": [*DEFAULT, *SPARSE]}, Quantize("dynamic")),
        ({"optimizations": DEFAULT, "_experimental_disable_per_channel": True}, Quantize("dynamic", per_channel=False)),
        (
            {"optimizations": DEFAULT, "_experimental_disable_per_channel_quantization_for_dense_layers": True},
            Quantize("dynamic", per_channel="not-dense"),
        ),
        ({"optimizations": DEFAULT, "supported_types": [np.float16]}, Quantize("float16")),
        ({"optimizations": DEFAULT, "supported_types": ["float32"]}, None),
        ({"optimizations": DEFAULT, "supported_types": [np.float16, np.int8]}, Quantize("dynamic")),
        # Models that were trained for integers need no samples; others are refused later.
        (
            {"optimizations": DEFAULT, "inference_input_type": np.int8, "inference_output_type": np.int8},
            Quantize("int8", io="int8", slow_integers=True, variables="float32"),
        ),
        (
            {"optimizations": DEFAULT, "supported_ops": INT8_OPS},
            Quantize("int8", strict=True, slow_integers=True, variables="float32"),
        ),
        (
            {"optimizations": DEFAULT, "supported_types": [np.int8]},
            Quantize("int8", strict=True, slow_integers=True, variables="float32"),
        ),
        ({"optimizations": DEFAULT, "supported_ops": "SELECT_TF_OPS"}, Quantize("dynamic")),
        ({}, None),
        ({"supported_ops": INT8_OPS}, None),
    ],
)
def test_quantization_without_samples(values: dict[str, Any], expected: Quantize | None) -> None:
    assert _mapped(**values)[0].get("quantize") == expected


@pytest.mark.parametrize(
    ("values", "mode", "io", "is_strict"),
    [
        ({}, "int8", "float32", False),
        ({"supported_ops": INT8_OPS}, "int8", "float32", True),
        ({"supported_ops": INT8_OPS + FLOAT_OPS}, "int8", "float32", False),
        ({"supported_types": ["int8"]}, "int8", "float32", True),
        ({"supported_ops": INT16_OPS}, "int16", "float32", True),
        ({"supported_ops": INT16_OPS + FLOAT_OPS}, "int16", "float32", False),
        ({"supported_ops": ["SELECT_TF_OPS", "TFLITE_BUILTINS_INT8"]}, "int8", "float32", False),
        ({"inference_input_type": "uint8", "inference_output_type": np.uint8}, "int8", "uint8", False),
        (
            {"supported_ops": INT16_OPS, "inference_input_type": np.dtype("int16"), "inference_output_type": "int16"},
            "int16",
            "int16",
            True,
        ),
        ({"inference_input_type": "uint8"}, "int8", ("uint8", "float32"), False),
        ({"inference_output_type": np.int8}, "int8", ("float32", "int8"), False),
        ({"inference_input_type": "uint8", "inference_output_type": "int8"}, "int8", ("uint8", "int8"), False),
        ({"_experimental_full_integer_quantization_bias_type": "int32"}, "int8", "float32", False),
        ({"supported_types": ["float16"]}, "float16", "float32", False),
    ],
)
def test_quantization_with_samples(values: dict[str, Any], mode: str, io: str, is_strict: bool) -> None:
    setting = _mapped(optimizations=DEFAULT, representative_dataset=_samples, **values)[0]["quantize"]
    assert (setting.mode, setting.io, setting.strict) == (mode, io, is_strict)
    assert (setting.samples is None) is (mode == "float16")
    setting.check()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"optimizations": ["FASTER"]}, "FASTER can't be made"),
        ({"optimizations": [7]}, "it can't have 7"),
        ({"supported_ops": ["EXPERIMENTAL_STABLEHLO_OPS"]}, "EXPERIMENTAL_STABLEHLO_OPS can't be made"),
        ({"supported_types": ["bfloat16"]}, "bfloat16 can't be made"),
        ({"inference_input_type": 7}, "7 can't be made"),
        ({"inference_input_type": "uint8"}, "inference_input_type: it can't be uint8: nothing is quantized"),
        ({"inference_output_type": "uint8"}, "inference_output_type: it can't be uint8: nothing is quantized"),
        ({"inference_input_type": "int8", "inference_output_type": "int8"}, "nothing is quantized"),
        (
            {
                "optimizations": DEFAULT,
                "representative_dataset": _samples,
                "supported_ops": INT16_OPS,
                "_experimental_full_integer_quantization_bias_type": np.float32,
            },
            "Expected bias type to be int64 or int32, not float32",
        ),
        (
            {
                "optimizations": DEFAULT,
                "representative_dataset": _samples,
                "_experimental_full_integer_quantization_bias_type": np.int64,
            },
            "Expected bias type to be int32, not int64",
        ),
        (
            {"optimizations": DEFAULT, "supported_types": [np.int16]},
            "int16 goes with the operators for 16-bit activations",
        ),
        (
            {
                "optimizations": DEFAULT,
                "supported_types": [np.float16],
                "_experimental_supported_accumulation_type": np.int8,
            },
            "it can't be int8",
        ),
    ],
)
def test_what_can_not_be_made_is_refused(values: dict[str, Any], expected: str) -> None:
    assert expected in _refused(**values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"supported_ops": ["TFLITE_BUILTINS", "SELECT_TF_OPS"]}, []),
        ({"supported_ops": ["SELECT_TF_OPS"]}, ["builtins-too"]),
        ({"representative_dataset": _samples}, ["not-quantized"]),
        ({"supported_ops": INT8_OPS}, ["not-quantized"]),
    ],
)
def test_what_may_surprise_is_noted(values: dict[str, Any], expected: list[str]) -> None:
    assert _mapped(**values)[1] == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {}),
        ({"experimental_select_user_tf_ops": ["Mine"]}, {}),
        ({"supported_ops": ["SELECT_TF_OPS", "TFLITE_BUILTINS"]}, {"allow_flex": True}),
        (
            {"supported_ops": {tfconvert.OpsSet.SELECT_TF_OPS}, "experimental_select_user_tf_ops": ["Mine", "Also"]},
            {"allow_flex": True, "flex_ops": ("Also", "Mine")},
        ),
        (
            {"supported_ops": ["SELECT_TF_OPS"], "_experimental_allow_all_select_tf_ops": True},
            {"allow_flex": True, "flex_ops": ("*",)},
        ),
    ],
)
def test_flex_ops(values: dict[str, Any], expected: dict[str, Any]) -> None:
    assert _mapped(**values)[0] == expected


def test_a_mistake_is_told_once() -> None:
    assert _refused(supported_ops=["NONE", "SELECT_TF_OPS"]).count("NONE can't be made") == 1


def test_sparse_weights() -> None:
    assert _mapped(optimizations=SPARSE) == ({"sparse_weights": True}, [])
    wanted = {"sparse_weights": True, "quantize": Quantize("dynamic")}
    assert _mapped(optimizations=[*DEFAULT, *SPARSE])[0] == wanted


def test_custom_ops() -> None:
    assert _mapped(allow_custom_ops=True) == ({"allow_custom_ops": True}, [])


def test_the_first_generation_s_own() -> None:
    assert _mapped(V1_ROWS, inference_type=np.int8)[0] == {
        "quantize": Quantize("int8", io="int8", slow_integers=True, variables="float32")
    }
    mixed = {"inference_type": "int8", "inference_input_type": "float32", "inference_output_type": "float32"}
    assert _mapped(V1_ROWS, supported_ops=INT8_OPS, **mixed)[0] == {
        "quantize": Quantize("int8", strict=True, slow_integers=True, variables="float32")
    }
    assert _mapped(V1_ROWS, output_format="TFLITE") == ({}, [])
    assert _mapped(V1_ROWS, output_format=3) == ({}, ["no-effect"])
    assert "'TEXT' is not known" in _refused(V1_ROWS, output_format="TEXT")
    made_up = _mapped(V1_ROWS, inference_type="uint8", default_ranges_stats=(0, 6))[0]
    assert made_up == {
        "quantize": Quantize("int8", io="uint8", slow_integers=True, variables="float32", default_range=(0, 6))
    }
    assert _mapped(V1_ROWS, optimizations=DEFAULT, default_ranges_stats=(0, 6)) == (
        {"quantize": Quantize("dynamic")},
        ["no-effect"],
    )


def test_types_of_tensorflow_are_known(tf: ModuleType) -> None:
    values = {"inference_input_type": tf.uint8, "inference_output_type": tf.uint8}
    assert _mapped(optimizations=DEFAULT, **values)[0]["quantize"].io == "uint8"
    wanted = [tf.lite.Optimize.DEFAULT]
    assert _mapped(optimizations=wanted, supported_types=[tf.float16])[0] == {"quantize": Quantize("float16")}
    assert _mapped(optimizations=wanted, supported_ops={tf.lite.OpsSet.TFLITE_BUILTINS_INT8})[0] == {
        "quantize": Quantize("int8", strict=True, slow_integers=True, variables="float32")
    }


def test_enumerators_are_the_official_ones(tf: ModuleType) -> None:
    for ours, theirs in ((tfconvert.Optimize, tf.lite.Optimize), (tfconvert.OpsSet, tf.lite.OpsSet)):
        assert {each.name: each.value for each in ours} == {each.name: each.value for each in theirs}
        assert set(ours) == set(theirs)
        assert list(theirs) == list(ours)
    assert tfconvert.Optimize.DEFAULT != tfconvert.Optimize.OPTIMIZE_FOR_SIZE
    assert tfconvert.OpsSet.TFLITE_BUILTINS != "TFLITE_BUILTINS"


def _same(ours: Any, theirs: Any) -> bool:
    names = [
        {getattr(each, "value", each) for each in value} if isinstance(value, set) else value
        for value in (ours, theirs)
    ]
    return bool(names[0] == names[1])


def _check(rows: Sequence[OfficialAttribute], official: object) -> None:
    defaults = {row.name: row.default for row in rows if row.name not in OLD}
    defaults = {name: value for name, value in defaults.items() if name not in NEW - set(vars(official))}
    theirs = {
        name: value
        for name, value in vars(official).items()
        if name.startswith("_experimental") or not name.startswith("_")
    }
    theirs.pop("target_spec", None)
    assert set(defaults) == set(theirs)
    assert not [name for name, value in theirs.items() if not _same(defaults[name], value)]


def test_the_table_has_every_attribute_and_default(tf: ModuleType) -> None:
    function = tf.function(lambda x: x + 1.0).get_concrete_function(tf.TensorSpec([1], tf.float32))
    official = tf.lite.TFLiteConverter.from_concrete_functions([function])
    _check(ROWS, official)
    _check(TARGET_ROWS, official.target_spec)
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [1])
        with tf.compat.v1.Session() as session:
            _check(V1_ROWS, tf.compat.v1.lite.TFLiteConverter.from_session(session, [x], [x + 1.0]))


@pytest.mark.parametrize(
    "name", ["from_saved_model", "from_keras_model", "from_concrete_functions", "experimental_from_jax"]
)
def test_methods_take_what_the_official_ones_take(name: str, tf: ModuleType) -> None:
    ours, theirs = (getattr(each.TFLiteConverter, name) for each in (tfconvert, tf.lite))
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)


@pytest.mark.parametrize("name", ["from_saved_model", "from_frozen_graph", "from_keras_model_file", "from_session"])
def test_methods_of_the_first_generation(name: str, tf: ModuleType) -> None:
    ours, theirs = (getattr(each.TFLiteConverter, name) for each in (v1, tf.compat.v1.lite))
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)


def test_modules_have_the_official_names(tf: ModuleType) -> None:
    """The table of names has each, and tells the truth about it."""

    def names(module: Any) -> set[str]:
        found = {name for name in dir(module) if not name.startswith("_")}
        inner = {f"experimental.{name}" for name in dir(module.experimental) if not name.startswith("_")}
        methods = {
            f"TFLiteConverter.{name}"
            for name in dir(module.TFLiteConverter)
            if name.startswith(("from_", "experimental_from", "get_"))
        }
        return found | inner | methods

    newer = {row.name for row in NAMES if not row.is_old}
    assert newer == names(tf.lite)
    only_newer = {
        f"TFLiteConverter.{name}" for name in ("from_keras_model", "experimental_from_jax", "from_concrete_functions")
    }
    assert {row.name for row in NAMES} - only_newer == names(tf.compat.v1.lite)
    assert newer <= names(tfconvert)
    assert {row.name for row in NAMES if row.is_old and row.is_here} <= names(v1)
    assert not {row.name for row in NAMES if not row.is_here} & names(v1)


def test_the_page_has_the_table_as_it_is(root: Path) -> None:
    page = (root / "docs" / "tflite_converter.md").read_text("utf-8")
    assert table.markdown() in page
    assert table.update(page) == page, "run python -m tfconvert.compat.table docs/tflite_converter.md"
    for row in (*ROWS, *TARGET_ROWS, *V1_ROWS):
        assert f"{row.name}`" in page
