"""`tfconvert ops`, `tfconvert.supported_ops`, and the page in the docs: what they say is what conversions do."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tfconvert
from tfconvert.cli.main import main
from tfconvert.converter.pipeline.pass_registry import pass_names
from tfconvert.converter.targets.litert.legalize import legalizations
from tfconvert.converter.targets.stablehlo.legalize.lowerings import FAMILIES
from tfconvert.importers.graph import legacy_ops
from tfconvert.schema.tensorflow import op_defs
from tfconvert.schema.tflite import operators
from tfconvert.tools import op_support, stablehlo_support

BY_NAME = {each.op: each for each in tfconvert.supported_ops()}


def ops(*arguments: str, status: int = 0) -> Result:
    """Runs the verb in this process."""
    result = CliRunner().invoke(main, ["ops", *arguments], prog_name="tfconvert")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == status, result.output
    return result


def test_the_page_in_the_docs_is_current(root: Path) -> None:
    written = (root / "docs" / "support.md").read_text("utf-8")
    assert ops("--markdown").stdout == written, "run: tfconvert ops --markdown > docs/support.md"


def test_every_entry_of_legalization_is_told() -> None:
    entries = list(legalizations.entries())
    ways = Counter(entry.op for entry in entries)
    for entry in entries:
        told = BY_NAME[entry.op]
        # Some are upgraded when a graph is imported, and legalized only where a text has them.
        assert told.how in ("builtin", "decomposed") or (told.how, told.by) == ("rewritten", "import"), entry.op
        assert len(told.ways) == ways[entry.op]
    assert BY_NAME["Conv2D"].ways[0] == op_support.Way(("CONV_2D",), ("float32",))
    assert BY_NAME["Erfc"].how == "decomposed"


def test_all_names_exist() -> None:
    for each in BY_NAME.values():
        assert each.by in ("", "import") or each.by in pass_names(), each
        for name in {name for way in each.ways for name in way.becomes}:
            known = op_defs.lookup(name[3:]) if name.startswith("tf.") else operators.lookup(name.lower())
            assert known is not None or name == "constant", name
    for name in " ".join(op_support._BY_HAND.values()).split():
        assert BY_NAME[name].how == "rewritten", name
    assert legacy_ops.CURRENT.keys() == legacy_ops.LEGACY


def test_ops_are_told_apart() -> None:
    kinds = {
        "Relu": "builtin",
        "Acosh": "decomposed",
        "PartitionedCall": "rewritten",
        "ConjugateTranspose": "folded",
        "CTCGreedyDecoder": "flex",
        "PyFunc": "refused",
        "TopK": "rewritten",
        "BatchSvd": "custom",
        "ScatterAdd": "rewritten",
        "TensorListStack": "rewritten",
    }
    assert {name: BY_NAME[name].how for name in kinds} == kinds
    assert "Python" in BY_NAME["PyFunc"].reason
    assert "StaticHashTable" in BY_NAME["MutableHashTableV2"].reason
    assert BY_NAME["Print"].reason == "nothing is printed when the model runs"
    assert BY_NAME["ScatterAdd"].ways == (op_support.Way(("tf.ResourceScatterAdd",)),)


@pytest.mark.parametrize("op", [each.op for each in BY_NAME.values() if each.how == "folded"])
def test_what_is_folded_can_not_be_converted_otherwise(op: str) -> None:
    assert not legalizations.everything()[1].for_root(f"tf.{op}")
    assert not legalizations.everything()[0].for_root(f"tf.{op}")


def test_a_folded_op_converts_only_where_its_operands_are_constants(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    text = """
    func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
      %c = "tf.Const"() <{value = dense<[3, 4]> : tensor<2xi32>}> : () -> tensor<2xi32>
      %0 = "tf.PopulationCount"(OPERAND) : (tensor<2xi32>) -> tensor<2xui8>
      %1 = "tf.Cast"(%0) : (tensor<2xui8>) -> tensor<2xi32>
      %2 = "tf.AddV2"(%1, %x) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
      func.return %2 : tensor<2xi32>
    }
    """
    assert BY_NAME["PopulationCount"].how == "folded"
    model.write_text(text.replace("OPERAND", "%c"))
    assert dict(tfconvert.convert(model).report.operators) == {"ADD": 1}
    model.write_text(text.replace("OPERAND", "%x"))
    with pytest.raises(tfconvert.ConversionError, match="PopulationCount"):
        tfconvert.convert(model)


def test_text_lists_what_matches() -> None:
    exact = ops("relu6").stdout
    assert exact.splitlines()[0].split()[:3] == ["Relu6", "builtin", "RELU6"]
    listed = ops("Resize*near").stdout.partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed] == ["ResizeBilinear"]
    assert "PyFunc" not in ops().stdout
    assert "refused" in ops("PyFunc").stdout
    assert "did you mean Conv2D" in ops("Conv2x", status=1).stderr


def test_json_is_plain() -> None:
    data = json.loads(ops("tf.Relu6", "--json").stdout)
    assert data["schema_version"] == 1
    (relu6, *_) = data["ops"]
    assert (relu6["op"], relu6["how"], relu6["ways"][0]["becomes"]) == ("Relu6", "builtin", ["RELU6"])
    assert any(each["interface"] == "lstm_*" for each in data["functions"])
    assert len(json.loads(ops("--json").stdout)["ops"]) == len(BY_NAME)


def test_the_page_of_stablehlo_is_current(root: Path) -> None:
    written = (root / "docs" / "support_stablehlo.md").read_text("utf-8")
    told = ops("--target", "iree", "--markdown").stdout
    assert told == written, "run: tfconvert ops --target iree --markdown > docs/support_stablehlo.md"


@pytest.mark.parametrize("target", ["stablehlo", "iree"])
def test_every_lowering_to_stablehlo_is_told(target: str) -> None:
    told = {each.op: each for each in stablehlo_support.supported_ops(target)}
    # Texts may have ops that no graph has.
    lowered = [op for lowerings in FAMILIES.values() for op in lowerings if op_defs.lookup(op) is not None]
    wrong = {op: told[op].how for op in lowered if told[op].how not in ("legalized", "refused")}
    assert wrong == {}
    kinds = {
        "Cholesky": "refused" if target == "iree" else "legalized",
        "If": "legalized",
        "TopK": "legalized",
        "PartitionedCall": "rewritten",
        "PyFunc": "refused",
        "BatchSvd": "unknown",
        "LookupTableFindV2": "rewritten",
    }
    assert {name: told[name].how for name in kinds} == kinds
    for each in told.values():
        assert each.by in ("", "import") or each.by in pass_names(), each


def test_targets_are_told_apart_on_the_terminal() -> None:
    assert ops("relu6").stdout != ops("--target", "stablehlo", "relu6").stdout
    assert "IREE does not compile it" in ops("--target", "iree", "Cholesky").stdout
    assert json.loads(ops("--target", "stablehlo", "Cholesky", "--json").stdout)["ops"][0]["how"] == "legalized"
