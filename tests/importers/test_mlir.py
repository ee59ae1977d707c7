"""MLIR text: valid text is read, errors are reported with their place, and nothing else ever happens."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfconvert.exporters.mlir import write_mlir
from tfconvert.importers.mlir import import_mlir
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.ir.locations import FileLineColLoc, NameLoc

RELU = """\
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tf.Relu"(%x) {device = "a \\22b\\22 // c"} : (tensor<2xf32>) -> tensor<2xf32> // a comment with a "
  func.return %0 : tensor<2xf32> loc("named")
}
"""
RICH = """\
module attributes {tf.versions = {bad_consumers = [], producer = 2 : i32}} {
  func.func @f(%x: tensor<?x2xf32>) -> tensor<*xf32> {
    %0 = tf_executor.graph {
      %c, %t = tf_executor.island wraps "tf.Const"() <{value = dense<[[1.0, -2.5]]> : tensor<1x2xf32>}> : () -> tensor<1x2xf32>
      %y, %u = tf_executor.island wraps "tf.AddV2"(%x, %c) : (tensor<?x2xf32>, tensor<1x2xf32>) -> tensor<*xf32>
      tf_executor.fetch %y : tensor<*xf32>
    }
    func.return %0 : tensor<*xf32>
  }
}
"""  # noqa: E501


def failure(text: str, first_line: int = 1) -> Diagnostic:
    """Returns the only diagnostic of a text that can't be read."""
    with pytest.raises(ConversionError) as caught:
        import_mlir(text, "file.mlir", first_line=first_line)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def test_ops_without_a_location_get_their_place() -> None:
    module = import_mlir(RELU, "file.mlir", first_line=11)
    (function,) = module.ops
    relu, back = function.regions[0].block.ops
    assert isinstance(relu.location, FileLineColLoc)
    assert (relu.location.line, relu.location.column) == (12, 3)
    assert isinstance(back.location, NameLoc)


def test_nothing_is_an_empty_module() -> None:
    assert not list(import_mlir("  // nothing\n\n").ops)


@pytest.mark.parametrize(
    ("text", "place", "message", "under_caret"),
    [
        ('"tf.A"(', "1:8", "operand expected", ""),
        ('%0 = "tf.A"() : ( -> tensor<f32>', "1:19", "type expected", "->"),
        ('\n\n\t"tf.A"() : () -> tensor<2xf33>', "3:28", "type", "f33>"),
        ('"tf.A"() {a = "no end} : () -> ()', "1:15", "expected a string that ends", '"no end'),
        ('"tf.A"() {a = "\\zz"} : () -> ()', "1:15", "expected a string that ends", '"\\zz"'),
        ('"tf.A"(%x) : (i32) -> ()', "1:8", "%x is used but never defined", "%x)"),
        ('%x = "tf.A"() : () -> i32\n%x = "tf.A"() : () -> i32', "2:1", "already defined", "%x"),
        ('"no.such"() : () -> ()', None, "no.such is not registered", None),
        ('"tf.A"() {a = ' + "9" * 5000 + "} : () -> ()", None, "4300 digits", None),
    ],
)
def test_mistakes_are_reported_with_line_column_and_caret(
    text: str, place: str | None, message: str, under_caret: str | None
) -> None:
    problem = failure(text)
    assert problem.code == "malformed-mlir"
    first, source, caret = problem.message.split("\n")
    assert message in first
    assert problem.location == f"file.mlir:{place}" or place is None
    if under_caret is not None:
        assert source.expandtabs()[caret.expandtabs().index("^") :].startswith(under_caret)


def test_a_long_line_is_cut_around_the_mistake() -> None:
    problem = failure('"tf.A"() {a = "' + "x" * 10_000 + '", b = } : () -> ()')
    _, source, caret = problem.message.split("\n")
    assert len(source) < 200
    assert source[caret.index("^") :].startswith("}")


