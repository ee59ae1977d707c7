"""Marked functions as TensorFlow saves them: the operators compute in LiteRT what the bodies compute in TensorFlow.

The callers and other ops in the bodies don't matter.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.composites.modules import DETECTION, UNPOOLING
from tests.support.flat_settings import converted
from tests.support.litert import RunTFLite
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tfl

Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[..., Any]
RNG = np.random.default_rng(11)
TABLE = RNG.normal(size=(7, 3)).astype(np.float32)
IDS = np.array([6, 0, 2, 2], np.int32)
IMAGE, FLOW = ([1, 4, 4, 1], "float32"), ([1, 4, 4, 2], "float32")


def _mark(name: str, **attributes: Any) -> str:
    """Returns a value for `experimental_implements`."""
    fields = {bool: "b", int: "i", float: "f", str: "s"}

    def written(value: Any) -> str:
        if isinstance(value, list):
            return f"list {{ {' '.join(map(written, value))} }}"
        return f"{fields[type(value)]}: {str(value).lower() if isinstance(value, bool) else repr(value)}"

    pairs = "".join(f' attr {{ key: "{key}" value {{ {written(value)} }} }}' for key, value in attributes.items())
    return f'name: "{name}"{pairs}' if attributes else name


def _save(tf: ModuleType, folder: Path, function: Function, *specs: tuple[list[int], str]) -> None:
    holder = tf.Module()
    arguments = [tf.TensorSpec(shape, kind, f"a{index}") for index, (shape, kind) in enumerate(specs)]
    holder.f = tf.function(function, input_signature=arguments)
    tf.saved_model.save(holder, str(folder), signatures=holder.f)


def _check(
    tf: ModuleType, folder: Path, run_tflite: RunTFLite, function: Function, *inputs: Array, **options: Any
) -> tfconvert.Model:
    """Converts a function of tensors and compares its one result with TensorFlow's; returns the model."""
    _save(tf, folder, lambda *arguments: {"y": function(*arguments)}, *((list(x.shape), x.dtype.name) for x in inputs))
    model = converted(folder, **options)
    expected = function(*map(tf.constant, inputs))
    np.testing.assert_allclose(run_tflite(bytes(model), list(inputs))[0], expected, atol=1e-5)
    return model


@pytest.fixture(scope="module")
def rows(tf: ModuleType) -> Function:
    """Returns a marked function that looks rows of a table up, in a way that doesn't show it."""
    body = lambda table, ids: tf.tensordot(tf.one_hot(ids, 7), table, 1)  # noqa: E731
    function: Function = tf.function(body, experimental_implements="embedding_matmul")
    return function


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize(("shape", "operator"), [((4,), "EMBEDDING_LOOKUP"), ((2, 2), "GATHER"), ((), "GATHER")])
def test_ids(
    tf: ModuleType,
    tmp_path: Path,
    run_tflite: RunTFLite,
    rows: Function,
    kind: str,
    shape: tuple[int, ...],
    operator: str,
) -> None:
    ids = np.resize(IDS, shape).astype(kind)
    model = _check(tf, tmp_path, run_tflite, lambda values: rows(TABLE, values), ids)
    # Places in another form than a vector are made one, if they are not wider than the operator takes them.
    assert set(model.report.operators) <= {operator, "CAST", "RESHAPE"}


def test_one_function_called_with_two_shapes(
    tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite, rows: Function
) -> None:
    one = rows.get_concrete_function(tf.TensorSpec([7, 3]), tf.TensorSpec([None], "int32"))  # type: ignore[attr-defined]
    model = _check(
        tf,
        tmp_path,
        run_tflite,
        lambda a, b: tf.concat([one(tf.constant(TABLE), each) for each in (a, b)], 0),
        IDS,
        IDS[:2],
    )
    assert model.report.operators["EMBEDDING_LOOKUP"] == 2
    assert model.report.rewrites["prepare-composite-functions"] == {"embedding-matmul": 1}


def test_control_flow(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite, rows: Function) -> None:
    def choose(ids: Any) -> Any:
        once = tf.cond(ids[0] > 3, lambda: rows(TABLE, ids), lambda: rows(-TABLE, ids))
        return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y + rows(TABLE, ids)), (0, once))[1]

    operators = _check(tf, tmp_path, run_tflite, choose, IDS).report.operators
    assert operators["EMBEDDING_LOOKUP"] == 3
    assert "ONE_HOT" not in operators


