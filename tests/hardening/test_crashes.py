"""Invalid files, texts and settings raise a tfconvert error, never another Python exception."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tfconvert
from tests.hardening import models
from tests.hardening.bounded import run_bounded
from tests.hardening.models import FLOAT, constant, graph, node, placeholder
from tests.support.flat_settings import converted
from tfconvert.cli.main import main
from tfconvert.converter.ir.constants import integers
from tfconvert.converter.ir.interface import interfaces
from tfconvert.converter.process import guard
from tfconvert.converter.validation.comparison import compare
from tfconvert.exporters.tflite.model import export
from tfconvert.importers.graph.op_signatures import OpRegistry
from tfconvert.importers.graph.variables import saved_variables
from tfconvert.importers.mlir import import_mlir
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.importers.tflite.outline import outline
from tfconvert.schema.diagnostics import ConversionError, Diagnostic, error, printable
from tfconvert.schema.dialects import tfl
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.schema.tflite import operators


def _code(model: Any, **settings: Any) -> str:
    """Returns the code of the error that a conversion ends in; empty otherwise."""
    try:
        converted(model, **settings)
    except ConversionError as problem:
        return problem.code
    return ""


def _text(tmp_path: Path, text: str) -> str:
    path = tmp_path / "model.mlir"
    path.write_text(text)
    return _code(path)


@pytest.mark.parametrize(("given", "result"), [("a,b", "p,q,"), ("", "y"), ("x", ""), (",", ",,"), ("a\nb", "\x1b[2J")])
def test_signatures_may_have_any_names(given: str, result: str) -> None:
    """Such SavedModels are valid, whatever separates names in the text of the IR."""
    model = tfconvert.convert(models.saved(given, result))
    (described,) = model.report.interfaces
    assert [each.name for each in described.inputs] == [given or "input_0"]
    assert [each.name for each in described.outputs] == [result or "output_0"]
    (signature,) = outline(bytes(model)).signatures
    assert [each.name for each in signature.inputs] == [given or "input_0"]


def test_names_with_commas_in_graphs() -> None:
    model = tfconvert.convert(graph(placeholder("a,b"), node("y", "Neg", ["a,b"], T=FLOAT)))
    assert [each.name for each in model.report.interfaces[0].inputs] == ["a_b"]


@pytest.mark.parametrize("index", ["²", "٣", "1" * 5000, "9" * 10])
def test_a_number_of_an_output_is_a_number(index: str) -> None:
    """`isdigit` takes more than `int` does."""
    assert _code(graph(placeholder(), node("y", "Neg", [f"x:{index}"], T=FLOAT))) == "missing-node"
    assert _code(models.NEGATION, outputs=[f"y:{index}"]) == "unknown-tensor"
    assert _code(models.NEGATION, inputs=[f"x:{index}"]) == "unknown-tensor"


def test_a_number_of_an_output_in_a_function() -> None:
    model = models.saved()
    for text in ("n:y:²", f"n:y:{'1' * 5000}", "n:y:7"):
        library = pb.FunctionDefLibrary()
        function = library.function.add()
        function.signature.name = "f"
        function.signature.input_arg.add(name="x", type=FLOAT)
        function.signature.output_arg.add(name="r", type=FLOAT)
        function.node_def.append(node("n", "Neg", ["x"], T=FLOAT))
        function.ret["r"] = text
        nodes = graph(placeholder(), node("y", "f", ["x"]))
        nodes.library.CopyFrom(library)
        model.meta_graphs[0].graph_def.CopyFrom(nodes)
        assert _code(model) != ""


@pytest.mark.parametrize("shape", [[1] * 65, [0, 1 << 62, 1 << 62], [1 << 62, 1 << 62], [0, 1 << 60]])
def test_constants_have_shapes_that_arrays_can_have(shape: list[int]) -> None:
    values: list[float] = [] if 0 in shape else [1.0]
    assert _code(graph(placeholder(), constant("c", shape, values), node("y", "AddV2", ["x", "c"], T=FLOAT))) in (
        "bad-tensor",
    )


_ENTRY = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> attributes {{tf.entry_function = {}}} {{
  %0 = "tf.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}}
"""


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("{}", ""),
        ('{inputs = "a"}', ""),
        ('{outputs = "b"}', ""),
        ('{inputs = "", outputs = ""}', ""),
        ('{inputs = "a,b", outputs = "y"}', "invalid-ir"),
        ('{inputs = "a", outputs = "y,z"}', "invalid-ir"),
        ("{inputs = 1 : i32}", "invalid-ir"),
        ("1 : i32", "invalid-ir"),
        ('"x"', "invalid-ir"),
        ("unit", "invalid-ir"),
    ],
)
def test_names_of_an_entry_function_fit_it(entry: str, code: str, tmp_path: Path) -> None:
    assert _text(tmp_path, _ENTRY.format(entry)) == code


