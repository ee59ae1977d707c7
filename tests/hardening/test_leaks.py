"""A model may read only files in its own directory: no other file's contents appear in a result or an error."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import h5py
import numpy as np
import pytest

import tfconvert
from tests.hardening import models
from tests.support.flat_settings import converted
from tests.support.sources import SourceFile
from tfconvert.importers.checkpoint.bundle import Checkpoint
from tfconvert.importers.keras import check_config, check_hdf5
from tfconvert.schema import files
from tfconvert.schema.diagnostics import ConversionError

# Names of functions that read a file, or return one.
_OPENING = frozenset(
    {
        "File",
        "FileIO",
        "InputFile",
        "ZipFile",
        "copy2",
        "copyfile",
        "copytree",
        "fdopen",
        "fromfile",
        "genfromtxt",
        "load",
        "load_model",
        "loadtxt",
        "memmap",
        "mmap",
        "open",
        "open_code",
        "open_file",
        "read_bytes",
        "read_file",
        "read_text",
        "run_path",
        "unpack_archive",
    }
)

# The only functions that open a model's files, all in `tfconvert.schema.files`: regular ones only, of bounded size.
_OPENERS = frozenset({"InputFile", "files.open_file", "files.read_file", "open_file", "read_file"})

_NAMED_BY_THE_USER = "the path is the user's own, not the model's"
_OURS = "the file is the package's own"
_OPENS_NO_FILE = "what is called so opens no file here"
# All other calls that may open a file, with the reason why each may.
_ALLOWED = {
    ("importers.archive", "os.fdopen"): "a descriptor from `open_file`",
    ("importers.archive", "zipfile.ZipFile"): "the file was opened by `open_file`",
    ("importers.containment", "self.open"): "the method of `Folder` that calls `open_file`",
    ("importers.keras", "archive.open"): "a part of an archive, of bounded size",
    ("importers.keras", "os.fdopen"): "a descriptor from `open_file`",
    ("importers.keras", "zipfile.ZipFile"): "the file was opened by `open_file`",
    ("importers.keras", "h5py.File"): "the file was opened by `open_file`; links out of it are refused",
    ("importers.keras", "keras.models.load_model"): "the file was opened by `open_file`, and holds no names of others",
    ("importers.foreign_files", "os.fdopen"): "a descriptor from `open_file`",
    ("importers.foreign_files", "zipfile.ZipFile"): "the file was opened by `open_file`",
    ("batch.state", "self._path.open"): _NAMED_BY_THE_USER,
    ("batch.run_task", "Path(task.report).read_text"): "the report of an earlier task",
    ("batch.job_usage", "Path(f'/proc/{process}/{name}').read_bytes"): "what the system reports of a process",
    ("batch.job_usage", "os.open"): "a directory of a job, to list it; no link is followed",
    ("batch.zygote", "os.fdopen"): "a descriptor from `open_file`",
    ("batch.zygote", "os.open"): "the null device, and the log that the user has named",
    ("batch.result_cache", "os.fdopen"): "a descriptor from `open_file`",
    ("batch.result_cache", "path.open"): "a result that a server has sent, in a folder of its own",
    ("cli.extras", "distribution('tfconvert').read_text"): "where an installer says that it took the package from",
    ("cli.keras_files", "os.fdopen"): "the error stream, to write to",
    ("cli.standard_input", "path.open"): "a new file, to write to",
    ("cli.opt_job", "replace(source, is_raw=True).open"): _OPENS_NO_FILE,
    ("cli.opt_job", "source.open"): _OPENS_NO_FILE,
    ("cli.browser", "webbrowser.open"): "the page that the command has written",
    ("cli.streams", "os.open"): "the null device, to write to",
    ("compat.table", "page.read_text"): _OURS,
    ("converter.composites.fusion_registry", "point.load"): _OPENS_NO_FILE,
    ("conversion", "source.open"): _OPENS_NO_FILE,
    ("tools.view", "path.read_bytes"): "the result of the conversion, in a directory of its own",
    ("tools.programs", "Path(path).open"): _NAMED_BY_THE_USER,
    ("tools.litert_child", "_STATM.read_text"): "what the system reports of the process",
    ("converter.process.child_process", "os.fdopen"): "the child's own output",
    ("converter.process.landlock", "os.open"): "names a directory to the kernel, and reads nothing",
    ("converter.targets.litert.forms.scatter_speed", "TABLE.read_text"): _OURS,
    ("converter.targets.litert.flex.conversion", "_LIST.read_text"): _OURS,
    ("converter.targets.litert.passes.calibrate", "calibration.load"): _NAMED_BY_THE_USER,
    ("converter.targets.litert.quantize.calibration", "Path(path).read_text"): _NAMED_BY_THE_USER,
    ("converter.targets.litert.quantize.samples", "np.load"): _NAMED_BY_THE_USER,
    ("converter.targets.litert.quantize.samples", "path.open"): _NAMED_BY_THE_USER,
    ("converter.targets.litert.quantize.speed", "TABLE.read_text"): _OURS,
    ("converter.targets.litert.recurrent.speed", "TABLE.read_text"): _OURS,
    (
        "converter.targets.litert.tuning.form_timing",
        "each.read_bytes",
    ): "a pair of files in a directory that the user names",
    ("converter.targets.litert.tuning.tuner", "Path(form_timing.__file__).read_bytes"): _OURS,
    ("converter.pipeline.plugins", "point.load"): _OPENS_NO_FILE,
    ("converter.targets.litert.legalize.legalizations", "TABLE.load"): _OPENS_NO_FILE,
    ("converter.targets.litert.forms.tables", "_ALL.load"): _OPENS_NO_FILE,
    ("converter.from_stablehlo.rows", "_RARE.load"): _OPENS_NO_FILE,
    ("converter.targets.litert.forms.tables", "rows.load"): _OPENS_NO_FILE,
    ("converter.targets.litert.forms.tables", "_FAST.load"): _OPENS_NO_FILE,
    ("converter.targets.litert.optimize.optimizations", "_TABLE.load"): _OPENS_NO_FILE,
    ("converter.validation.runtimes_check", "log.read_text"): "the child's own log",
    ("converter.validation.runtimes_check", "path.open"): "a file for the child, in a directory of its own",
    ("converter.targets.iree.compiler", "path.read_bytes"): "what the compiler has written, in a folder of its own",
    ("converter.targets.iree.compiler", "result.read_bytes"): "what the compiler has written, in a folder of its own",
    ("converter.targets.iree.compiler", "text.open"): "a new file, to write to",
    ("converter.targets.iree.runtime", "index.load"): "the weights beside the program that the user names",
    ("converter.targets.iree.runtime", "runtime.VmModule.mmap"): _NAMED_BY_THE_USER,
    ("converter.pipeline.plugins", "runpy.run_path"): _NAMED_BY_THE_USER,
    ("report.page", "resources.files(PACKAGE).joinpath(name).read_text"): _OURS,
    ("service.workers", "os.open"): "the job's log, to write to",
    ("service.workers", "report.read_text"): "a report of the service",
    ("service.archives", "archive.open"): "an entry, which is read within limits",
    ("service.archives", "os.fdopen"): "a descriptor from `open_file`",
    ("service.archives", "tarfile.open"): "the file was opened by `open_file`",
    ("service.archives", "zipfile.ZipFile"): "the file was opened by `open_file`",
    ("service.archives", "shutil.copyfile"): "what was uploaded, which the service has named",
    ("service.store", "Path(path).read_bytes"): "a plug-in that the server's settings name",
    ("service.config", "Path(path).read_text"): _NAMED_BY_THE_USER,
    ("service.database.connection", "mark.read_text"): "the service's own mark in its data folder",
    ("service.events", "os.open"): "the service's own file of a job's events",
    ("service.leases", "boot_id.read_text"): "what the system tells of its start",
    ("client.packing", "archive.open"): "an entry of an archive in memory",
    ("client.packing", "zipfile.ZipFile"): "an archive in memory",
    ("client.packing", "file.open"): "a file of the model, as `Source.files` names them",
    ("client.packing", "member.path.open"): "a file of the model, as `Source.files` names them",
    ("service.leases", "os.open"): "the service's own lock",
    ("service.file_tree", "os.fdopen"): "a new file, to write to",
    ("service.file_tree", "os.open"): "a new file, to write to",
    ("service.model_kinds", "os.fdopen"): "a descriptor from `open_file`",
    ("service.model_places", "system.open"): "a file below the roots of the server, elsewhere",
    ("service.http.pages", "resources.files(self.package).joinpath(self.name).read_bytes"): _OURS,
    ("service.storage", "os.open"): "a file or folder of the service",
    ("service.storage", "shutil.copyfile"): "a result of the service",
    ("service.server", "os.fdopen"): "the file of the first token, to write to",
    ("service.server", "os.open"): "the file of the first token, to write to",
    ("converter.pipeline.plugins", "EntryPoint('', name, '').load"): "a module that the user names",
    ("converter.pipeline.runner", "source.open"): _OPENS_NO_FILE,
    ("converter.validation.quantization_check", "source.open"): _OPENS_NO_FILE,
    ("converter.validation.metric", "np.load"): "the file was opened by `open_file`",
    ("converter.validation.metric", "os.fdopen"): "a descriptor from `open_file`",
    ("converter.validation.tensorflow_process", "Path(self._path).read_bytes"): _NAMED_BY_THE_USER,
    ("converter.validation.tensorflow_process", "v1.saved_model.load"): _NAMED_BY_THE_USER,
    ("converter.validation.witness", "Path(source.model).read_bytes"): _NAMED_BY_THE_USER,
}


def _calls(file: SourceFile) -> Iterator[tuple[str, str]]:
    """Yields the calls of a file that may open others, each with the module that it is in."""
    for _, called in file.calls:
        if called.rpartition(".")[2] in _OPENING and called not in _OPENERS:
            yield file.module.removeprefix("tfconvert."), called


def test_all_files_are_opened_by_one_function(source_files: Sequence[SourceFile]) -> None:
    found = {call for file in source_files if file.package not in ("schema", "exporters") for call in _calls(file)}
    assert sorted(found - _ALLOWED.keys()) == []
    assert sorted(_ALLOWED.keys() - found) == []


def _code(path: Path, **settings: object) -> str:
    """Returns the code of the error that a model ends in; empty if it is converted."""
    try:
        converted(path, **settings)
    except ConversionError as problem:
        return problem.code
    return ""


@pytest.fixture
def model(digits_model: Path, tmp_path: Path) -> Path:
    """Returns the folder of a model with variables."""
    return Path(shutil.copytree(digits_model, tmp_path / "model"))


_PARTS = ["saved_model.pb", "variables", "variables/variables.index", "variables/variables.data-00000-of-00001"]


@pytest.mark.parametrize("part", [*_PARTS, "debug/saved_model_debug_info.pb", "keras_metadata.pb"])
def test_links_of_a_model_stay_in_its_folder(model: Path, part: str) -> None:
    """Those that lead out are followed only if that is asked for, as caches need it that link to shared files."""
    place, other = model / part, model.with_name("other") / part
    place.parent.mkdir(exist_ok=True)
    other.parent.mkdir(parents=True)
    if not place.exists():
        place.write_bytes(b"")
    place.rename(other)
    place.symlink_to(other)
    is_read = part != "keras_metadata.pb"  # Only that of a model with several outputs is.
    assert _code(model) == ("outside-model" if is_read else "")
    assert _code(model, follow_links=True) == ""
    place.unlink()
    inside = model / "inside"
    other.rename(inside)
    place.symlink_to(inside)
    assert _code(model) == ""


def test_a_link_to_the_model_itself_is_followed(model: Path) -> None:
    """Whoever names the folder, or a file, knows where that is."""
    link = model.with_name("link")
    link.symlink_to(model)
    assert _code(link) == ""
    frozen = model.with_name("frozen.pb")
    frozen.write_bytes(models.NEGATION.SerializeToString())
    link = model / "link.pb"
    link.symlink_to(frozen)
    assert _code(link) == ""


def test_a_checkpoint_of_its_own_has_its_own_folder(model: Path) -> None:
    """That of a message in memory, or a test's."""
    data = model / _PARTS[-1]
    other = model.with_name("data")
    data.rename(other)
    data.symlink_to(other)
    with pytest.raises(ConversionError) as caught:
        Checkpoint(model / "variables" / "variables")
    assert caught.value.code == "outside-model"


