"""Small files that ask for much: memory, work or time without end."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import tfconvert
from tests.hardening.bounded import run_bounded
from tests.hardening.graphs import BOOL, FLOAT, INT, INT64, STRING, add, call, const, function, graph, splat
from tests.support.run_text import parse
from tfconvert.cli.options import LIMIT
from tfconvert.converter.targets.litert.runtime_process import LiteRTProcess
from tfconvert.converter.validation import pass_check
from tfconvert.schema.limits import Limits, limited
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

FLOATS = [str(FLOAT)]


def _laughs(levels: int) -> pb.GraphDef:
    """Functions that each call the next one twice."""
    made = graph()
    call(made, "y", "f0", "x")
    for level in range(levels):
        body = function(made, f"f{level}", "last:output:0")
        call(body, "first", f"f{level + 1}", "a")
        call(body, "last", f"f{level + 1}", "first:output:0")
    add(function(made, f"f{levels}", "e:y:0"), "e", "Exp", "a", T=FLOAT)
    return made


def _laughs_through_if(levels: int) -> pb.GraphDef:
    """Functions that each run the next one in two conditionals."""
    made = graph(())
    call(made, "y", "f0", "x")
    for level in range(levels):
        body = function(made, f"f{level}", "last:output:0")
        add(body, "p", "Greater", "a", "a", T=FLOAT)
        for name, value in (("first", "a"), ("last", "first:output:0")):
            branch = f"f{level + 1}"
            add(
                body,
                name,
                "StatelessIf",
                "p:z:0",
                value,
                Tin=FLOATS,
                Tout=FLOATS,
                Tcond=BOOL,
                then_branch=branch,
                else_branch=branch,
                output_shapes=[],
            )
    add(function(made, f"f{levels}", "e:y:0"), "e", "Exp", "a", T=FLOAT)
    return made


def _added(*counts: int) -> pb.GraphDef:
    """Constants of one value each, of as many elements."""
    made = graph((1,))
    for number, count in enumerate(counts):
        splat(made, f"c{number}", (count,), 1.5 + number)
        add(made, f"y{number}", "AddV2", "x", f"c{number}", T=FLOAT)
    return made


def _strings(count: int) -> pb.GraphDef:
    made = graph((1,), STRING)
    splat(made, "c", (count,), b"text", dtype=STRING)
    add(made, "y", "Equal", "x", "c", T=STRING)
    return made


def _doubling(levels: int) -> pb.GraphDef:
    made = graph((1,))
    value, axis = const(made, "c", np.ones(2, np.float32)), const(made, "axis", np.int32(0))
    for level in range(levels):
        value = add(made, f"d{level}", "ConcatV2", value, value, axis, T=FLOAT, Tidx=INT, N=(2,)).name
    add(made, "y", "AddV2", "x", value, T=FLOAT)
    return made


def _fibonacci(levels: int) -> pb.GraphDef:
    """Constants that grow although none of them is concatenated with itself."""
    made = graph((1,))
    rng, axis = np.random.default_rng(0), const(made, "axis", np.int32(0))
    one, other = (const(made, name, rng.random(12_000, np.float32)) for name in "ab")
    for level in range(levels):
        one, other = other, add(made, f"d{level}", "ConcatV2", one, other, axis, T=FLOAT, Tidx=INT, N=(2,)).name
    total = add(made, "total", "Sum", other, axis, T=FLOAT, Tidx=INT).name
    add(made, "y", "AddV2", "x", total, T=FLOAT)
    return made


def _product(size: int) -> pb.GraphDef:
    made = graph((1,), INT)
    splat(made, "c", (size, size), 3, dtype=INT)
    add(made, "m", "MatMul", "c", "c", T=INT, transpose_a=False, transpose_b=False)
    add(made, "y", "AddV2", "x", "m", T=INT)
    return made


def _products(count: int, size: int) -> pb.GraphDef:
    """Products each of which is small enough to be computed."""
    made = graph((1,), INT)
    value = const(made, "c", np.arange(size * size, dtype=np.int32).reshape(size, size))
    for number in range(count):
        value = add(made, f"m{number}", "MatMul", value, "c", T=INT, transpose_a=False, transpose_b=False).name
    add(made, "y", "AddV2", "x", value, T=INT)
    return made


def _convolution(size: int, channels: int, window: int) -> pb.GraphDef:
    made = graph((1,))
    splat(made, "c", (1, size, size, channels), 2.0)
    splat(made, "f", (window, window, channels, channels), 2.0)
    add(made, "m", "Conv2D", "c", "f", T=FLOAT, strides=[1, 1, 1, 1], padding=b"SAME", data_format=b"NHWC")
    add(made, "y", "AddV2", "x", "m", T=FLOAT)
    return made


def _window(size: int) -> pb.GraphDef:
    """A window far larger than the image: what is around it counts."""
    made = graph((1,))
    splat(made, "c", (1, 64, 64, 1), 2.0)
    add(
        made,
        "m",
        "MaxPool",
        "c",
        T=FLOAT,
        ksize=[1, size, size, 1],
        strides=[1, 1, 1, 1],
        padding=b"SAME",
        data_format=b"NHWC",
    )
    add(made, "y", "AddV2", "x", "m", T=FLOAT)
    return made


def _where(count: int) -> pb.GraphDef:
    made = graph((1,), INT64)
    splat(made, "c", (count,), True, dtype=BOOL)
    add(made, "w", "Where", "c", T=BOOL)
    add(made, "y", "AddV2", "x", "w", T=INT64)
    return made


def _segments(number: int) -> pb.GraphDef:
    """A result with as many rows as a value says."""
    made = graph((1,))
    ids = const(made, "ids", np.array([0, number], np.int32))
    add(made, "s", "SegmentSum", const(made, "c", np.ones(2, np.float32)), ids, T=FLOAT, Tindices=INT)
    add(made, "y", "AddV2", "x", "s", T=FLOAT)
    return made


def _transposed(count: int) -> pb.GraphDef:
    """One constant that is wanted in many forms, each as large as itself."""
    made = graph((1,))
    const(made, "c", np.random.default_rng(0).random((1 << 20, 1), np.float32))
    for number in range(count):
        own = const(made, f"a{number}", np.float32(number + 2))
        add(made, f"m{number}", "Mul", "c", own, T=FLOAT)
        add(made, f"y{number}", "Mul", "x", f"m{number}", T=FLOAT)
    return made


def _mlir(*counts: int) -> str:
    lines, results = [], []
    for number, count in enumerate(counts):
        kind = f"tensor<{count}xf32>"
        lines += [
            f'%c{number} = "tf.Const"() <{{value = dense<{number}.5> : {kind}}}> : () -> {kind}',
            f'%y{number} = "tf.AddV2"(%x, %c{number}) : (tensor<1xf32>, {kind}) -> {kind}',
        ]
        results.append((f"%y{number}", kind))
    values, kinds = (", ".join(each) for each in zip(*results, strict=True))
    body = "\n".join([*lines, f"func.return {values} : {kinds}"])
    return f"func.func @main(%x: tensor<1xf32>) -> ({kinds}) {{\n{body}\n}}"


GIB = 1 << 30

# Case -> the model, and the code of the error or the warning that it ends with.
CASES: Mapping[str, tuple[Callable[[], Any], str]] = {
    "bomb_inline_laughs": (lambda: _laughs(30), "too-many-copies"),
    "bomb_if_laughs": (lambda: _laughs_through_if(30), "too-many-copies"),
    "bomb_if_laughs_below_the_limit": (lambda: _laughs_through_if(9), ""),
    "bomb_splat": (lambda: _added((1 << 31) - 1), "too-large-constants"),
    "bomb_splats": (lambda: _added(*[GIB // 16] * 5), "too-large-constants"),
    "bomb_splat_strings": (lambda: _strings(150_000_000), "too-large-constants"),
    "bomb_splat_strings_beyond_litert": (lambda: _strings(540_000_000), "absurd-shape"),
    "bomb_concat_doubling": (lambda: _doubling(26), ""),
    "bomb_concat_beyond_litert": (lambda: _doubling(40), "absurd-shape"),
    "bomb_fold_compute": (lambda: _product(3000), "not-folded"),
    "bomb_fold_convolution": (lambda: _convolution(256, 32, 31), "not-folded"),
    "bomb_fold_window": (lambda: _window(30_000), "not-folded"),
    "bomb_where": (lambda: _where(GIB), "not-folded"),
    "bomb_segments": (lambda: _segments((1 << 31) - 2), ""),
    "bomb_reuse": (lambda: _transposed(400), "too-large-constants"),
    "mlir_splat_1g": (lambda: _mlir(GIB // 4, GIB // 4), "too-large-constants"),
    "mlir_splat": (lambda: _mlir(GIB // 16), ""),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, Any]]:
    """Returns how the conversion of each case ended, under limits of memory and time."""
    folder = tmp_path_factory.mktemp("bombs")
    paths = []
    for name, (build, _) in CASES.items():
        model = build()
        path = folder / (f"{name}.mlir" if isinstance(model, str) else f"{name}.pb")
        path.write_bytes(model.encode() if isinstance(model, str) else model.SerializeToString())
        paths.append(path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.hardening.many_bounded", *map(str, paths)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return dict(zip(CASES, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_bombs_end_in_a_diagnostic_or_a_file(outcomes: Mapping[str, Mapping[str, Any]], name: str) -> None:
    found, code = outcomes[name], CASES[name][1]
    if code in ("", "not-folded") and not found["code"]:
        assert (code in found["notes"]) == bool(code), found
    else:
        assert code in found["codes"], found
    assert found["rss"] < 3 << 28, found


@pytest.mark.parametrize("build", [lambda: _added(1 << 25), lambda: _strings(1 << 22)])
def test_splats_are_written_a_block_at_a_time(build: Callable[[], pb.GraphDef]) -> None:
    model = tfconvert.convert(build())
    largest, total = 0, 0

    class Stream(io.BytesIO):
        def write(self, data: Any) -> int:
            nonlocal largest, total
            largest, total = max(largest, len(data)), total + len(data)
            return len(data)

    model.save(Stream())
    assert total == len(model)
    assert largest <= 1 << 25 < total


LIMITED: Mapping[str, tuple[Callable[[], pb.GraphDef], Limits, str]] = {
    "operations": (lambda: _laughs(4), Limits(operations=8), "too-many-copies"),
    "operations of branches": (lambda: _laughs_through_if(4), Limits(operations=30), "too-many-copies"),
    "constant_bytes": (lambda: _added(20_000), Limits(constant_bytes=79_999), "too-large-constants"),
}


@pytest.mark.parametrize("case", LIMITED)
def test_limits_can_be_set(case: str) -> None:
    build, limits, code = LIMITED[case]
    tfconvert.convert(build())
    with pytest.raises(tfconvert.ConversionError) as caught:
        tfconvert.convert(build(), limits=limits)
    assert caught.value.code == code
    assert "--limit" in caught.value.diagnostics[0].hint


UNFOLDED: Mapping[str, tuple[Callable[[], pb.GraphDef], Limits]] = {
    "a product": (lambda: _product(20), Limits(folding_work=100)),
    "products each of which is small": (lambda: _products(30, 20), Limits(folding_work=100_000)),
    "constants that grow": (lambda: _fibonacci(8), Limits(constant_bytes=1 << 20)),
}


@pytest.mark.parametrize("case", UNFOLDED)
def test_large_constants_are_not_folded(case: str) -> None:
    build, limits = UNFOLDED[case]
    model = tfconvert.convert(build(), limits=limits)
    (note,) = (note for note in model.report.notes if note.code == "not-folded")
    assert note.severity == "warning"
    assert "--limit" in note.hint
    assert sum(model.report.operators.values()) > 1
    assert tfconvert.convert(build()).report.operators == {"ADD": 1}


@pytest.mark.parametrize(("name", "code"), [("model.pb", "too-large-file"), ("model.pbtxt", "too-large-text")])
def test_files_are_measured_before_they_are_parsed(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / name).write_bytes(b"\xff" * 1000)
    with pytest.raises(tfconvert.ConversionError) as caught:
        tfconvert.convert(str(tmp_path / name), limits=Limits(text_bytes=999, proto_bytes=999))
    assert caught.value.code == code


def test_texts_are_measured_before_they_are_parsed(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(_mlir(4))
    with pytest.raises(tfconvert.ConversionError, match="bytes, more than 50"):
        tfconvert.convert(str(tmp_path / "m.mlir"), limits=Limits(text_bytes=50))


def test_conversions_side_by_side_have_budgets_of_their_own() -> None:
    """One may not spend what another has, nor what it has had before."""
    wide, narrow = Limits(constant_bytes=100_000), Limits(constant_bytes=50_000)
    outcomes: dict[int, list[str]] = {}

    def work(number: int) -> None:
        found = outcomes[number] = []
        for _ in range(3):
            try:
                tfconvert.convert(_added(20_000), limits=(wide, narrow)[number % 2])
                found.append("")
            except tfconvert.ConversionError as problem:
                found.append(problem.code)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {number: [("", "too-large-constants")[number % 2]] * 3 for number in range(4)}


_ENDLESS = """
func.func @main(%x: tensor<f32>) -> tensor<f32> attributes {tf.entry_function = {inputs = "x", outputs = "y"}} {
  %0 = "tf.Exp"(%x) : (tensor<f32>) -> tensor<f32>
  %1 = "tf.While"(%0) <{cond = @again, body = @step, is_stateless = true}> : (tensor<f32>) -> tensor<f32>
  func.return %1 : tensor<f32>
}
func.func private @again(%x: tensor<f32>) -> tensor<i1> {
  %0 = "tf.Abs"(%x) : (tensor<f32>) -> tensor<f32>
  %1 = "tf.Const"() <{value = dense<-1.0> : tensor<f32>}> : () -> tensor<f32>
  %2 = "tf.Greater"(%0, %1) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  func.return %2 : tensor<i1>
}
func.func private @step(%x: tensor<f32>) -> tensor<f32> {
  %0 = "tf.Tanh"(%x) : (tensor<f32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}
"""


def test_checking_passes_of_an_endless_loop_ends() -> None:
    with limited(Limits(run_iterations=500)):
        (note,) = pass_check.check(parse(_ENDLESS), parse(_ENDLESS), "none")
    assert "have not ended after 500 iterations" in note.message


def test_verifying_an_endless_loop_ends(tmp_path: Path) -> None:
    path = tmp_path / "endless.mlir"
    path.write_text(_ENDLESS)
    model = tfconvert.convert(str(path), verify=True, limits=Limits(run_iterations=500))
    assert any("have not ended after 500 iterations" in note.message for note in model.report.notes)


def test_litert_is_stopped_after_the_time_that_a_conversion_has(tmp_path: Path) -> None:
    path = tmp_path / "endless.mlir"
    path.write_text(_ENDLESS)
    content = bytes(tfconvert.convert(str(path)))
    with limited(Limits(run_seconds=2)), LiteRTProcess() as runtime, pytest.raises(tfconvert.ConversionError) as caught:
        runtime.run_file(content, "", {"0": np.array(1, np.float32)}, [])
    assert caught.value.code == "litert-timeout"


def test_the_reference_is_stopped_after_the_time_that_a_run_has(tmp_path: Path) -> None:
    path = tmp_path / "endless.mlir"
    path.write_text(_ENDLESS)
    with pytest.raises(tfconvert.ConversionError) as caught:
        tfconvert.convert(str(path), verify=True, limits=Limits(run_seconds=5, run_iterations=1 << 60))
    assert caught.value.code == "run-timeout"


def test_limits_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "m.pb").write_bytes(_added(20_000).SerializeToString())
    arguments: list[str | Path] = [tmp_path / "m.pb", "-o", tmp_path / "m.tflite", "--limit"]
    assert run_bounded([*arguments, "constant-bytes=80000"]).status == 0
    done = run_bounded([*arguments, "constant-bytes=79999"])
    assert done.is_diagnosed
    assert "[too-large-constants]" in done.stderr


@pytest.mark.parametrize("value", ["constant-bytes", "constant-bytes=", "constant-bytes=-1", "nothing=1", "=1"])
def test_invalid_limits(value: str) -> None:
    with pytest.raises(click.BadParameter, match="is not"):
        LIMIT.convert(value, None, None)
