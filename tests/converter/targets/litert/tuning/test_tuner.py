"""Tables of times, and how conversions use them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tfconvert
from tfconvert.batch.result_cache import entry
from tfconvert.conversion import input_files
from tfconvert.converter.targets.litert import runtime
from tfconvert.converter.targets.litert.tuning import form_timing, tuner
from tfconvert.converter.targets.litert.tuning.tuner import SCRIPT, read_table
from tfconvert.importers.source import Source
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb
from tfconvert.settings.options import Options

_HEAD = "pattern\tshape\tform\tusual\tfast\n"

WRONG: dict[str, str | bytes] = {
    "nothing": "",
    "another table": "pattern\tshape\tbecomes\tusual\tfast\n",
    "few columns": f"{_HEAD}a\t1\t2.0\t1.0\n",
    "many columns": f"{_HEAD}a\t1\tb\tc\t2.0\t1.0\n",
    "no number": f"{_HEAD}a\t1\tb\t2.0\tquick\n",
    "a negative time": f"{_HEAD}a\t1\tb\t2.0\t-1.0\n",
    "no time at all": f"{_HEAD}a\t1\tb\t0\t1\n",
    "not a number": f"{_HEAD}a\t1\tb\tnan\t1\n",
    "endless": f"{_HEAD}a\t1\tb\tinf\t1\n",
    "bytes": b"\xff\xfe",
}


def _model() -> pb.GraphDef:
    """Returns a graph whose softmax has a faster form."""
    graph = pb.GraphDef()
    x = graph.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = pb.DT_FLOAT
    for size in (1, 64, 64, 5):
        x.attr["shape"].shape.dim.add(size=size)
    graph.node.add(name="y", op="Softmax", input=["x"]).attr["T"].type = pb.DT_FLOAT
    return graph


def _tuned(tune: str | os.PathLike[str], model: pb.GraphDef | None = None) -> tfconvert.Model:
    return tfconvert.convert(model or _model(), target=tfconvert.LiteRT(tune=tune))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Returns a table by which the usual form is faster."""
    _tuned(f"{tmp_path / 'forms'}/")
    (pair,) = form_timing.pairs_in(tmp_path / "forms")
    name = pair[0].name.removesuffix(form_timing.USUAL).split(".")
    path = tmp_path / "table.tsv"
    path.write_text(form_timing.table("a board", [[*name, "10.0", "20.0"]]))
    return path


def test_a_table_decides(table: Path) -> None:
    usual, fast = _tuned(table), tfconvert.convert(_model())
    assert usual.report.operators == {"SOFTMAX": 1}
    assert "SOFTMAX" not in fast.report.operators
    assert bytes(usual) == bytes(_tuned(table))
    found = usual.report.tuning
    assert found is not None
    assert (found.device, found.gain, found.gain_over_default) == ("a board", 10, 10)
    assert "10.0 us less than without tuning; 1 form measured" in usual.report.to_text()
    assert "softmax-by-steps 1x64x64x5: not chosen, 20.0 us; without it 10.0 us" in usual.report.to_text()
    data = json.loads(json.dumps(usual.report.to_dict()["tuning"]))
    assert data["forms"][0]["chosen"] == "usual"
    assert not data["forms"][0]["is_default"]