_DECLARED = {
    "entry": "func.func @main(tensor<2xf32>) -> tensor<2xf32>",
    "private": "func.func private @main(tensor<2xf32>) -> tensor<2xf32>",
    "branch": """func.func private @f(tensor<2xf32>) -> tensor<2xf32>
        func.func @main(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
          %0 = "tf.If"(%c, %x) {then_branch = @f, else_branch = @f, is_stateless = true}
            : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
          func.return %0 : tensor<2xf32>
        }""",
    "call": """func.func private @f(tensor<2xf32>) -> tensor<2xf32>
        func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
          %0 = func.call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>
          func.return %0 : tensor<2xf32>
        }""",
    "unused": """func.func private @f(tensor<2xf32>) -> tensor<2xf32>
        func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
          func.return %x : tensor<2xf32>
        }""",
}


@pytest.mark.parametrize("kind", _DECLARED)
def test_functions_that_are_only_declared_are_not_converted(kind: str, tmp_path: Path) -> None:
    assert _text(tmp_path, _DECLARED[kind]) == ("" if kind == "unused" else "missing-function")


def _while(condition: str, body: str) -> str:
    return f"""
func.func private @condition(%i: tensor<i32>, %x: tensor<2xf32>) -> {condition}
func.func private @body(%i: tensor<i32>, %x: tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {{
  {body}
}}
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
  %zero = "tf.Const"() {{value = dense<0> : tensor<i32>}} : () -> tensor<i32>
  %0:2 = "tf.While"(%zero, %x) {{cond = @condition, body = @body, is_stateless = true}}
    : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
  func.return %0#1 : tensor<2xf32>
}}
"""


def test_a_condition_that_is_a_vector(tmp_path: Path) -> None:
    condition = """tensor<*xi1> {
  %0 = "tf.Const"() {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>
  %1 = "tf.Identity"(%0) : (tensor<2xi1>) -> tensor<*xi1>
  func.return %1 : tensor<*xi1>
}"""
    assert _text(tmp_path, _while(condition, "func.return %i, %x : tensor<i32>, tensor<2xf32>")) != "internal-error"


@pytest.mark.parametrize("shape", ["12", 3, [1.5, 4], [None, "a"], {"x": 1}])
def test_invalid_shapes(shape: object) -> None:
    assert _code(models.NEGATION, input_shapes={"x": shape}) == "wrong-option"
    assert _code(models.NEGATION, input_shapes=[shape]) == "wrong-option"


@pytest.mark.parametrize("size", [1 << 31, 99999999999, 1 << 62, 1 << 63, 1 << 70])
def test_sizes_beyond_litert(size: int, tmp_path: Path) -> None:
    nodes = graph(placeholder(shape=[-1, 4]), node("y", "Neg", ["x"], T=FLOAT))
    nodes.node.append(node("s", "Shape", ["y"], T=FLOAT, out_type=3))
    assert _code(nodes, input_shapes={"x": [size, 4]}) == "absurd-shape"
    assert _code(nodes, batch=size) == "absurd-shape"
    if size < 1 << 63:
        assert _code(graph(placeholder(shape=[size, 4]), *nodes.node[1:])) == "absurd-shape"
        kind = f"tensor<{size}x4xf32>"
        text = f'func.func @main(%x: {kind}) -> {kind} {{\n%0 = "tf.Neg"(%x) : ({kind}) -> {kind}\n'
        assert _text(tmp_path, f"{text}func.return %0 : {kind}\n}}") != "internal-error"
    done = CliRunner().invoke(main, ["-", "-o", "x", "--input-shape", f"x={size},4"])
    assert done.exit_code == 2


