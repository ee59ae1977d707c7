"""The pipeline: each step ensures what it says, and files of other kinds are told apart."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests import sample_models
from tfconvert.converter import conversion
from tfconvert.converter.ir.op_counts import count_operations
from tfconvert.converter.options import Options
from tfconvert.converter.pipeline import control_flow_passes, stages
from tfconvert.converter.pipeline.features import NOTHING, Presence
from tfconvert.importers import open_model
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.verification import verify
from tfconvert.schema.ir.builtin import ModuleOp

NAMES = [
    "merge-functions", "executor-to-functional", "inline", "freeze-variables", "canonicalize", "shape-inference",
    "initialize-state", "legalize", "cse", "optimize", "cse",
]  # fmt: skip

FORBIDDEN_LAST = ("tf.", "tf_executor.", "tf_saved_model.")


def _run_steps(module: ModuleOp) -> None:
    """Runs all steps; what one forbids stays away."""
    forbidden: tuple[str, ...] = ()
    verify(module)
    for step in stages.steps(Options()):
        step.run.apply(module)
        verify(module)
        assert step.left_over(module) is None, step.run.name
        forbidden += step.forbids
        assert not [op.name for op in module.walk() if op.name.startswith(forbidden)] or not forbidden
    assert not [op.name for op in module.walk() if op.name.startswith(FORBIDDEN_LAST)]


def test_steps_ensure_what_they_say_of_the_example(digits_model: Path) -> None:
    _run_steps(open_model.import_model(digits_model, Options()))


@pytest.mark.parametrize("name", sample_models.MODELS)
def test_steps_ensure_what_they_say(name: str, tf: ModuleType, tmp_path: Path) -> None:
    folder = sample_models.save(tf, sample_models.MODELS[name], tmp_path / "model")
    _run_steps(open_model.import_model(folder, Options()))


def _names(**present: bool) -> list[str]:
    return stages.names_of(stages.steps(Options(), NOTHING._replace(**present)))


def test_the_order() -> None:
    assert _names() == NAMES


@pytest.mark.parametrize("what", Presence._fields)
def test_what_a_model_has_only_adds_passes(what: str) -> None:
    names = _names(**{what: True})
    rest = iter(names)
    assert all(name in rest for name in NAMES)
    assert len(names) > len(NAMES)


def test_control_flow_adds_all_of_its_passes() -> None:
    own = {getattr(control_flow_passes, name).name for name in control_flow_passes.__all__}
    assert own <= set(_names(control_flow=True))


def test_marked_functions_are_fused_before_they_are_inlined() -> None:
    assert _names(composites=True) == [*NAMES[:2], "prepare-composite-functions", *NAMES[2:]]


@pytest.mark.parametrize(
    "module",
    [
        "tfconvert.converter.pipeline.control_flow_passes",
        "tfconvert.converter.litert.fusions.registry",
        "tfconvert.converter.passes.decompose_resource_ops",
        "tfconvert.converter.passes.forward_variables",
        "tfconvert.converter.litert.passes.separate_reads",
        "tfconvert.converter.litert.passes.lower_tables",
        "tfconvert.converter.litert.passes.fuse_unrolled_layers",
        "tfconvert.converter.litert.passes.separate_state",
        "tfconvert.converter.litert.legalize.uncommon",
        "tfconvert.converter.kernels.uncommon",
    ],
)
def test_models_load_no_pass_that_they_do_not_need(digits_model: Path, module: str) -> None:
    script = f"import sys, tfconvert; tfconvert.convert(sys.argv[1]); print('{module}' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script, str(digits_model)], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "False"


def test_every_step_tells_why_it_stands_there() -> None:
    for step in stages.steps(Options()):
        assert len(step.because.split()) > 3, step.run.name


def test_a_broken_promise_is_named() -> None:
    text = """
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    """
    module = IRParser(text).parse_module()
    left = {step.run.name: step.left_over(module) for step in stages.steps(Options())}
    assert left["legalize"] is not None
    assert left["legalize"].name == "tf.Relu"
    assert left["executor-to-functional"] is left["cse"] is None


def test_options_reach_the_passes() -> None:
    for allowed in (True, False):
        (legalize,) = [
            step.run for step in stages.steps(Options(allow_custom_ops=allowed)) if step.run.name == "legalize"
        ]
        assert getattr(legalize, "allow_custom_ops", None) is allowed


def test_stages_are_announced_and_timed(digits_model: Path) -> None:
    announced: list[str] = []
    _, report = conversion.run(digits_model, Options(), announced.append)
    assert announced == ["load", "import", "plan", *NAMES, "export"]
    assert [stage.name for stage in report.stages] == announced
    assert all(stage.seconds >= 0 for stage in report.stages)


def _folder_without_model(path: Path) -> Path:
    path.mkdir()
    return path


def _damaged_model(path: Path) -> Path:
    path.mkdir()
    (path / "saved_model.pb").write_bytes(b"\x0a\xff\xff\xff\xff")
    return path


def _file(suffix: str, content: bytes) -> Callable[[Path], Path]:
    def write(path: Path) -> Path:
        path = path.with_suffix(suffix)
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (_folder_without_model, "not-a-saved-model"),
        (_damaged_model, "damaged-saved-model"),
        (lambda path: path, "not-a-saved-model"),
        (_file(".onnx", b"hello"), "unknown-format"),
        (_file(".tflite", b"\x1c\0\0\0TFL3"), "malformed-tflite"),
        (_file(".mlir", b"module {"), "malformed-mlir"),
        (_file(".mlir", b"\xff\xfe"), "malformed-mlir"),
        (_file(".pb", b"hello"), "not-a-graph-def"),
        (_file(".pb", b""), "not-a-graph-def"),
        (_file(".pbtxt", b"node { name: "), "not-a-graph-def"),
        (_file(".pbtxt", b"\xff\xfe\x00"), "not-a-graph-def"),
    ],
)
def test_what_is_no_model_is_told(make: Callable[[Path], Path], code: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        conversion.run(make(tmp_path / "model"), Options())
    assert caught.value.code == code


def test_only_what_computes_is_counted() -> None:
    text = """
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Const"() <{value = dense<1.0> : tensor<2xf32>}> : () -> tensor<2xf32>
      %1 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %2 = "tf.AddV2"(%1, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %3 = "tf.Relu"(%2) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %3 : tensor<2xf32>
    }
    """
    module = IRParser(text).parse_module()
    assert count_operations(module) == {"Relu": 2, "AddV2": 1}