def test_forms_without_a_row_are_chosen_as_without_tuning(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    path.write_text(f"# device: a board\n# a remark\n\n{_HEAD}every-nth\t1x56x56x64\tabc\t2.0\t1.0\n")
    model = _tuned(path)
    assert bytes(model) == bytes(tfconvert.convert(_model()))
    assert "0 forms measured, 1 not" in model.report.to_text()


def test_a_model_without_choices_says_so(table: Path) -> None:
    graph = _model()
    graph.node[1].op = "Neg"
    assert "no operators with several forms" in _tuned(table, graph).report.to_text()


def test_a_directory_gets_files_and_the_script(tmp_path: Path) -> None:
    forms = tmp_path / "forms"
    model = _tuned(f"{forms}/")
    assert bytes(model) == bytes(tfconvert.convert(_model()))
    assert f"forms were written to {forms}/" in model.report.to_text()
    names = {path.name for path in forms.iterdir()}
    assert len(names) == 3
    assert SCRIPT in names
    contents = {path.name: path.read_bytes() for path in forms.iterdir()}
    _tuned(forms)  # It exists now.
    assert contents == {path.name: path.read_bytes() for path in forms.iterdir()}


@pytest.mark.parametrize("name", WRONG)
def test_other_files_are_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    content = WRONG[name]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(tfconvert.ConversionError, match="the table of forms") as caught:
        _tuned(path)
    assert caught.value.code == "bad-tuning-table"
    assert "measure_forms.py" in caught.value.diagnostics[0].hint


def test_a_directory_is_not_made_for_a_model_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(tfconvert.ConversionError):
        tfconvert.convert(tmp_path / "none.pb", target=tfconvert.LiteRT(tune=f"{tmp_path / 'forms'}/"))
    assert not (tmp_path / "forms").exists()


def test_a_misspelled_host_is_suggested() -> None:
    with pytest.raises(tfconvert.ConversionError) as caught:
        _tuned("hots")
    assert caught.value.diagnostics[0].hint == "did you mean host?"


def test_missing_files_and_places_are_reported(tmp_path: Path) -> None:
    with pytest.raises(tfconvert.ConversionError, match="can't be read: No such file") as caught:
        _tuned(tmp_path / "none.tsv")
    assert caught.value.code == "bad-tuning-table"
    (tmp_path / "file").write_text("")
    with pytest.raises(tfconvert.ConversionError, match="can't create the directory") as caught:
        _tuned(f"{tmp_path / 'file' / 'forms'}/")
    assert caught.value.code == "output-not-writable"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(tfconvert.ConversionError, match="can't be read"):
        _tuned(tmp_path / "pipe")


def test_settings_that_contradict_it_are_refused(table: Path) -> None:
    with pytest.raises(tfconvert.ConversionError, match="tune is for processors"):
        tfconvert.convert(_model(), target=tfconvert.LiteRT(tune=table, accelerator=["gpu"]))
    with pytest.raises(tfconvert.ConversionError, match="tune can't be empty"):
        _tuned("")


def test_this_machine_needs_litert(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "Interpreter", None)
    with pytest.raises(tfconvert.ConversionError, match=r"pip install 'tfconvert\[verify\]'") as caught:
        _tuned("host")
    assert caught.value.code == "litert-missing"


def test_measuring_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuner, "_MAX_SECONDS", 0)
    model = _tuned("host")
    assert "0 forms measured, 1 not" in model.report.to_text()
    assert bytes(model) == bytes(tfconvert.convert(_model()))


def test_a_form_that_litert_refuses_is_chosen_as_without_tuning(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def to_bytes(self) -> bytes:
            return b"no file"

    monkeypatch.setattr(tuner, "export", lambda module: Broken())
    model = _tuned("Host")
    assert "0 forms measured, 1 not" in model.report.to_text()
    assert bytes(model) == bytes(tfconvert.convert(_model()))


def test_the_contents_of_a_table_are_part_of_the_cache_key(table: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.pb"
    path.write_bytes(_model().SerializeToString())
    source, options = Source(path), Options(target=tfconvert.LiteRT(tune=table))
    files = input_files(source, options)
    assert table in files
    before = entry(str(tmp_path), source, options, files)
    assert before == entry(str(tmp_path), source, options, files)
    table.write_text(table.read_text().replace("20.0", "5.0"))
    assert before != entry(str(tmp_path), source, options, files)
    assert read_table(table)[0] == "a board"


def test_other_conversions_load_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "model.pb"
    path.write_bytes(_model().SerializeToString())
    code = (
        "import sys, tfconvert; tfconvert.convert(sys.argv[1]); "
        "assert not [name for name in sys.modules if 'tuning' in name or 'litert.interp' in name]"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