def test_a_size_that_fits_no_integer() -> None:
    with pytest.raises(ConversionError) as caught:
        integers([1 << 40], np.dtype(np.int32))
    assert caught.value.code == "absurd-shape"


@pytest.mark.parametrize("text", ["   ", "1" * 5000, f"4 0,{'1' * 5000}", "x", "4 0,2:", "4 ²,2", "4 -1,2"])
def test_slices_of_restored_variables(text: str) -> None:
    def strings(name: str, value: str) -> pb.NodeDef:
        made = node(name, "Const", dtype=7)
        tensor = made.attr["value"].tensor
        tensor.dtype = 7  # type: ignore[assignment]
        tensor.tensor_shape.dim.add(size=1)
        tensor.string_val.append(value.encode())
        return made

    restore = node("r", "RestoreV2", ["prefix", "names", "slices"])
    restore.attr["dtypes"].list.type.append(FLOAT)  # type: ignore[arg-type]
    nodes = {
        each.name: each
        for each in (
            strings("prefix", "p"),
            strings("names", "w"),
            strings("slices", text),
            restore,
            node("w", "VariableV2", dtype=FLOAT),
            node("a", "Assign", ["w", "r"], T=FLOAT),
        )
    }
    meta = pb.MetaGraphDef()
    meta.graph_def.node.extend(nodes.values())
    meta.saver_def.restore_op_name = "a"
    with pytest.raises(ConversionError) as caught:
        saved_variables(meta, nodes, {})
    assert caught.value.code == "bad-slice"


def _circle(place: Path) -> None:
    place.unlink(missing_ok=True)
    place.symlink_to(place.name)


def test_circles_of_links(digits_model: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(digits_model, tmp_path / "model"))
    converted = tfconvert.convert(model)
    _circle(tmp_path / "out.tflite")
    converted.save(tmp_path / "out.tflite")
    assert (tmp_path / "out.tflite").read_bytes() == bytes(converted)
    _circle(model / "variables" / "variables.index")
    assert _code(model) == "unreadable-file"
    _circle(tmp_path / "folder")
    with pytest.raises(ConversionError) as caught:
        converted.save(tmp_path / "folder" / "out.tflite")
    assert caught.value.code == "output-not-writable"


