"""`tfconvert opt`: each option, on text and on models."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

import tfconvert
from tfconvert.cli.main import main
from tfconvert.importers.mlir import import_mlir

IDENTITY = """\
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "tf.Identity"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "tf.Relu"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "tf.Const"() <{value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>}> : () -> tensor<3xf32>
  "tf.NoSuchOp"(%2) : (tensor<3xf32>) -> ()
  func.return %1 : tensor<2xf32>
}
"""
UNKNOWN_CALL = """\
// expected-error@+1 {{%y is used but never defined}}
"tf.Relu"(%y) : (tensor<f32>) -> tensor<f32>
// -----
"tf.NoSuchOp"() : () -> ()
// -----
func.func @main() -> tensor<f32> {
  // expected-error@+1 {{no such operator}}
  %0 = "tf.NoSuchOp"() : () -> tensor<f32>
  func.return %0 : tensor<f32>
}
"""
# The note names the call's place.
KEPT_COMPOSITE = """\
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-note@+1 {{the function 'f' implements 'embedding_lookup', but}}
  %0 = "tf.PartitionedCall"(%x) <{f = @f}> : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32> attributes {tf._implements = "embedding_lookup"} {
  %0 = "tf.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
"""


def opt(*arguments: str | Path, text: str | None = None) -> Result:
    """Runs the verb in this process; a traceback is never right."""
    result = CliRunner().invoke(main, ["opt", *map(str, arguments)], input=text, prog_name="tfconvert")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Returns a file of IR."""
    path = tmp_path / "source.mlir"
    path.write_text(IDENTITY)
    return path


def test_text_reads_files_below_the_asset_root_only(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("first\nsecond\n")
    path = tmp_path / "table.mlir"
    path.write_text(f"""
    "tf_saved_model.asset"() <{{sym_name = "a", filename = "{words}"}}> : () -> ()
    func.func @main(%x: tensor<2x!tf_type.string>) -> tensor<2xi64> {{
      %t = "tf.HashTableV2"() <{{container = "", shared_name = "t", use_node_name_sharing = false,
          key_dtype = !tf_type.string, value_dtype = i64}}> : () -> tensor<!tf_type.resource>
      %f = "tf.Const"() <{{value = dense<"{words}"> : tensor<!tf_type.string>}}> : () -> tensor<!tf_type.string>
      "tf.InitializeTableFromTextFileV2"(%t, %f) <{{
        key_index = -2, value_index = -1, vocab_size = -1, delimiter = "\\09", offset = 0
      }}> : (tensor<!tf_type.resource>, tensor<!tf_type.string>) -> ()
      %d = "tf.Const"() <{{value = dense<-1> : tensor<i64>}}> : () -> tensor<i64>
      %0 = "tf.LookupTableFindV2"(%t, %x, %d)
          : (tensor<!tf_type.resource>, tensor<2x!tf_type.string>, tensor<i64>) -> tensor<2xi64>
      func.return %0 : tensor<2xi64>
    }}""")
    run = ["-p", "lower-tables"]
    text = path.read_text()
    for refused in (opt(path, *run), opt("-", *run, text=text), opt(path, *run, "--asset-root", tmp_path / "other")):
        assert refused.exit_code == 1
        assert "bad-asset" in refused.stderr
        assert "first" not in refused.output
    for read in (opt(path, *run, "--asset-root", tmp_path), opt("-", *run, "--asset-root", tmp_path, text=text)):
        assert read.exit_code == 0, read.stderr
        assert 'dense<["first", "second"]>' in read.stdout
    with pytest.raises(tfconvert.ConversionError, match="the text may not name files"):
        tfconvert.convert(path)
    assert b"second" in bytes(tfconvert.convert(tfconvert.Source(path, asset_root=tmp_path)))
    with pytest.raises(tfconvert.ConversionError, match="models have their own"):
        tfconvert.convert(tfconvert.Source(tmp_path, asset_root=tmp_path))


def test_without_passes_it_is_what_was_imported(source: Path) -> None:
    shown = opt(source)
    assert shown.exit_code == 0
    assert str(import_mlir(shown.stdout)) == str(import_mlir(IDENTITY))
    assert opt("-", text=IDENTITY).stdout == shown.stdout
    assert opt("-", "-o", "-", text=IDENTITY).stdout == shown.stdout


def test_passes_run_in_order(source: Path) -> None:
    shown = opt(source, "-p", "canonicalize,legalize{allow_custom_ops=true}")
    assert shown.exit_code == 0, shown.stderr
    assert "tf.Identity" not in shown.stdout
    assert "tfl.relu" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-p", "canonicalise"], "did you mean canonicalize"),
        (["-p", "legalize{allow_custom=1}"], "allow_custom_ops"),
        (["-p", "cse{"], "malformed-pipeline"),
        (["--pipeline", "tflit"], "did you mean tflite"),
        (["--until", "legalise"], "did you mean legalize"),
        (["-p", "cse", "--until", "legalize"], "wrong-option"),
        (["-p", "cse", "--print-ir-after", "inline"], "unknown-pass"),
        (["--elide", "-1"], "--elide"),
    ],
)
def test_wrong_calls_have_status_2(source: Path, arguments: list[str], text: str) -> None:
    result = opt(source, *arguments)
    assert result.exit_code == 2
    assert text in result.stderr
    assert result.stdout == ""