@pytest.mark.parametrize("kind", ["fifo", "zero", "socket", "folder", "circle"])
@pytest.mark.parametrize("part", [*_PARTS[:1], *_PARTS[2:]])
def test_only_files_are_read(model: Path, part: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a pipe would block indefinitely, and a device has no end."""
    _replace(model / part, kind, monkeypatch)
    assert _code(model) in ("unreadable-file", "not-a-saved-model", "outside-model")
    assert _code(model, follow_links=True) in ("unreadable-file", "not-a-saved-model")


@pytest.mark.parametrize("kind", ["fifo", "zero", "socket", "circle"])
@pytest.mark.parametrize("ending", ["pb", "pbtxt", "meta", "mlir", "tflite", "keras", "h5", "index", "other"])
def test_only_files_are_models(tmp_path: Path, ending: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / f"model.{ending}"
    place.write_bytes(b"")
    _replace(place, kind, monkeypatch)
    code = "model-not-found" if ending == "tflite" else "unreadable-file"
    assert _code(place) == code


def test_a_state_of_checkpoints_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "graph.meta").write_bytes(models.saved().meta_graphs[0].SerializeToString())
    os.mkfifo(tmp_path / "checkpoint")
    assert _code(tmp_path / "graph.meta") == ""
    assert _code(tmp_path) == "not-a-saved-model"


def _replace(place: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts something that is not a file in a file's place."""
    place.unlink()
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "zero":
        place.symlink_to("/dev/zero")
    elif kind == "socket":
        monkeypatch.chdir(place.parent)  # The path of a socket may not be long.
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(place.name)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(place.name)


def test_replaced_files_are_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at a path and its opening there may be time."""
    place = tmp_path / "file"
    place.write_bytes(b"content")
    state = place.stat()
    place.unlink()
    os.mkfifo(place)
    monkeypatch.setattr(Path, "stat", lambda self, *, follow_symlinks=True: state)
    with pytest.raises(OSError, match="not a regular file"):
        files.open_file(place)


def test_files_are_read_only_up_to_a_limit(tmp_path: Path) -> None:
    large = tmp_path / "large.pb"
    with large.open("wb") as file:
        file.truncate(files.LARGEST + 1)
    with pytest.raises(ConversionError, match="2147483648 bytes") as caught:
        tfconvert.convert(large)
    assert caught.value.code == "unreadable-file"


def test_text_names_no_files_unless_it_may(tmp_path: Path) -> None:
    """Not even one that is not there: whether it is would be told."""
    secret = tmp_path / "secret.txt"
    secret.write_text("words of somebody else\n")
    for name in (secret, tmp_path / "nothing"):
        text = tmp_path / "leak.mlir"
        text.write_text(f'"tf_saved_model.asset"() <{{filename = "{name}", sym_name = "a"}}> : () -> ()\n')
        for root in (None, tmp_path / "root"):
            with pytest.raises(ConversionError) as caught:
                tfconvert.convert(tfconvert.Source(text, asset_root=root))
            assert caught.value.code == "bad-asset"
            assert "words" not in str(caught.value)


@pytest.mark.parametrize("layer", ["StringLookup", "IntegerLookup", "TextVectorization"])
def test_keras_files_name_no_vocabulary(layer: str) -> None:
    settings: dict[str, object] = {"vocabulary": "/etc/hostname"}
    config = {"config": {"layers": [{"class_name": layer, "config": settings}]}}
    with pytest.raises(ConversionError, match="/etc/hostname") as caught:
        check_config(Path("model.keras"), config, runs_code=False)
    assert caught.value.code == "unsafe-model"
    settings["vocabulary"] = ["a", "b"]
    check_config(Path("model.keras"), config, runs_code=False)


@pytest.mark.parametrize("kind", ["link", "external", "virtual", "deep"])
def test_hdf5_files_hold_all_that_they_seem_to(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "model.h5", tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["secret"] = [1.0, 2.0]
    with h5py.File(path, "w") as file:
        file.create_group("layer")["own"] = [3.0]
        file["layer/circle"] = file["/"]
        file["layer/soft"] = h5py.SoftLink("/layer/own")
        check_hdf5(path, file)
        if kind in ("link", "deep"):
            place = "stolen" if kind == "link" else "layer/deeper/stolen"
            file[place] = h5py.ExternalLink(str(other), "secret")
        elif kind == "external":
            file.create_dataset("layer/stolen", (2,), "f4", external=[(str(other), 0, 8)])
        else:
            layout = h5py.VirtualLayout((2,), "f4")
            layout[:] = h5py.VirtualSource(str(other), "secret", (2,))
            file["layer"].create_virtual_dataset("stolen", layout)
    with h5py.File(path) as file, pytest.raises(ConversionError) as caught:
        check_hdf5(path, file)
    assert caught.value.code == "unsafe-model"
    assert _code(path) == "unsafe-model"


@pytest.mark.parametrize("count", [1, 3])
def test_hdf5_files_unpack_to_little_more_than_they_are(tmp_path: Path, count: int) -> None:
    """Zeros that are compressed, in one array or several, and the same numbers as they are."""
    path = tmp_path / "model.h5"
    with h5py.File(path, "w") as file:
        for number in range(count):
            file.create_dataset(f"layer{number}/w", ((80 << 20) // 4 // count,), "f4", compression="gzip")
    with h5py.File(path) as file, pytest.raises(ConversionError) as caught:
        check_hdf5(path, file)
    assert caught.value.code == "archive-too-large"
    assert _code(path) == "archive-too-large"
    with h5py.File(path, "w") as file:
        file["layer/w"] = np.zeros((80 << 20) // 4, np.float32)
    with h5py.File(path) as file:
        check_hdf5(path, file)
