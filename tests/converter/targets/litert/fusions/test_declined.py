"""Why fusions decline: every reason that a check can return has a case here, and a family without one fails."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.converter.composites.modules import (
    BOXES,
    CELL,
    CELL_RESULT,
    COUPLED,
    DETECTION,
    FOUND,
    LSTM,
    LSTM_RESULTS,
    NGRAMS,
    NMS,
    NMS_RESULTS,
    SGNN,
    STRING,
    UNPOOLING,
    branching,
    keras,
    looped,
    mark,
    module,
    text,
)
from tfconvert.converter import composites
from tfconvert.converter.composites.marks import KEPT
from tfconvert.converter.targets.litert import fusions
from tfconvert.converter.targets.litert.passes.prepare_composite_functions import PrepareCompositeFunctions

FOLDER = Path(fusions.__path__[0])
# Checks that several families share.
QUESTIONS = Path(composites.__path__[0]) / "composite.py"

SUPPRESSION = mark("non_max_suppression_padded_v2")
LAYER = keras("lstm_1", time_major=False)
IMAGES = ("1x4x4x1xf32", "1x4x4x2xf32")
STRINGS, SPLITS = f"?x{STRING}", "?xi64"


def _table(*arguments: str, result: str = "4x3xf32") -> str:
    return text(mark("embedding_matmul"), arguments, (result,))


def _boxes(*arguments: str, results: tuple[str, ...] = NMS_RESULTS) -> str:
    return text(SUPPRESSION, arguments, results)


def _detect(*arguments: str, **changed: Any) -> str:
    attributes = {name: value for name, value in (DETECTION | changed).items() if value is not None}
    return text(mark("TFLite_Detection_PostProcess", **attributes), arguments, FOUND)


def _unpool(count: int = 2, **changed: Any) -> str:
    return text(mark("addons:MaxUnpooling2D", **UNPOOLING | changed), BOXES[:count], FOUND[:1])


def _warp(*arguments: str) -> str:
    return text(mark("addons:DenseImageWarp"), arguments, IMAGES[:1])


def _tokens(*arguments: str, results: tuple[str, ...] = (STRINGS, SPLITS)) -> str:
    return text(mark("tftext:WhitespaceTokenizer"), arguments, results)


def _ngrams(*arguments: str, results: tuple[str, ...] = (STRINGS,), **attributes: Any) -> str:
    return text(mark("tftext:Ngrams", **attributes or NGRAMS), arguments, results, range(len(results)))


def _project(*arguments: str, result: str = "?x2xf32", **changed: Any) -> str:
    return text(mark("tftext:custom:SgnnProjection", **SGNN | changed), arguments or (STRINGS, SPLITS), (result,))


def _layer(changed: Mapping[int, str], marks: str = LAYER, returned: tuple[int, ...] = (0,)) -> str:
    arguments = [changed.get(index, kind) for index, kind in enumerate(LSTM)]
    return text(marks, arguments, LSTM_RESULTS, returned)


def _with_results(changed: Mapping[int, str]) -> str:
    return text(LAYER, LSTM, [changed.get(index, kind) for index, kind in enumerate(LSTM_RESULTS)])


def _cell(*arguments: str, result: str = CELL_RESULT, name: str = "LSTMCellSimple") -> str:
    return text(mark(name), arguments, (result,))


def _operator(name: str = "my.op", **attributes: Any) -> str:
    return text(mark(name, tfl_fusable_op=True, **attributes), ("2xf32",), ("2xf32",))


# Family -> modules, each with the reason that is reported for it.
CASES: Mapping[str, list[tuple[str, str]]] = {
    "embedding": [
        (_table("7x3xf32"), "has 1 arguments, not 2"),
        (_table("7xf32", "4xi32", result="4xf32"), "argument 0 is not a table"),
        (_table("*xf32", "4xi32"), "rank of argument 0 is not known"),
        (_table("7x3xf64", "4xi32", result="4x3xf64"), "argument 0 holds f64"),
        (_table("7x3xf32", "4xi32", result="4x5xf32"), "result 0 is tensor<4x5xf32>, not tensor<4x3xf32>"),
        (_table("7x3xf32", "4xi32", result="4x3xf64"), "result 0 is tensor<4x3xf64>, not tensor<4x3xf32>"),
    ],
    "detection": [
        (_boxes(*NMS[:4]), "4 arguments, not 5 or more"),
        (_boxes(*NMS, results=NMS_RESULTS[:1]), "1 results, not 2"),
        (_boxes("2x12x4xf32", *NMS[1:]), "argument 0 has rank 3, not 2"),
        (_boxes("*xf32", *NMS[1:]), "rank of argument 0 is not known"),
        (_boxes("12x4xf64", *NMS[1:]), "argument 0 holds f64, not f32"),
        (_boxes(*NMS, results=("*xi32", "i32")), "rank of result 0 is not known"),
        (_boxes(*NMS, results=("1x?xi64", "i32")), "result 0 is tensor<1x?xi64>"),
        (_detect(*BOXES[:2]), "2 arguments, not 3"),
        (_detect(*BOXES, max_detections=None), "'max_detections' is missing"),
        (_detect(*BOXES, y_scale=10), "'y_scale' is not of type float"),
        (_detect(*BOXES, detections_per_class="x"), "'detections_per_class' is not of type int"),
    ],
    "custom_operators": [
        (_unpool(1), "1 arguments, not 2"),
        (_unpool(padding="?"), "'padding' is not SAME or VALID"),
        (_unpool(strides=[1]), "'strides' is not a list of two integers"),
        (_warp("4x4xf32", IMAGES[1]), "argument 0 has rank 2, not 4"),
        (_warp("*xf32", IMAGES[1]), "rank of argument 0 is not known"),
        (_warp("1x4x4x1xf64", IMAGES[1]), "argument 0 holds f64"),
        (_tokens(STRINGS, STRINGS), "2 arguments, not 1"),
        (_tokens(f"1x1x1x{STRING}"), "rank of argument 0 is not known to be 2 or less"),
        (_tokens("?xf32"), "argument 0 holds f32"),
        (_tokens(STRINGS, results=("?xf32",)), "result 0 is not a vector of strings"),
        (_tokens(STRINGS, results=(STRINGS, "?xf32")), "a result after the tokens"),
        (_tokens(STRINGS, results=(STRINGS,)), "1 results, not 2"),
        (_ngrams(STRINGS, results=()), "it has no results"),
        (_ngrams(STRINGS, SPLITS), "2 arguments, not 1"),
        (_ngrams(STRINGS, width=2), "'string_separator' is missing"),
        (_ngrams(STRINGS, **NGRAMS | {"width": True}), "'width' is not of type int"),
        (_ngrams("?xi64", results=("?xi64",)), "argument 0 holds no strings"),
        (_ngrams(STRINGS, "?xi32", results=(STRINGS, "?xi32")), "row splits are not vectors of i64"),
        (_project(hash_seed=["x"]), "'hash_seed' is not a list of integers"),
        (_project(result="?x3xf32"), "not a matrix of 2 columns"),
        (_operator(x=[1, "a"]), "'x' is not a number"),
        (_operator(name=""), "name can't be empty"),
        (_operator(name="x", **{'"\u00e9"': 1}), "has a name that no option can have"),
    ],
    "marked_lstm": [
        (text(LAYER, (*LSTM, "1x4xi1"), LSTM_RESULTS), "it takes a mask"),
        (text(LAYER, LSTM[:5], LSTM_RESULTS), "5 arguments, not 6"),
        (_layer({0: "4x3xf32"}), "argument 0 has rank 2, not 3"),
        (_layer({1: "*xf32"}), "rank of argument 1 is not known"),
        (_layer({5: "20xf64"}), "argument 5 holds f64"),
        (_layer({3: "3x?xf32"}), "shapes of its weights are not all known"),
        (_layer({4: "5x21xf32"}), "don't fit together"),
        (_layer({4: "1x21xf32"}, keras("indy_lstm_1", time_major=True)), "don't fit together"),
        (_layer({0: "1x4x7xf32"}), "its inputs doesn't fit"),
        (_layer({}, keras("lstm_1")), "'time_major' is missing"),
        (_layer({}, keras("lstm_1", time_major=False, go_backwards=1)), "'go_backwards' is not a boolean"),
        (_with_results({1: "*xf32"}), "rank of its outputs is not known"),
        (_with_results({1: "4x5xf32"}), "result 1 is tensor<4x5xf32>, not tensor<1x4x5xf32>"),
        (_with_results({0: "1x5xf64"}), "result 0 is tensor<1x5xf64>, not tensor<1x5xf32>"),
        (_with_results({1: "1x1x5xi32"}), "result 1 is tensor<1x1x5xi32>, not tensor<1x1x5xf32>"),
        (_with_results({2: "2x5xf32"}), "result 2 is tensor<2x5xf32>"),
        (_with_results({3: "1x5xf16"}), "result 3 is tensor<1x5xf16>"),
        (_with_results({4: "i64"}), "result 4 is tensor<i64>, not tensor<f32>"),
        (_layer({}, returned=(0, 3)), "last cell state is used"),
        (branching(LAYER, LSTM, LSTM_RESULTS), "it is run by something other than a call"),
        (_cell(*CELL[:3]), "3 arguments, not 4 or more"),
        (text(mark("LSTMCellSimple"), CELL, (CELL_RESULT, CELL_RESULT)), "2 results, not 1"),
        (_cell("3xf32", *CELL[1:]), "argument 0 has rank 1, not 2"),
        (_cell("*xf32", *CELL[1:]), "rank of argument 0 is not known"),
        (_cell("1x3xf64", *CELL[1:]), "argument 0 holds f64"),
        (_cell(*COUPLED), "the 16 columns of 4 gates for 4 cells"),
        (_cell(*CELL, "4xf32", name="LayerNormalizedLstmCellSimple"), "the 16 columns of 4 gates"),
        (_cell("1x4xf32", *CELL[1:]), "5 rows, which are not the inputs"),
        (_cell("1x3xf32", "8x16xf32", "16xf32", "4x5xf32", result="1x5xf32"), "more elements than its state"),
        (_cell("?x3xf32", *CELL[1:], result="?x2xf32"), "or the batch, are not known"),
        (_cell(*CELL, result="1x7xf32"), "result 0 is tensor<1x7xf32>, not tensor<1x2xf32>"),
        (_cell(*CELL, "1x4xf32"), "argument 4 is not zeros"),
        (looped(mark("LSTMCellSimple"), CELL, (CELL_RESULT,)), "it runs in a loop"),
        (branching(mark("LSTMCellSimple"), CELL, (CELL_RESULT,)), "it is run by something other than a call"),
    ],
}


def _declined(source: str) -> str:
    """Returns the reason why the only function is declined; its body must still exist."""
    rewrite = PrepareCompositeFunctions(allow_custom_ops=True)
    parsed = module(source)
    notes = rewrite.apply(parsed).notes
    assert rewrite.apply(parsed).notes == notes
    assert any(op.name == "tf.Mystery" for op in parsed.walk())
    assert [note.code for note in notes] == [KEPT]
    return notes[0].message.partition(", but ")[2]


@pytest.mark.parametrize(("source", "reason"), [case for cases in CASES.values() for case in cases])
def test_what_does_not_fit_keeps_its_body(source: str, reason: str) -> None:
    assert reason in _declined(source)


def _sentences(function: ast.AST) -> Iterator[str]:
    """Yields patterns of the sentences that a function returns."""
    todo: list[ast.AST] = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield re.escape(node.value)
        elif not isinstance(node, ast.Dict):  # A dict holds what a check expects.
            todo += ast.iter_child_nodes(node)


def _checks(file: Path) -> dict[str, ast.FunctionDef]:
    """Returns a file's functions that return a reason or nothing, by name."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.returns)
    return {node.name: node for node in found if ast.unparse(node.returns or node) == "str | None"}


def _possible(family: str) -> set[str]:
    """Returns patterns of all reasons of a family's checks, those of shared checks that they call included."""
    shared = _checks(QUESTIONS)
    checks = _checks(FOLDER / f"{family}.py").values()
    calls = [node.func for check in checks for node in ast.walk(check) if isinstance(node, ast.Call)]
    called = {func.attr if isinstance(func, ast.Attribute) else ast.unparse(func) for func in calls}
    sources = [*checks, *(shared[name] for name in called & shared.keys())]
    return {sentence for source in sources for sentence in _sentences(source)}


def test_every_family_has_cases() -> None:
    assert set(CASES) == {path.stem for path in FOLDER.glob("*.py") if "\nFUSIONS = (" in path.read_text("utf-8")}


@pytest.mark.parametrize("family", CASES)
def test_every_reason_has_a_case(family: str) -> None:
    possible = _possible(family)
    assert possible
    reasons = [_declined(source) for source, _ in CASES[family]]
    assert not [pattern for pattern in possible if not any(re.fullmatch(pattern, reason) for reason in reasons)]
