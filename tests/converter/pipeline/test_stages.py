"""The pipeline: each stage ensures what it declares, and unneeded files aren't loaded."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from tests.support import sample_models
from tfconvert import composites, conversion, patterns
from tfconvert.converter.ir.op_counts import count_operations
from tfconvert.converter.passes import decompose_resource_ops, functionalize_conditionals, functionalize_loops
from tfconvert.converter.pipeline import stages
from tfconvert.converter.pipeline.runner import USER, make_pass, run_stages
from tfconvert.converter.pipelines import PIPELINES
from tfconvert.converter.recurrence import unrolled
from tfconvert.converter.shapes import list_ops
from tfconvert.converter.targets.litert.legalize.legalizations import TABLE
from tfconvert.converter.targets.litert.passes import initialize_state, prepare_control_flow
from tfconvert.converter.targets.litert.passes.legalize import Legalize
from tfconvert.converter.targets.litert.passes.quantize_weights import QuantizeWeights
from tfconvert.converter.targets.litert.stages import STAGES
from tfconvert.importers.source import Source
from tfconvert.ops import index
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import call_interfaces, tfl
from tfconvert.schema.dialects.call_interfaces import KINDS, Kind
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.targets import LiteRT

NAMES = [
    "merge-functions",
    "inline",
    "freeze-variables",
    "canonicalize",
    "shape-inference",
    "legalize",
    "cse",
    "optimize",
    "portable-forms",
    "cse",
    "fit-kernels",
    "separate-outputs",
    "check-gpu",
    "order-operators",
]

# The example ends in a softmax, which may have a faster form.
WITH_SOFTMAX = [*NAMES[:8], "fast-forms", *NAMES[8:]]

FORBIDDEN_LAST = ("tf.", "tf_executor.", "tf_saved_model.")


def _run_stages(module: ModuleOp) -> None:
    """Runs all stages; what one forbids stays away."""
    forbidden: tuple[str, ...] = ()
    verify(module)
    for stage in STAGES:
        if stage.only_with == "quantize":
            continue  # It would need samples, or change nothing.
        make_pass(stage, Options()).apply(module)
        verify(module)
        assert stage.left_over(module) is None, stage.run
        forbidden += stage.forbids
        assert not [op.name for op in module.walk() if op.name.startswith(forbidden)] or not forbidden
    assert not [op.name for op in module.walk() if op.name.startswith(FORBIDDEN_LAST)]


def test_steps_ensure_what_they_say_of_the_example(digits_model: Path) -> None:
    _run_stages(Source(digits_model).open())


@pytest.mark.parametrize("name", sample_models.MODELS)
def test_steps_ensure_what_they_say(name: str, tf: ModuleType, tmp_path: Path) -> None:
    folder = sample_models.save(tf, sample_models.MODELS[name], tmp_path / "model")
    _run_stages(Source(folder).open())


def _run(text: str, options: Options | None = None) -> list[str]:
    """Returns the names of the passes that a text needs; it has to be converted."""
    module = IRParser(text).parse_module()
    return [done.name for done in run_stages(module, STAGES, options or Options())]


PLAIN = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %v = "tf.VarHandleOp"() <{container = "", shared_name = "v"}> : () -> tensor<!tf_type.resource<tensor<2xf32>>>
  %0 = "tf.ReadVariableOp"(%v) : (tensor<!tf_type.resource<tensor<2xf32>>>) -> tensor<2xf32>
  %1 = "tf.AddV2"(%x, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %1 : tensor<2xf32>
}
"tf_saved_model.global_tensor"() <{sym_name = "v", type = tensor<2xf32>, value = dense<1.0> : tensor<2xf32>}> : () -> ()
"""

