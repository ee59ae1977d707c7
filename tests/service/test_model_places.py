"""A request may name what is below the server's roots, whatever links say, and nothing else."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from tests.service.archive_corpus import GRAPH, MODEL, tarred, zipped
from tfconvert.importers.archive import ArchiveLimits
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.service import model_places

REMOTE = "memory://zoo/models"
LIMITS = ArchiveLimits(size=1 << 20, entries=20)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "models"
    for name, data in MODEL.items():
        file = root / "digits" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (root / "net.pb").write_bytes(GRAPH)
    (root / "net.weights").write_bytes(GRAPH)
    (root / "packed.zip").write_bytes(zipped(MODEL))
    (root / "model.keras").write_bytes(zipped({"metadata.json": b"", "config.json": b""}))
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "saved_model.pb").write_bytes(b"secret")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "inner").symlink_to(root / "digits")
    (root / "loop").symlink_to(root / "loop")
    return root


@pytest.fixture
def remote() -> Iterator[str]:
    system = fsspec.filesystem("memory")
    for name, data in MODEL.items():
        system.pipe(f"/zoo/models/digits/{name}", data)
    system.pipe("/zoo/models/net.pb", GRAPH)
    system.pipe("/zoo/models/packed.tgz", gzip.compress(tarred(MODEL)))
    system.pipe("/zoo/secret/saved_model.pb", b"secret")
    yield REMOTE
    system.rm("/zoo", recursive=True)


def content(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("spelling", ["{}/digits", "{}//digits/", "{}/./digits", "file://{}/digits", "{}/inner"])
def test_folders_are_read_where_they_are(spelling: str, root: Path, tmp_path: Path) -> None:
    found = model_places.resolve(spelling.format(root), [str(root)], tmp_path / "job")
    assert found == (root / "digits").resolve()
    assert not (tmp_path / "job").exists()


def test_files_with_a_known_extension_are_read_in_place(root: Path, tmp_path: Path) -> None:
    assert model_places.resolve(f"{root}/net.pb", [str(root)], tmp_path / "job") == root / "net.pb"
    assert (
        model_places.resolve(f"{root}/digits/saved_model.pb", [f"{root}/"], tmp_path / "job").parent == root / "digits"
    )
    other = model_places.resolve(f"{root}/net.weights", [str(root)], tmp_path / "job")
    assert other == tmp_path / "job" / "net.pb"


def test_archives_are_unpacked(root: Path, tmp_path: Path) -> None:
    found = model_places.resolve(f"{root}/packed.zip", [str(root)], tmp_path / "job")
    assert content(found) == MODEL
    assert found == tmp_path / "job"


@pytest.mark.parametrize(
    "place",
    [
        "{}/../secret",
        "{}/digits/../../secret",
        "{}/link",
        "{}/link/saved_model.pb",
        "{}x",
        "/etc/passwd",
        "/",
        "",
        ".",
        "digits",
        "~/digits",
        "file://host{}/digits",
        "file:///etc/passwd",
        "{}/digits\0",
        "{}/a\nb",
        "{}\\digits",
        "memory://zoo/models/digits",
        "file:{}/digits",
        "{}/%2e%2e/secret/\x7f",
    ],
)
def test_other_paths_are_refused(place: str, root: Path, tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        model_places.resolve(place.format(root), [str(root)], tmp_path / "job")
    assert caught.value.code == "place-not-allowed"
    assert "secret" not in (tmp_path / "job").parts


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("{}/nothing", "unreachable-place"),
        ("{}/loop", "unreachable-place"),
        ("{}/%2e%2e/secret", "unreachable-place"),
        ("{}/net.pb/x", "unreachable-place"),
        ("{}/model.keras", "keras-file"),
    ],
)
def test_missing_models_are_not_found(place: str, code: str, root: Path, tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        model_places.resolve(place.format(root), [str(root)], tmp_path / "job")
    assert caught.value.code == code
    assert not (tmp_path / "job").exists()


def test_without_roots_nothing_is_allowed(root: Path, tmp_path: Path) -> None:
    for place in (str(root), f"{REMOTE}/digits"):
        with pytest.raises(ConversionError) as caught:
            model_places.resolve(place, [], tmp_path / "job")
        assert caught.value.code == "place-not-allowed"


@pytest.mark.parametrize("place", ["{}/digits", "{}/digits/", "{}/packed.tgz", "MEMORY://zoo/models/./digits"])
def test_urls_are_fetched(place: str, remote: str, tmp_path: Path) -> None:
    found = model_places.resolve(place.format(remote), ["s3://other", remote], tmp_path / "job", LIMITS)
    assert content(found) == MODEL
    assert found.is_relative_to(tmp_path / "job")
    assert sum(1 for path in (tmp_path / "job").rglob("*") if path.is_file()) == len(MODEL)


def test_a_single_file_is_fetched(remote: str, tmp_path: Path) -> None:
    found = model_places.resolve(f"{remote}/net.pb", [f"{remote}/"], tmp_path / "job", LIMITS)
    assert found.name == "net.pb"
    assert found.read_bytes() == GRAPH


@pytest.mark.parametrize(
    "place",
    [
        "memory://zoo/secret",
        "{}/../secret",
        "{}/%2e%2e/secret",
        "{}/digits%2F..%2F..%2Fsecret",
        "memory://other/models",
        "memory://zoo@x/models/digits",
        "file://zoo/models/digits",
        "s3://zoo/models/digits",
        "{}x/digits",
        "zip://x::memory://zoo/models/packed.zip",
        "simplecache::{}/digits",
        "{}/dig*",
        "{}/digits?versionId=1",
        "{}/digits#x",
        "{}/di[g]its",
        "{}\\..\\secret",
        "http://zoo/models/digits",
        "memory:zoo/models/digits",
        "memory://",
    ],
)
def test_other_urls_are_refused(place: str, remote: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        model_places.resolve(place.format(remote), [remote], tmp_path / "job", LIMITS)
    assert caught.value.code == "place-not-allowed"
    assert not (tmp_path / "job").exists()


def test_urls_of_nothing_can_not_be_reached(remote: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        model_places.resolve(f"{remote}/nothing", [remote], tmp_path / "job", LIMITS)
    assert caught.value.code == "unreachable-place"


@pytest.mark.parametrize("limits", [LIMITS._replace(size=5), LIMITS._replace(entries=2)])
def test_downloads_are_limited(limits: ArchiveLimits, remote: str, tmp_path: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        model_places.resolve(f"{remote}/digits", [remote], tmp_path / "job", limits)
    assert caught.value.code == "archive-too-large"


def test_a_root_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "roots").symlink_to(root)
    found = model_places.resolve(f"{tmp_path}/roots/digits", [f"{tmp_path}/roots"], tmp_path / "job")
    assert found == (root / "digits").resolve()
    shutil.rmtree(root)


def test_a_request_is_checked_before_anything_is_read() -> None:
    assert model_places.check("s3://bucket/zoo//a/./b/", ["s3://bucket/zoo"]) == "s3://bucket/zoo/a/b"
    assert model_places.check("/models/a/", ["/models"]) == "/models/a"
    with pytest.raises(ConversionError):
        model_places.check("s3://bucket/zoological", ["s3://bucket/zoo"])
