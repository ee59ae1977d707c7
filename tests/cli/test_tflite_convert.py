"""Calls of `tflite_convert` are calls of this command in other words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click
import numpy as np
import pytest

import tfconvert
from tfconvert.cli.main import main
from tfconvert.cli.tflite_convert import is_meant, rewritten
from tfconvert.compat.flags import FLAGS


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("--saved_model_dir D --output_file F", "D -o F --order official"),
        ("--saved_model_dir=D --output_file=F", "D -o F --order official"),
        ("--output_file F --keras_model_file m.h5", "m.h5 -o F --order official"),
        (
            "--saved_model_dir D --output_file F --saved_model_tag_set serve,gpu --saved_model_signature_key a,b",
            "D -o F --order official --tags serve --tags gpu --signature a --signature b",
        ),
        (
            "--graph_def_file g.pb --output_file F --input_arrays a,b --output_arrays c --input_shapes 1,2:3",
            "g.pb -o F --names official --input a --input b --output c --input-shape a=1,2 --input-shape b=3",
        ),
        (
            "--saved_model_dir D --output_file F --input_arrays a --input_shapes 1,4 --output_arrays b",
            "D -o F --order official --input a --output b --input-shape a=1,4",
        ),
        (
            "--graph_def_file g.pb --output_file F --input_arrays a --input_shapes=",
            "g.pb -o F --names official --input a --input-shape a=",
        ),
        ("--saved_model_dir D --output_file F --post_training_quantize", "D -o F --order official --quantize dynamic"),
        ("--saved_model_dir D --output_file F --quantize_weights", "D -o F --order official --quantize dynamic"),
        (
            "--saved_model_dir D --output_file F --post_training_quantize --quantize_to_float16",
            "D -o F --order official --quantize float16",
        ),
        (
            "--saved_model_dir D --output_file F --inference_type=INT8",
            "D -o F --order official --quantize int8 --io int8",
        ),
        (
            "--saved_model_dir D --output_file F --inference_type QUANTIZED_UINT8 --inference_input_type UINT8",
            "D -o F --order official --quantize int8 --io uint8",
        ),
        ("--saved_model_dir D --output_file F --inference_type float", "D -o F --order official"),
        (
            "--saved_model_dir D --output_file F --inference_type=UINT8 --post_training_quantize",
            "D -o F --order official --quantize dynamic",
        ),
        ("--saved_model_dir D --output_file F --allow_custom_ops", "D -o F --order official --allow-custom-ops"),
        (
            "--saved_model_dir D --output_file F --allow_custom_ops true -v",
            "D -o F --order official --allow-custom-ops -v",
        ),
        ("--saved_model_dir D --output_file F --allow_custom_ops=FALSE", "D -o F --order official"),
        ("--allow_custom_ops --saved_model_dir D --output_file F", "D -o F --order official --allow-custom-ops"),
        (
            "--saved_model_dir D --output_file F --target_ops TFLITE_BUILTINS,SELECT_TF_OPS",
            "D -o F --order official --allow-flex",
        ),
        (
            "--graph_def_file g.pb --output_file F --inference_type UINT8 --inference_input_type FLOAT "
            "--input_arrays a,b --mean_values 128,0 --std_dev_values 127.5,1",
            "g.pb -o F --names official --input a --input b --quantize int8 --io float32,uint8 "
            "--input-stats a=128,127.5 --input-stats b=0,1",
        ),
        (
            "--graph_def_file g.pb --inference_type INT8 --default_ranges_min=-1 --default_ranges_max 6",
            "g.pb --names official --quantize int8 --io int8 --default-range=-1,6",
        ),
        (
            "--saved_model_dir D --output_file F --target_ops SELECT_TF_OPS "
            "--experimental_select_user_tf_ops Mine,Also",
            "D -o F --order official --allow-flex --flex-op Mine --flex-op Also",
        ),
        ("--saved_model_dir D --output_file F --output_format TFLITE --enable_v1_converter", "D -o F --order official"),
        ("--saved_model_dir D --output_file m.tflite", "D -o m.tflite --order official"),
        ("--saved_model_dir D --output_file m.lite", "D -o m.lite --target litert --order official"),
        ("--saved_model_dir D -o F --verify", "D --order official -o F --verify"),
    ],
)
def test_words_of_today(given: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert is_meant(given.split())
    # Whoever wants the order wants the names, too.
    expected = expected.replace("--order official", "--order official --names official")
    assert rewritten(given.split()) == expected.split()
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == f"tfconvert: note: in today's words: tfconvert {expected}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--saved_model_dir D --graph_def_file g.pb", "both name a model"),
        ("--saved_model_dir", "--saved_model_dir needs a value"),
        ("--saved_model_dir D --allow_custom_ops=maybe", "can't be 'maybe'"),
        ("--saved_model_dir D --input_arrays a,b --input_shapes 1", "1 shapes, and --input_arrays 2 names"),
        ("--saved_model_dir D --output_format GRAPHVIZ_DOT", "only TFLITE is written"),
        ("--saved_model_dir D --target_ops TFLITE_BUILTINS_INT8", "integers need samples"),
        ("--saved_model_dir D --inference_type INT4", "choose from FLOAT, INT8"),
        ("--saved_model_dir D --inference_input_type INT8", "set both"),
        (
            "--graph_def_file g.pb --inference_type INT8 --input_arrays a,b --mean_values 0 --std_dev_values 1,1",
            "need a number each",
        ),
        ("--graph_def_file g.pb --inference_type INT8 --default_ranges_max 6", "go together"),
        *((f"--{name}=1", flag.text) for name, flag in FLAGS.items() if flag.effect == "refused"),
    ],
)
def test_what_is_refused(given: str, message: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        rewritten(given.split())
    assert message in caught.value.message


@pytest.mark.parametrize("name", [name for name, flag in FLAGS.items() if flag.effect == "no effect"])
def test_what_has_no_effect_is_noted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    value = ["something"] if FLAGS[name].kind == "value" else []
    assert rewritten([f"--{name}", *value, "--saved_model_dir", "D"]) == [
        "D",
        "--order",
        "official",
        "--names",
        "official",
    ]
    assert f"--{name} has no effect: {FLAGS[name].text}" in capsys.readouterr().err
    assert rewritten([f"--{name}", *value, "--saved_model_dir", "D", "-q"]) == [
        "D",
        "--order",
        "official",
        "--names",
        "official",
        "-q",
    ]
    assert capsys.readouterr().err == ""


def test_without_weights_floats_stay_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert rewritten(["--saved_model_dir", "D", "--quantize_to_float16"]) == [
        "D",
        "--order",
        "official",
        "--names",
        "official",
    ]
    assert "no effect without --post_training_quantize" in capsys.readouterr().err


def test_calls_of_today_are_left_alone() -> None:
    assert not is_meant(["saved_model", "-o", "model.tflite", "--input-shape", "x=1", "--allow-custom-ops"])


def test_the_table_has_every_flag(tf: ModuleType) -> None:
    from tensorflow.lite.python import tflite_convert

    for use_newer in (True, False):
        parser = tflite_convert._get_parser(use_v2_converter=use_newer)
        names = {
            option[2:] for action in parser._actions for option in action.option_strings if option.startswith("--")
        } - {"help"}
        assert names <= set(FLAGS)


def test_whole_run(digits_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "digits.tflite"
    command = [
        sys.executable,
        "-m",
        "tfconvert",
        f"--saved_model_dir={digits_model}",
        "--output_file",
        str(output),
        "--saved_model_signature_key=serving_default",
        "--post_training_quantize",
        "--experimental_new_converter=true",
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert "in today's words" in run.stderr
    assert output.read_bytes() == bytes(
        tfconvert.convert(
            tfconvert.Source(digits_model, order="official"),
            signatures="serving_default",
            quantize="dynamic",
            target=tfconvert.LiteRT(names="official"),
        )
    )
    run = subprocess.run([*command, "--std_value=1"], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "it was renamed" in run.stderr


def test_ranges_of_inputs_and_users_ops(
    tf: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [1, 4], "x")
        tf.quantization.fake_quant_with_min_max_args(x + x, 0, 1, name="y")
    path, output = tmp_path / "graph.pb", tmp_path / "model.tflite"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    call = [
        "--graph_def_file",
        str(path),
        "--output_file",
        str(output),
        "--input_arrays",
        "x",
        "--output_arrays",
        "y",
        "--inference_type",
        "UINT8",
        "--mean_values",
        "128",
        "--std_dev_values",
        "64",
    ]
    for extra, dtype in (([], np.uint8), (["--inference_input_type", "FLOAT"], np.float32)):
        main([*call, *extra], standalone_mode=False)
        assert str(path) in capsys.readouterr().out
        interpreter = tfconvert.Interpreter(model_path=str(output))
        (taken,), (given,) = interpreter.get_input_details(), interpreter.get_output_details()
        assert (taken["dtype"], given["dtype"]) == (dtype, np.uint8)
        assert taken["quantization"] == ((1 / 64, 128) if dtype is np.uint8 else (0, 0))
    for stats, message in (("z=1,1", "no input 'z'"), ("x=1,0", "standard deviation 0")):
        with pytest.raises(SystemExit):
            main([str(path), "-o", str(output), "--quantize", "int8", "--io", "int8", "--input-stats", stats])
        assert message in capsys.readouterr().err
    # The copy that has the ranges isn't the file that a cache knows.
    known = ["--quantize", "int8", "--io", "uint8", "--cache-dir", str(tmp_path / "cache")]
    made = []
    for deviation in (64, 32):
        main(
            [str(path), "-o", str(output), "--quiet", *known, "--input-stats", f"x=128,{deviation}"],
            standalone_mode=False,
        )
        made.append(output.read_bytes())
    assert made[0] != made[1]


@pytest.mark.parametrize(
    "call",
    [
        ["--input-stats", "x=1"],
        ["--input-stats", "1,2"],
        ["--input-stats", "x=1,2"],
        ["--io", "int8,int8,int8"],
        ["--io", "int4"],
        ["--quantize", "int8", "--default-range", "6"],
        ["--input-stats", "x=1,2", "--quantize", "int8"],
    ],
)
def test_wrong_options(call: list[str], digits_model: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        main([str(digits_model), "-o", str(tmp_path / "m.tflite"), *call])
    assert caught.value.code == 2


def test_flex_ops_by_name(tf: ModuleType, tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [1, 4], "x")
        tf.identity(x, "y")
    message = graph.as_graph_def()
    message.node[1].op = "AcmeCopy"
    message.node[1].attr.clear()
    path, output, defs = tmp_path / "graph.pb", tmp_path / "model.tflite", tmp_path / "ops.pbtxt"
    path.write_bytes(message.SerializeToString())
    defs.write_text(
        'op { name: "AcmeCopy" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }'
    )
    call = [
        "--graph_def_file",
        str(path),
        "--output_file",
        str(output),
        "--op-defs",
        str(defs),
        "--input_arrays",
        "x",
        "--output_arrays",
        "y",
        "--target_ops",
        "TFLITE_BUILTINS,SELECT_TF_OPS",
    ]
    with pytest.raises(SystemExit):
        main(call)
    main([*call, "--experimental_select_user_tf_ops", "AcmeCopy"], standalone_mode=False)
    assert b"FlexAcmeCopy" in output.read_bytes()