EVERYTHING = [
    "dialects-to-tf",
    "unbind-inputs",
    "merge-functions",
    "functionalize-loops",
    "functionalize-conditionals",
    "executor-to-functional",
    "cut",
    "expand-xla-call-modules",
    "prepare-composite-functions",
    "regions-to-functional",
    "tensor-arrays-to-lists",
    "inline",
    "verify-control-flow",
    "unique-callees",
    "stacks-to-lists",
    "sink-handles",
    "decompose-resource-ops",
    "freeze-variables",
    "forward-variables",
    "canonicalize",
    "mark-stateless",
    "shape-inference",
    "xla-to-stablehlo",
    "stablehlo-to-tf",
    "regions-to-functional",
    "shape-inference",
    "simplify-control-flow",
    "lower-tensor-lists",
    "share-shapes",
    "find-training-mode",
    "widen-halves",
    "unroll-layers",
    "fuse-recurrent-loops",
    "fuse-unrolled-layers",
    "unroll-loops",
    "cse",
    "merge-loop-variables",
    "loop-steps",
    "canonicalize",
    "shape-inference",
    "prepare-control-flow",
    "lower-tables",
    "initialize-state",
    "complex-to-parts",
    "default-sizes",
    "separate-activations",
    "legalize",
    "fold-dequantize",
    "sink-constants",
    "cse",
    "optimize",
    "fast-forms",
    "portable-forms",
    "cse",
    "keep-nan",
    "fit-kernels",
    "fit-accelerators",
    "prepare-quantize",
    "separate-reads",
    "separate-results",
    "separate-state",
    "calibrate",
    "equalize",
    "quantize",
    "fast-forms",
    "separate-state",
    "quantize-io",
    "portable-forms",
    "fold-fake-quant",
    "quantize-weights",
    "separate-boxes",
    "fit-accelerators",
    "separate-results",
    "separate-outputs",
    "verify-quantized",
    "sparse-weights",
    "outline-composites",
    "check-gpu",
    "order-operators",
]


def test_the_order() -> None:
    assert stages.names_of(STAGES) == EVERYTHING
    assert [stage.run for stage in STAGES if not (stage.needs or stage.left or stage.only_with)] == NAMES


def test_pipelines_by_name() -> None:
    assert PIPELINES["tflite"] == STAGES
    standard = stages.names_of(PIPELINES["tf-standard"])
    assert [*standard, "initialize-state"] == EVERYTHING[: len(standard) + 1]


def test_a_plain_model_needs_no_more_than_the_others() -> None:
    assert _run(PLAIN) == NAMES


def test_what_the_user_adds_is_required() -> None:
    fusion = composites.Fusion("own", "a", "nothing", lambda composite: "", lambda composite, body: [])
    names = _run(PLAIN, Options(target=LiteRT(composites=[fusion])))
    assert names == [*NAMES[:1], "prepare-composite-functions", *NAMES[1:]]
    rule = patterns.rule("own", patterns.tf.Relu(patterns.value("x")), to=patterns.value("x"))
    names = _run(PLAIN, Options(patterns=[rule]))
    assert names == [*NAMES[:5], "canonicalize", "shape-inference", *NAMES[5:]]


def test_stages_name_what_is_there() -> None:
    names = {field.name for cls in (Options, LiteRT) for field in fields(cls)}
    settings = names | {
        "name",
        "fuses_recurrent",
        "recurrent_by_speed",
        "unrolls_loops",
        "fusions",
        "writes_composites",
        "is_for_processors",
    }
    paths = settings | {f"quantize.{field.name}" for field in fields(Quantize)}
    for stage in STAGES:
        run = type(make_pass(stage, Options()))
        own = set(inspect.signature(run).parameters)
        taken = [text.rpartition("=") for text in stage.takes]
        assert {path for _, _, path in taken} <= paths, stage.run
        assert {name or path.rpartition(".")[2] for name, _, path in taken} <= own, stage.run
        assert {stage.only_with} <= settings | {""}, stage.run
        needed = [prefix for group in stage.needs for prefix in group]
        known = (
            r"(tf\w*)\.\w+$|tfl\.$|(arith|chlo|stablehlo|mhlo|vhlo|quantfork|tensor)\.|options\.|inputs\.(open|halves)$"
        )
        assert all(re.match(known, prefix) for prefix in needed), stage.run
        assert {prefix.removeprefix("options.") for prefix in needed if prefix.startswith("options.")} <= set(USER)


@pytest.mark.parametrize(
    ("name", "group", "ops"),
    [
        ("fuse-unrolled-layers", None, set(unrolled._FINDERS)),
        ("initialize-state", None, set(initialize_state._HANDLES)),
        ("separate-state", 0, {f"tfl.{name}" for name in tfl.STEPS | tfl.SEQUENCES}),
        ("decompose-resource-ops", 0, set(decompose_resource_ops._DECOMPOSED)),
        ("functionalize-loops", 0, {op.NAME for op in functionalize_loops._OF_LOOPS}),
        ("functionalize-conditionals", 0, {op.NAME for op in functionalize_conditionals._CONDITIONAL}),
        ("regions-to-functional", 0, set(call_interfaces.REGION_FORMS)),
        ("prepare-control-flow", 0, set(prepare_control_flow._ALL)),
        ("mark-stateless", 0, set(call_interfaces.STATEFUL)),
        ("fuse-recurrent-loops", 0, {op for op, kind in KINDS.items() if kind is Kind.LOOP}),
        ("lower-tensor-lists", 0, set(list_ops.OPS)),
    ],
)
def test_what_a_pass_rewrites_is_what_its_stage_needs(name: str, group: int | None, ops: set[str]) -> None:
    assert ops
    stage = next(stage for stage in STAGES if stage.run == name)
    assert not [op for op in ops if not op.startswith(stage.left if group is None else stage.needs[group])]