def test_no_input_is_a_wrong_call() -> None:
    assert opt("-p", "cse").exit_code == 2


def test_passes_and_pipelines_are_listed() -> None:
    listed = opt("--list-passes").stdout
    assert "allow_custom_ops=true|false (default: false)" in listed
    assert "  inline " in listed
    assert "  tf-standard " in listed


def test_the_output_file_appears_whole_or_not_at_all(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.mlir"
    result = opt(source, "-o", output)
    assert (result.exit_code, result.stdout) == (0, "")
    assert output.read_text() == opt(source).stdout
    assert opt(source, "-p", "legalize", "-o", tmp_path / "not.mlir").exit_code == 1
    assert opt(source, "-o", tmp_path / "no" / "such.mlir").exit_code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.mlir", "source.mlir"]


def test_constants_are_elided_on_demand(source: Path) -> None:
    assert "dense<[1.0" in opt(source).stdout
    assert "dense<[1.0" in opt(source, "--elide", "3").stdout
    assert "__elided__" in opt(source, "--elide", "2").stdout


def test_locations_are_printed_on_demand(source: Path) -> None:
    assert "loc(" not in opt(source).stdout
    assert f'"tf.Relu"(%0) : (tensor<2xf32>) -> tensor<2xf32> loc("{source}":3:3)' in opt(source, "--locations").stdout


def test_ir_between_passes_and_times_go_to_the_error_stream(source: Path) -> None:
    result = opt(
        source,
        "-p",
        "canonicalize,cse",
        "--print-ir-before",
        "canonicalize",
        "--print-ir-after",
        "cse",
        "--time-passes",
    )
    marks = [line for line in result.stderr.splitlines() if line.startswith("// -----")]
    assert marks == ["// ----- IR before canonicalize -----", "// ----- IR after cse -----"]
    assert [line.split()[0] for line in result.stderr.splitlines()[-4:]] == ["pass", "canonicalize", "cse", "total"]
    assert result.stdout == opt(source, "-p", "canonicalize,cse").stdout
    marks = opt(source, "-p", "canonicalize,cse", "--print-ir-after-all").stderr.split("// ----- IR after ")[1:]
    assert [mark.split()[0] for mark in marks] == ["canonicalize", "cse"]


def test_each_part_runs_for_itself() -> None:
    result = opt("-", "-p", "legalize", "--split-input-file", text=UNKNOWN_CALL + "// -----\n" + "module {}")
    assert result.exit_code == 1
    assert "<stdin>:2:11: %y is used but never defined" in result.stderr
    assert "<stdin>:8" in result.stderr
    assert result.stdout.count("// -----") == 1


def test_announced_diagnostics_are_compared() -> None:
    arguments = ["-", "-p", "legalize", "--split-input-file", "--verify-diagnostics"]
    right = UNKNOWN_CALL.replace('"tf.NoSuchOp"() : () -> ()', "module {}", 1)
    result = opt(*arguments, text=right)
    assert result.exit_code == 0, result.stderr
    result = opt(*arguments, text=right.replace("never defined}}", "ever defined}}"))
    assert result.exit_code == 1
    assert "unexpected error: %y is used" in result.stderr
    assert 'the expected error "%y is used but ever defined" at line 2 did not come' in result.stderr


@pytest.mark.parametrize("count", [1, 2])
def test_announced_notes_are_compared_part_by_part(count: int) -> None:
    arguments = ["-", "-p", "prepare-composite-functions", "--split-input-file", "--verify-diagnostics"]
    right = "// -----\n".join([KEPT_COMPOSITE] * count)
    result = opt(*arguments, text=right)
    assert (result.exit_code, result.stderr) == (0, "")
    result = opt(*arguments, text=right + "// -----\n" + KEPT_COMPOSITE.replace("{{the function", "{{no function"))
    assert result.exit_code == 1
    assert result.stderr.count("unexpected note: ") == result.stderr.count("did not come") == 1


def test_notes_are_reported_once_for_each_part() -> None:
    text = KEPT_COMPOSITE + "// -----\n" + KEPT_COMPOSITE
    result = opt("-", "-p", "prepare-composite-functions", "--split-input-file", text=text)
    assert result.exit_code == 0
    assert result.stderr.count("[composite-kept]") == 2


def test_text_options_need_text(digits_model: Path) -> None:
    assert opt(digits_model, "--split-input-file").exit_code == 2


def test_mistakes_in_the_text_have_status_1(tmp_path: Path) -> None:
    for name, content in (("a.mlir", b"module {"), ("b.mlir", b"\xff\xfe")):
        (tmp_path / name).write_bytes(content)
        result = opt(tmp_path / name)
        assert result.exit_code == 1
        assert name in result.stderr
    assert opt("-", text="module {").exit_code == 1


def test_a_model_is_followed_through_the_pipeline(digits_model: Path) -> None:
    imported = opt(digits_model)
    assert "tf_executor.graph" in imported.stdout
    standard = opt(digits_model, "--pipeline", "tf-standard", "--verify-each")
    assert standard.stdout == opt(digits_model, "--until", "shape-inference").stdout
    assert '"tf.Conv2D"' in standard.stdout
    whole = opt(digits_model, "--pipeline", "tflite", "--verify-each", "--signature", "serve")
    assert '"tfl.conv_2d"' in whole.stdout
    assert '"tf.' not in whole.stdout
    again = opt("-", "-p", "legalize", text=standard.stdout)
    assert "tfl.conv_2d" in again.stdout


@pytest.mark.parametrize("stage", [[], ["--until", "shape-inference"], ["--pipeline", "tflite"]])
def test_what_is_piped_is_whole(digits_model: Path, stage: list[str]) -> None:
    text = opt(digits_model, *stage).stdout
    assert "__elided__" not in text
    assert opt("-", text=text).stdout == text


def test_the_converted_file_can_be_looked_at(digits_model: Path, tmp_path: Path) -> None:
    converted = tmp_path / "digits.tflite"
    assert CliRunner().invoke(main, [str(digits_model), "-o", str(converted), "-q"]).exit_code == 0
    shown = opt(converted)
    assert shown.exit_code == 0, shown.stderr
    assert '"tfl.conv_2d"' in shown.stdout
    assert opt("-", text=shown.stdout).stdout == shown.stdout
    assert opt(converted, "--signature", "x").exit_code == 2


def test_text_is_converted(digits_model: Path, tmp_path: Path) -> None:
    text, direct, converted = tmp_path / "digits.mlir", tmp_path / "a.tflite", tmp_path / "b.tflite"
    assert opt(digits_model, "--until", "inline", "-o", text).exit_code == 0
    for model, output in ((digits_model, direct), (text, converted)):
        result = CliRunner().invoke(main, [str(model), "-o", str(output), "-q"])
        assert result.exit_code == 0, result.stderr
    assert abs(converted.stat().st_size - direct.stat().st_size) < 2_000


def test_results_are_checked_between_passes(digits_model: Path) -> None:
    result = opt(digits_model, "--until", "shape-inference", "--check-passes", "--input-shape", "pixels=2,8,8,1")
    assert result.exit_code == 0, result.stderr
    assert "error" not in result.stderr


def test_a_conversion_can_be_checked_pass_by_pass(digits_model: Path, tmp_path: Path) -> None:
    arguments = [str(digits_model), "-o", str(tmp_path / "x.tflite"), "--check-passes", "-q"]
    result = CliRunner().invoke(main, arguments, prog_name="tfconvert")
    assert (result.exit_code, result.output) == (0, "")


def test_a_model_may_have_a_verbs_name(tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-m", "tfconvert", "./opt", "-o", "x.tflite"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )
    assert done.returncode == 2
    assert "not-a-saved-model" in done.stderr


def test_a_closed_standard_output_is_an_error(digits_model: Path) -> None:
    command = f"{sys.executable} -m tfconvert opt {digits_model} >&-"
    done = subprocess.run(["bash", "-c", command], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "standard output is closed [output-not-writable]" in done.stderr


def test_a_closed_pipe_is_not_a_traceback(digits_model: Path) -> None:
    command = f"{sys.executable} -m tfconvert opt {digits_model} | head -c 10"
    done = subprocess.run(["bash", "-c", command], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout == "builtin.mo"
    assert "Traceback" not in done.stderr


def test_help_shows_the_verbs_and_needs_nothing() -> None:
    code = (
        "import sys; from tfconvert.cli.main import main\n"
        "for arguments in (['--help'], ['opt', '--help']):\n"
        "    main(arguments, standalone_mode=False)\n"
        "print([name for name in ('numpy', 'tfconvert.schema.ir') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
    assert re.search(r"^  opt +Print a model as MLIR", done.stdout, re.MULTILINE)
    assert "--verify-diagnostics" in done.stdout


def test_the_page_shows_what_comes(root: Path) -> None:
    section = (root / "docs" / "opt.md").read_text("utf-8")
    text, shown, mistake = (block.partition("\n")[2] for block in section.split("```")[1:6:2])
    command, _, expected = shown.partition("\n")
    assert opt("-", *command.split()[4:], text=text).stdout == expected
    result = opt("-", text=text.replace("(%1)", "(%l)"))
    assert result.stderr.replace("<stdin>", "wrong.mlir") == mistake.partition("\n")[2]
    options = set(re.findall(r"`(--?[a-z-]+)", section))
    assert options <= set(re.findall(r"(--?[a-z-]+)", opt("--help").stdout)) | {"-p"}


@pytest.mark.slow
def test_tensorflow_reads_what_is_piped(tf: ModuleType, digits_model: Path) -> None:
    for stage in ([], ["--until", "executor-to-functional"], ["--pipeline", "tf-standard"], ["--locations"]):
        text = opt(digits_model, *stage).stdout
        assert "func.func" in tf.mlir.experimental.run_pass_pipeline(text, "", False)