@pytest.mark.skipif(not hasattr(os, "seteuid") or os.geteuid() != 0, reason="only the superuser can become another")
@pytest.mark.parametrize("name", ["model", "model/saved_model.pb", "graph.pb", "graph.meta", "graph.mlir", "graph.h5"])
def test_unreadable_files(digits_model: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(digits_model, tmp_path / "model")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    tmp_path.chmod(0o700)
    for ending in (".pb", ".meta", ".mlir", ".h5", ""):
        _code(tmp_path / f"nothing{ending}")  # Which loads modules, that nobody else may read perhaps.
    user = os.geteuid()
    os.seteuid(65534)
    try:
        code = _code(tmp_path / name)
    finally:
        os.seteuid(user)
    assert code == "unreadable-file"


@pytest.mark.parametrize("name", ["a\0b", "n" * 300, "p/" * 3000 + "x", "\udcff", "x\nforged"])
@pytest.mark.parametrize("ending", ["", ".pb", ".pbtxt", ".mlir", ".meta", ".tflite", ".keras", ".h5"])
def test_paths_that_no_file_has(tmp_path: Path, name: str, ending: str) -> None:
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(tmp_path / (name + ending))
    assert caught.value.code in ("unreadable-file", "not-a-saved-model", "model-not-found")
    assert "\0" not in str(caught.value)
    str(caught.value).encode()
    assert _code(os.fsencode(tmp_path)) == "unknown-format"


@pytest.mark.parametrize("name", ["a\0b", "n" * 300, "p/" * 3000 + "x", "folder/x\0"])
def test_outputs_that_no_file_can_be(tmp_path: Path, name: str) -> None:
    model = tfconvert.convert(models.NEGATION)
    for ending in (".tflite", ".cc"):
        with pytest.raises(ConversionError) as caught:
            model.save(tmp_path / (name + ending))
        assert caught.value.code == "output-not-writable"


def _tflite(tmp_path: Path, *, operands: int = 1, results: int = 1, absent: bool = False) -> ModuleOp:
    """Returns a module with an operator of another number of operands and results than it can have."""
    made = import_mlir(
        """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
             %0 = "tfl.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
             func.return %0 : tensor<2xf32>
           }"""
    )
    (op,) = (op for op in made.walk() if op.name == "tfl.neg")
    values = [op.operands[0]] * operands
    if absent:
        none = tfl.no_value()
        op.parent.insert_op_before(none, op)  # type: ignore[union-attr]
        values = [none.results[0]]
    kinds = [op.results[0].type] * results
    wrong = tfl.build("neg", operands=values, result_types=kinds)
    op.parent.insert_op_before(wrong, op)  # type: ignore[union-attr]
    if results:
        op.results[0].replace_all_uses_with(wrong.results[0])
        op.detach()
    return made


@pytest.mark.parametrize("change", [{"operands": 0}, {"operands": 2}, {"results": 2}, {"results": 0}, {"absent": True}])
def test_operators_have_the_operands_that_they_can_have(change: dict[str, Any], tmp_path: Path) -> None:
    """The optimizer relies on it, and on those that must be there."""
    content = export(_tflite(tmp_path, **change)).to_bytes()
    with pytest.raises(ConversionError, match=r"tfl\.neg") as caught:
        import_tflite(content)
    assert caught.value.code == "malformed-tflite"
    import_tflite(export(_tflite(tmp_path)).to_bytes())


def test_the_table_knows_the_operands_of_all_operators() -> None:
    for name in operators.names():
        operator = operators.lookup(name)
        assert operator is not None
        for minimum, maximum in (operator.operand_range, operator.result_range):
            assert 0 <= minimum <= maximum


def test_a_model_can_not_define_tensorflow_s_ops_anew() -> None:
    """All of the converter relies on what they are, as TensorFlow does."""
    model = models.saved()
    for name in ("Neg", "MyOwn"):
        own = model.meta_graphs[0].meta_info_def.stripped_op_list.op.add(name=name)
        own.input_arg.add(name="a", type=FLOAT)
        own.output_arg.add(name="r", type=FLOAT)
        own.output_arg.add(name="s", type=FLOAT)
    assert _code(model) == ""
    registry = OpRegistry(model.meta_graphs[0].meta_info_def.stripped_op_list.op)
    assert len(registry.signature("Neg", "y").outputs) == 1
    assert len(registry.signature("MyOwn", "y").outputs) == 2
    assert op_defs.lookup("MyOwn") is None


def test_handles_are_compared_by_value() -> None:
    """They may refer to arrays, which have no single truth value."""
    one, other = (np.array([np.arange(2), b"x"], object) for _ in range(2))
    assert not compare(one, other).what
    other[1] = b"y"
    assert compare(one, other).what


def _nested() -> None:
    def down(depth: int) -> None:
        if depth:
            down(depth - 1)

    down(10**6)


def _much() -> None:
    raise MemoryError


@pytest.mark.parametrize(("work", "code"), [(_nested, "too-deep"), (_much, "out-of-memory")])
def test_exhausted_resources_are_reported(work: Callable[[], None], code: str) -> None:
    with pytest.raises(ConversionError) as caught:
        guard.diagnosed(work)
    assert caught.value.code == code
    assert caught.value.__context__ is None, "the frames of the failed work would be kept"


@pytest.mark.parametrize(("problem", "code"), [(MemoryError(), "out-of-memory"), (RecursionError(), "too-deep")])
def test_every_entry_point_reports_exhausted_resources(
    problem: Exception, code: str, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    model = tfconvert.convert(models.NEGATION)
    monkeypatch.setattr("tfconvert.exporters.tflite.file.TFLiteFile.write", fail)
    for write in (lambda: bytes(model), lambda: model.save(tmp_path / "x.tflite")):
        with pytest.raises(ConversionError) as caught:
            write()
        assert caught.value.code == code
    monkeypatch.setattr("tfconvert.importers.saved_model._read", fail)
    assert _code(digits_model) == code
    for arguments in (["inspect"], ["opt"], ["-o", str(tmp_path / "x.tflite")]):
        done = CliRunner().invoke(main, [*arguments, str(digits_model)])
        assert (done.exit_code, f"[{code}]" in done.stderr) == (1, True), done.stderr
    assert not list(tmp_path.iterdir())


def test_too_little_memory(tmp_path: Path) -> None:
    """The one test that really has too little, as a limit of the process has it."""
    large = tmp_path / "large.pb"
    with large.open("wb") as file:
        file.truncate(1 << 30)
    done = run_bounded([large, "-o", tmp_path / "x.tflite"], memory=600 << 20)
    assert done.is_diagnosed, done
    assert "[out-of-memory]" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no such device")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["explain"], 1),
        (["opt", "graph.pb"], 1),
        (["graph.pb", "-o", "-"], 1),
        (["diff", "a.tflite", "a.tflite"], 2),
        (["verify", "a.tflite", "--against", "graph.pb"], 2),
    ],
)
def test_a_full_standard_output(arguments: Sequence[str], status: int, tmp_path: Path) -> None:
    """The process ends as one whose file can't be written; `diff` and `verify` don't report a difference."""
    (tmp_path / "graph.pb").write_bytes(models.NEGATION.SerializeToString())
    tfconvert.convert(tmp_path / "graph.pb").save(tmp_path / "a.tflite")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tfconvert", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            check=False,
            text=True,
        )
    assert done.returncode == status
    assert "[output-not-writable]" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\nb", "a\\nb"),
        ("a\n  b", "a\n  b"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\rb", "a\\rb"),
        ("\u202eabc", "\\u202eabc"),
        ("\udcff", "\\udcff"),
        ("\x9b2J", "\\x9b2J"),
        ("a\n  b\tc", "a\n  b\tc"),
        ("a\tb", "a\\tb"),
        ("näme 模型", "näme 模型"),
        ("a\u2028b", "a\\u2028b"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert str(error("code", text, hint=text)) == f"{shown}\n  hint: {shown}"
    line = Diagnostic("code", "told", "tf.Op", text, text, signature=text, layer=text)
    assert "\n" not in str(line).replace("\n  types: ", "").replace("\n  layer: ", "")


def test_names_in_logs_are_escaped(tmp_path: Path) -> None:
    name = "x\ntfconvert: error: forged\x1b[2J"
    for nodes in (graph(node(name, "NoSuchOp")), graph(placeholder(), node(name, "Neg", ["gone"], T=FLOAT))):
        with pytest.raises(ConversionError) as caught:
            tfconvert.convert(nodes, outputs=[name])
        assert "\x1b" not in str(caught.value)
        assert "\ntfconvert" not in str(caught.value)
    report = tfconvert.convert(models.saved(name, name)).report.to_text(verbose=True)
    assert "\x1b" not in report
    assert "\ntfconvert" not in report


def test_the_image_of_a_file_with_odd_names_is_described() -> None:
    """Its tensors' names may be any text, with commas or empty."""
    module = import_tflite(bytes(tfconvert.convert(models.saved("a,b", ""))))
    assert [len(each.inputs) for each in interfaces(module)] == [1]
