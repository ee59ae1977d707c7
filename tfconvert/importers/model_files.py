"""The files that a model consists of: what an import of it may read.

The import of what is only known about MetaGraphs is late, since most models are none.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tfconvert.importers.saved_model import FILES, is_saved_model

_ASSET = re.compile(rb'filename = "((?:[^"\\\n]|\\.)*)"')
"""How MLIR text names a file of an asset."""


def model_files(path: Path, asset_root: str | os.PathLike[str] | None = None) -> list[Path]:
    """Returns the files of a model in a stable order; none if there is no such model.

    Args:
        path: What `tfconvert.convert` takes as a path.
        asset_root: MLIR text: the folder below which it may name files.
    """
    if path.name in FILES:
        path = path.parent
    if is_saved_model(path):
        return _of_saved_model(path)
    if path.suffix == ".mlir" and path.is_file():
        return [path, *_named_assets(path, asset_root)]
    if path.suffix in (".pb", ".pbtxt", ".prototxt", ".tflite") and path.is_file():
        return [path]
    return _of_meta_graph(path) or ([path] if path.is_file() else [])


def _of_saved_model(folder: Path) -> list[Path]:
    graph = next(folder / name for name in FILES if (folder / name).is_file())
    debug = folder / "debug" / "saved_model_debug_info.pb"
    checkpoint = _of_checkpoint(folder / "variables" / "variables")
    return [graph, *checkpoint, *_below(folder / "assets"), *([debug] if debug.is_file() else [])]


def _of_meta_graph(path: Path) -> list[Path]:
    """Returns the files of a MetaGraph; none if the path means none."""
    from tfconvert.importers.meta_graph import checkpoint_of, checkpoint_state, find_meta_graph

    file = find_meta_graph(path)
    if file is None or not file.is_file():
        return []
    prefix = checkpoint_of(file)
    state = checkpoint_state(file.parent)
    files = [file, *([state] if state.is_file() else []), *_below(file.parent / "assets")]
    return files if prefix is None else [*files, *_of_checkpoint(prefix)]


def _of_checkpoint(prefix: Path) -> list[Path]:
    """Returns a checkpoint's index and shards."""
    if not prefix.parent.is_dir():
        return []
    name = re.compile(re.escape(prefix.name) + r"\.(?:index|data-\d+-of-\d+)")
    return sorted(file for file in prefix.parent.iterdir() if name.fullmatch(file.name) and file.is_file())


def _below(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else []


def _named_assets(text: Path, root: str | os.PathLike[str] | None) -> list[Path]:
    if root is None:
        return []
    names = dict.fromkeys(name.decode("utf-8", "surrogateescape") for name in _ASSET.findall(text.read_bytes()))
    return [Path(name) for name in names if Path(name).is_file()]