def test_signatures_share_a_function(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite, rows: Function) -> None:
    holder = tf.Module()
    holder.table = tf.Variable(TABLE)
    spec = [tf.TensorSpec([4], tf.int32, "ids")]
    signatures = {
        "plain": tf.function(lambda ids: {"y": rows(holder.table, ids)}, spec),
        "doubled": tf.function(lambda ids: {"y": 2 * rows(holder.table, ids)}, spec),
    }
    tf.saved_model.save(holder, str(tmp_path), signatures=signatures)
    content = bytes(tfconvert.convert(tmp_path))
    for key, factor in (("plain", 1), ("doubled", 2)):
        np.testing.assert_allclose(run_tflite(content, {"ids": IDS}, signature=key)[0], factor * TABLE[IDS])


@pytest.mark.parametrize("custom", [False, True])
def test_a_composite_within_a_composite(
    tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite, rows: Function, custom: bool
) -> None:
    outer = tf.function(lambda ids: rows(TABLE, ids) + 1, experimental_implements=_mark("my.op", tfl_fusable_op=True))
    if custom:
        _save(tf, tmp_path, lambda ids: {"y": outer(ids)}, ([4], "int32"))
        assert dict(tfconvert.convert(tmp_path, target=tfconvert.LiteRT(allow_custom_ops=True)).report.operators) == {
            "my.op": 1
        }
    else:
        model = _check(tf, tmp_path, run_tflite, outer, IDS)
        assert dict(model.report.operators) == {"EMBEDDING_LOOKUP": 1, "ADD": 1}


def _by_python(tf: ModuleType, table: Any, ids: Any) -> Any:
    return tf.ensure_shape(tf.py_function(tf.gather, [table, ids], tf.float32), [4, 3])


def _by_what_nobody_has(tf: ModuleType, table: Any, ids: Any) -> Any:
    zeros = tf.zeros_like(table)
    return tf.cast(tf.gather(tf.raw_ops.BesselJ0(x=zeros) * table, ids), tf.float32)


@pytest.mark.parametrize("body", [_by_python, _by_what_nobody_has])
def test_a_body_that_only_stands_for_the_operator(
    tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite, body: Function
) -> None:
    look_up = tf.function(lambda *arguments: body(tf, *arguments), experimental_implements="embedding_lookup")
    model = _check(tf, tmp_path, run_tflite, lambda ids: look_up(TABLE, ids), IDS)
    assert dict(model.report.operators) == {"EMBEDDING_LOOKUP": 1}


@pytest.mark.parametrize(("body", "code"), [(_by_python, "python-function"), (_by_what_nobody_has, "unsupported-op")])
def test_where_such_a_body_has_to_stay_the_error_says_why(
    tf: ModuleType, tmp_path: Path, body: Function, code: str
) -> None:
    look_up = tf.function(lambda *arguments: body(tf, *arguments), experimental_implements="embedding_lookup")
    _save(tf, tmp_path, lambda ids: {"y": look_up(tf.constant(TABLE, tf.float64), ids)}, ([4], "int32"))
    with pytest.raises(ConversionError, match="argument 0 holds f64") as caught:
        tfconvert.convert(tmp_path)
    assert list(dict.fromkeys(each.code for each in caught.value.diagnostics)) == [code, "composite-kept"]


