"""The ending of a result's name chooses the target, or agrees with it, by every way to convert."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tfconvert
from tests.converter.targets.stablehlo.test_target import MODEL
from tfconvert.cli.main import main
from tfconvert.converter.targets.output_form import Form, ending_of, form_of

_MAGIC = {"litert": (4, b"TFL3"), "stablehlo": (0, b"builtin.module"), "artifact": (0, b"ML\xefR")}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Returns the file of a model with a weight."""
    path = tmp_path / "net.pbtxt"
    path.write_text(NET)
    return path


NET = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } }
                                            float_val: 2 float_val: 3 } } } }
node { name: "y" op: "AddV2" input: "x" input: "w" attr { key: "T" value { type: DT_FLOAT } } }
"""


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def _contents(path: Path) -> str:
    content = path.read_bytes()
    return next(name for name, (start, magic) in _MAGIC.items() if content[start:].startswith(magic))


@pytest.mark.parametrize(
    ("name", "flags", "contents"),
    [
        ("m.tflite", [], "litert"),
        ("M.TFLITE", [], "litert"),
        ("m.mlir", [], "stablehlo"),
        ("m.mlir", ["--mlir-weights", "inline"], "stablehlo"),
        ("m.mlirbc", [], "artifact"),
        ("m.mlirbc", ["--target", "stablehlo"], "artifact"),
        ("m", [], "litert"),
        ("net_v1_0.25", [], "litert"),
        ("m", ["--target", "stablehlo"], "stablehlo"),
        ("m.part", ["--target", "litert"], "litert"),
    ],
)
def test_the_ending_chooses_the_target(model: Path, tmp_path: Path, name: str, flags: list[str], contents: str) -> None:
    if contents == "artifact":
        pytest.importorskip("jaxlib")
    done = _run(model, "-o", tmp_path / name, *flags)
    assert done.exit_code == 0, done.stderr
    assert _contents(tmp_path / name) == contents


WRONG = [
    ("m.onnx", [], ".vmfb"),
    ("m.onnx", ["--target", "litert"], ".vmfb"),
    ("m.part", [], "--target"),
    ("m.tflite", ["--target", "stablehlo"], "did you mean --target litert?"),
    ("m.cc", ["--target", "iree"], "did you mean --target litert?"),
    ("m.mlir", ["--target", "litert"], "did you mean --target stablehlo?"),
    ("m.vmfb", ["--target", "stablehlo", "--mlir-artifact"], "Otherwise let the name end in .mlirbc"),
    ("m.mlir", ["--mlir-artifact"], ".mlirbc"),
    ("m.mlirbc", ["--mlir-weights", "resource"], "inline or arguments"),
]


@pytest.mark.parametrize(("name", "flags", "hint"), WRONG)
def test_a_name_that_says_something_else_is_refused(tmp_path: Path, name: str, flags: list[str], hint: str) -> None:
    done = _run(tmp_path / "no-such-model", "-o", tmp_path / name, *flags, "--json")
    assert done.exit_code == 2
    (problem,) = json.loads(done.stdout)["errors"]
    assert problem["code"] == "wrong-option"
    assert name in problem["message"]
    assert hint in problem["hint"]
    assert list(tmp_path.iterdir()) == []


def test_build_follows_the_same_rule(model: Path, tmp_path: Path) -> None:
    config = tmp_path / "tfconvert.toml"
    table = f'[[models]]\nmodel = "{model}"\noutput = "a.mlir"\n'
    config.write_text(table)
    assert _run("build", config).exit_code == 0
    assert _contents(tmp_path / "a.mlir") == "stablehlo"
    config.write_text(table.replace("a.mlir", "b.tflite") + table.replace("a.mlir", "c.onnx"))
    done = _run("build", config)
    assert done.exit_code == 2
    assert "tfconvert.toml:4: model 2 (" in done.stderr
    assert "): won't write c.onnx" in done.stderr
    assert not (tmp_path / "b.tflite").exists()


def test_models_are_saved_by_the_same_rule(model: Path, tmp_path: Path) -> None:
    converted = tfconvert.convert(model)
    for name in ("m.mlir", "m.vmfb", "m.onnx"):
        with pytest.raises(tfconvert.ConversionError, match="won't write") as refused:
            converted.save(tmp_path / name)
        assert refused.value.code == "wrong-option"
        assert not (tmp_path / name).exists()
    converted.save(tmp_path / "m.bin")
    assert _contents(tmp_path / "m.bin") == "litert"
    with pytest.raises(tfconvert.ConversionError, match="target is stablehlo"):
        tfconvert.convert(model, target="stablehlo").save(tmp_path / "m.tflite")


def test_a_result_of_two_files_needs_a_path(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(MODEL.replace("WEIGHTS", bytes(2048).hex()))
    done = _run(path, "-o", "-", "--target", "stablehlo", "--mlir-weights", "arguments")
    assert done.exit_code == 2
    assert ".safetensors" in done.stderr
    with pytest.raises(tfconvert.ConversionError, match="more than one file"):
        tfconvert.convert(path, target=tfconvert.StableHLO(weights="arguments")).save(io.BytesIO())


def test_endings() -> None:
    assert [ending_of(name) for name in ("a.MLIR", "s3://b/c.d/e.vmfb", "c.d/e", ".mlir", "v0.25", "a.tflite.1")] == [
        ".mlir",
        ".vmfb",
        "",
        "",
        "",
        "",
    ]
    assert form_of("x.hpp", {}) == Form()
    assert [Form(*each).ending for each in (("litert",), ("stablehlo",), ("stablehlo", True), ("iree",))] == [
        ".tflite",
        ".mlir",
        ".mlirbc",
        ".vmfb",
    ]