def test_a_second_place_is_named() -> None:
    text = '"tf.A"() ({\n^a:\n "tf.Y"() : () -> ()\n^a:\n "tf.Y"() : () -> ()\n}) : () -> ()'
    problem = failure(text)
    assert problem.location == "file.mlir:4:1"
    assert "re-declaration of block 'a', which is on line 2" in problem.message


def test_a_broken_rule_is_reported_with_the_op() -> None:
    problem = failure(RELU.replace("-> tensor<2xf32> {", "-> tensor<3xf32> {"), first_line=5)
    assert (problem.code, problem.op, problem.node) == ("invalid-ir", "func.return", "named")
    problem = failure(RELU.replace('loc("named")', "").replace("-> tensor<2xf32> {", "-> tensor<3xf32> {"))
    assert problem.location == "file.mlir:3"
    assert '"func.return"(%0) : (tensor<2xf32>)' in problem.message


def test_a_use_before_the_definition_is_refused() -> None:
    text = """
    func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = "tf.Relu"(%1) : (tensor<f32>) -> tensor<f32>
      %1 = "tf.Relu"(%x) : (tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    """
    problem = failure(text)
    assert problem.code == "invalid-ir"
    assert "operand 0 (%1) is not defined before its use" in problem.message.replace(" is", " (%1) is")
    assert problem.location == "file.mlir:3"


def asset(filename: Path | str) -> str:
    return f'"tf_saved_model.asset"() <{{sym_name = "a", filename = "{filename}"}}> : () -> ()\n'


def test_files_are_named_below_the_asset_root_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret.txt"
    root.mkdir()
    words, link = root / "words.txt", root / "link.txt"
    words.touch()
    secret.touch()
    link.symlink_to(secret)
    monkeypatch.chdir(tmp_path)
    for named in (words, "root/words.txt", root / "later.txt"):
        import_mlir(asset(named), asset_root=root)
        import_mlir(asset(named), asset_root="root")
        with pytest.raises(ConversionError) as caught:
            import_mlir(asset(named), "file.mlir")
        (problem,) = caught.value.diagnostics
        assert (problem.code, problem.location) == ("bad-asset", "file.mlir:1")
        assert "--asset-root" in problem.hint
    nested = "module { " + asset(secret).strip() + " }"
    outside = (secret, link, root / ".." / "secret.txt", "secret.txt", "")
    for text in (*(asset(named) for named in outside), nested):
        with pytest.raises(ConversionError) as caught:
            import_mlir(text, asset_root=root)
        assert caught.value.code == "bad-asset"


@pytest.mark.parametrize("depth", [60, 100, 300, 20_000])
@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ('"tf.A"() ({', "}) : () -> ()\n"),
        ("module {", "}"),
        ('"tf.A"() {a = [', "]} : () -> ()"),
        ('"tf.A"() : () -> () loc(callsite("a" at ', "))"),
    ],
)
def test_deep_nesting_is_read_or_refused(begin: str, end: str, depth: int) -> None:
    head, tail = (begin, end) if begin.startswith(('"tf.A"() ({', "module")) else (begin[-14:], end[0])
    read_or_refused(begin + head * depth + tail * depth + end)


def read_or_refused(text: str) -> None:
    """Checks that a text yields a module that can be printed, or an error of ours."""
    refused: ConversionError | None = None
    try:
        write_mlir(import_mlir(text, "file.mlir"), io.StringIO())
    except ConversionError as problem:
        refused = problem
    if refused is not None:
        assert refused.code in ("malformed-mlir", "invalid-ir")
        assert "file.mlir" in str(refused)


@given(st.sampled_from([RELU, RICH]), st.data())
@settings(max_examples=150)
def test_damaged_texts_are_read_or_refused(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 20, len(text))))
    read_or_refused(text[:start] + data.draw(st.text(max_size=8)) + text[end:])


@given(st.sampled_from([RELU, RICH]), st.data())
@settings(max_examples=100)
def test_truncated_texts_are_read_or_refused(text: str, data: st.DataObject) -> None:
    read_or_refused(text[: data.draw(st.integers(0, len(text)))])