@pytest.mark.parametrize("is_normalized", [False, True])
@pytest.mark.parametrize("gates", ["cifo", "cfo"])
def test_ten_steps_of_a_cell(tf: ModuleType, tmp_path: Path, gates: str, is_normalized: bool) -> None:
    cells, outputs, features, batch = 4, 2, 3, 2
    columns = cells * len(gates)
    shapes = [(features + outputs, columns), (columns,), (cells, outputs)] + [(columns,)] * is_normalized
    weights = [RNG.normal(size=shape).astype(np.float32) for shape in shapes]

    def step(x: Any, h: Any, c: Any, kernel: Any, bias: Any, projection: Any, scales: Any = None) -> Any:
        sums = tf.split(tf.concat([x, h], 1) @ kernel, len(gates), 1)
        if scales is not None:
            moments = [tf.nn.moments(each, [1], keepdims=True) for each in sums]
            sums = [
                (each - mean) / tf.sqrt(variance + 1e-8) * scale
                for each, (mean, variance), scale in zip(sums, moments, tf.split(scales, len(gates)), strict=True)
            ]
        gate = {name: each + part for name, each, part in zip(gates, sums, tf.split(bias, len(gates)), strict=True)}
        kept = tf.sigmoid(gate["f"])
        c = kept * c + (tf.sigmoid(gate["i"]) if "i" in gate else 1 - kept) * tf.tanh(gate["c"])
        c = tf.clip_by_value(c, -10, 10)
        return (tf.sigmoid(gate["o"]) * tf.tanh(c)) @ projection, c

    zeros = tf.zeros([batch, outputs]), tf.zeros([batch, cells])
    name = "LayerNormalizedLstmCellSimple" if is_normalized else "LSTMCellSimple"
    cell = tf.function(
        lambda x, *arguments: step(x, *arguments[-2:], *arguments[:-2])[0],
        experimental_implements=name if "i" in gates else f"{name},CoupleInputForgetGates",
    )
    _save(tf, tmp_path, lambda x: {"y": cell(x, *weights, *zeros)}, ([batch, features], "float32"))
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(
        model_content=bytes(tfconvert.convert(tmp_path))
    )
    run = interpreter.get_signature_runner()
    h, c = zeros
    for _ in range(10):
        x = RNG.normal(size=(batch, features)).astype(np.float32)
        h, c = step(x, h, c, *weights)
        np.testing.assert_allclose(run(a0=x)["y"], h, atol=1e-5)


def test_a_cell_that_is_given_its_state_is_left_to_compute(
    tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite
) -> None:
    kernel, bias, projection = (RNG.normal(size=shape).astype(np.float32) for shape in ((5, 16), (16,), (4, 2)))
    body = lambda x, w, b, p, h: tf.tanh((tf.concat([x, h], 1) @ w + b)[:, :4]) @ p  # noqa: E731
    cell = tf.function(body, experimental_implements="LSTMCellSimple")
    x, h = (RNG.normal(size=(1, size)).astype(np.float32) for size in (3, 2))
    model = _check(tf, tmp_path, run_tflite, lambda x, h: cell(x, kernel, bias, projection, h), x, h)
    assert "argument 4 is not zeros" in model.report.notes[0].message


@pytest.mark.parametrize("is_regular", [False, True])
def test_detection(tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite, is_regular: bool) -> None:
    number, classes, most = 12, 2, 5
    attributes = {
        "max_detections": most,
        "num_classes": classes,
        "nms_score_threshold": 0.3,
        "use_regular_nms": is_regular,
    } | ({"detections_per_class": most} if is_regular else {})

    def detect(boxes: Any, scores: Any, anchors: Any) -> Any:
        centers = boxes[..., :2] / 10 * anchors[:, 2:] + anchors[:, :2]
        halves = tf.exp(boxes[..., 2:] / 5) * anchors[:, 2:] / 2
        corners = tf.concat([centers - halves, centers + halves], -1)
        best = scores[..., 1:] if is_regular else tf.reduce_max(scores[..., 1:], -1, keepdims=True)
        kept, values, kinds, count = tf.image.combined_non_max_suppression(
            corners[:, :, None], best, most, most, 0.25, 0.3, clip_boxes=False
        )
        if not is_regular:  # It is one class for all; the boxes show which of the scores stands out.
            same = tf.reduce_all(kept[:, :, None] == corners[:, None], -1)
            kinds = tf.cast(tf.argmax(tf.gather(scores[0, :, 1:], tf.argmax(same, -1)[0]), -1), tf.float32)[None]
        return kept, kinds, values, tf.cast(count, tf.float32)

    marked = tf.function(
        detect, experimental_implements=_mark("TFLite_Detection_PostProcess", **DETECTION | attributes)
    )
    specs = [([1, number, 4], "float32"), ([1, number, classes + 1], "float32"), ([number, 4], "float32")]
    _save(tf, tmp_path, lambda *arguments: dict(zip("abcd", marked(*arguments), strict=True)), *specs)
    model = tfconvert.convert(tmp_path, target=tfconvert.LiteRT(allow_custom_ops=True))
    assert dict(model.report.operators) == {"TFLite_Detection_PostProcess": 1}
    inputs = [
        RNG.normal(size=(1, number, 4)),
        RNG.uniform(size=(1, number, classes + 1)),
        np.concatenate([RNG.uniform(size=(number, 2)), RNG.uniform(0.2, 0.4, (number, 2))], 1),
    ]
    arguments = [each.astype(np.float32) for each in inputs]
    named = {f"a{index}": each for index, each in enumerate(arguments)}
    *results, count = run_tflite(bytes(model), named, signature="serving_default")
    *expected, expected_count = detect(*map(tf.constant, arguments))
    assert 1 < count[0] == expected_count[0] <= most
    for mine, theirs in zip(results, expected, strict=True):
        np.testing.assert_allclose(mine[:, : int(count[0])], theirs[:, : int(count[0])], atol=1e-5)