# `fake_quant` and `special_functions` also hold numbers that passes of every pipeline use.
FAMILIES = "convolution elementwise fake_quant layout matmul normalization reduction shape slicing special_functions"


def test_models_load_no_pass_that_they_do_not_need(digits_model: Path) -> None:
    script = "import sys, tfconvert; tfconvert.convert(sys.argv[1]); print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", script, str(digits_model)], capture_output=True, text=True, check=True, timeout=120
    )
    loaded = set(done.stdout.splitlines())
    passes = {name.rpartition(".")[2] for name in loaded if ".passes." in name}
    assert passes == {name.replace("-", "_") for name in WITH_SOFTMAX}
    unneeded = [
        "recurrence",
        "litert.fusions",
        "litert.recurrent",
        "tensor_lists",
        "functionalize",
        "executor",
        *(f"litert.legalize.{module.name}" for module in TABLE.modules if module.ops),
    ]
    assert not [name for name in loaded if name.startswith(tuple(f"tfconvert.converter.{room}." for room in unneeded))]
    assert not loaded & {f"tfconvert.converter.{room}" for room in unneeded}
    families = {module for module in index.MODULES if f"tfconvert.ops.{module}" in loaded}
    assert families == set(FAMILIES.split())
    others = {
        "tfconvert.converter.targets.stablehlo.target",
        "tfconvert.converter.targets.litert.accelerator_check",
        "tfconvert.converter.targets.litert.composite_verdicts",
    }
    assert not loaded & {"ml_dtypes", *others}


def test_every_stage_tells_why_it_stands_there() -> None:
    for stage in STAGES:
        assert len(stage.because.split()) > 3, stage.run


def test_a_broken_promise_is_named() -> None:
    text = """
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
    """
    module = IRParser(text).parse_module()
    left = {stage.run: stage.left_over(module) for stage in STAGES}
    assert left["legalize"] is not None
    assert left["legalize"].name == "tf.Relu"
    assert left["executor-to-functional"] is left["cse"] is None


def test_options_reach_the_passes() -> None:
    for allowed in (True, False):
        (stage,) = [stage for stage in STAGES if stage.run == "legalize"]
        run = make_pass(stage, Options(target=LiteRT(allow_custom_ops=allowed)))
        assert isinstance(run, Legalize)
        assert run.allow_custom_ops is allowed


def test_settings_of_a_group_reach_the_passes() -> None:
    (stage,) = (stage for stage in STAGES if stage.run == "quantize-weights")
    settings = Quantize("weights", 4, per_channel=False, exclude=["*/logits"], hybrid_only=True)
    assert make_pass(stage, Options(target=LiteRT(quantize=settings))) == QuantizeWeights(
        "weights", 4, False, ("*/logits",), True
    )
    assert make_pass(stage, Options()) == QuantizeWeights()


def test_weights_are_quantized_if_the_user_wants_it() -> None:
    assert _run(PLAIN, Options(target=LiteRT(quantize=Quantize("dynamic")))) == [
        *NAMES[:-3],
        "equalize",
        "quantize-weights",
        "separate-outputs",
        "verify-quantized",
        "check-gpu",
        "order-operators",
    ]


def test_stages_are_announced_and_timed(digits_model: Path) -> None:
    announced: list[str] = []
    _, report = conversion.run(Source(digits_model), Options(), announced.append)
    assert announced == ["load", "import", *WITH_SOFTMAX, "export"]
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
        (lambda path: path, "model-not-found"),
        (_file(".onnx", b"hello"), "foreign-format"),
        (_file(".tflite", b"\x1c\0\0\0TFL3"), "malformed-tflite"),
        (_file(".mlir", b"module {"), "malformed-mlir"),
        (_file(".mlir", b"\xff\xfe"), "malformed-mlir"),
        (_file(".pb", b"hello"), "not-a-graph-def"),
        (_file(".pb", b""), "foreign-format"),
        (_file(".pbtxt", b"node { name: "), "not-a-graph-def"),
        (_file(".pbtxt", b"\xff\xfe\x00"), "not-a-graph-def"),
    ],
)
def test_what_is_no_model_is_told(make: Callable[[Path], Path], code: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        conversion.run(Source(make(tmp_path / "model")), Options())
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