@pytest.mark.parametrize(
    ("name", "attributes", "arguments", "results"),
    [
        ("addons:MaxUnpooling2D", UNPOOLING, (IMAGE, (IMAGE[0], "int32")), 1),
        ("addons:DenseImageWarp", {}, (IMAGE, FLOW), 1),
        (
            "TFLite_Detection_PostProcess",
            DETECTION,
            (([1, 6, 4], "float32"), ([1, 6, 4], "float32"), ([6, 4], "float32")),
            4,
        ),
        ("my.op", {"tfl_fusable_op": True, "z": 70000, "a": -1, "text": "x y", "half": 0.5}, (IMAGE, FLOW), 2),
        ("my.op", {"tfl_fusable_op": True}, (IMAGE,), 1),
    ],
)
def test_custom_operators_are_written_as_the_official_converter_writes_them(
    tf: ModuleType, tmp_path: Path, name: str, attributes: dict[str, Any], arguments: Any, results: int
) -> None:
    marked = tf.function(
        lambda x, *others: (tf.nn.relu(x),) * results, experimental_implements=_mark(name, **attributes)
    )
    _save(tf, tmp_path, lambda *values: dict(zip("abcd", marked(*values), strict=False)), *arguments)
    official = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path))
    official.allow_custom_ops = True
    files = [bytes(tfconvert.convert(tmp_path, target=tfconvert.LiteRT(allow_custom_ops=True))), official.convert()]
    mine, theirs = ([op for op in import_tflite(file).walk() if op.name == "tfl.custom"] for file in files)
    assert len(mine) == len(theirs) == 1
    for each in (tfl.CUSTOM_CODE, tfl.CUSTOM_OPTION):
        assert tfl.attribute(mine[0], each) == tfl.attribute(theirs[0], each)


def test_suppression_of_several_images_is_left_to_compute(
    tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite
) -> None:
    corners = RNG.uniform(0, 1, (2, 12, 2))
    boxes = np.concatenate([corners, corners + RNG.uniform(0.2, 0.6, corners.shape)], -1).astype(np.float32)
    scores = RNG.uniform(size=(2, 12)).astype(np.float32)
    options = {"max_output_size": 5, "iou_threshold": 0.5, "score_threshold": 0.3, "pad_to_max_output_size": True}
    suppress = tf.image.non_max_suppression_padded
    model = _check(tf, tmp_path, run_tflite, lambda *arguments: suppress(*arguments, **options)[0], boxes, scores)
    assert "argument 0 has rank 3, not 2" in model.report.notes[0].message


@pytest.mark.parametrize(
    "mark",
    [
        "",
        'name: ""',
        "name: {",
        "\0\n%s{}",
        _mark("", tfl_fusable_op=True),
        _mark("a", tfl_fusable_op=1),
        *(
            f'name: "a" attr {{ key: "tfl_fusable_op" value {{ b: true }} }} attr {{ key: {attribute} }}'
            for attribute in (
                '"\\000" value { i: 1 }',
                '"k" value { s: "\\377" }',
                '"k" value { shape {} }',
                '"k" value { func { name: "f" } }',
                '"k" value { placeholder: "f" }',
                '"k"',
            )
        ),
    ],
)
def test_marks_that_make_no_sense_change_nothing(
    tf: ModuleType, tmp_path: Path, run_tflite: RunTFLite, mark: str
) -> None:
    marked = tf.function(lambda x: x + 1, experimental_implements=mark)
    model = _check(tf, tmp_path, run_tflite, marked, TABLE, allow_custom_ops=True)
    assert dict(model.report.operators) == {"ADD": 1}
