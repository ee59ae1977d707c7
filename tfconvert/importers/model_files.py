"""The files that a model consists of, which an import may read.

MetaGraphs' importer is imported late, since most models don't need it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tfconvert.importers.containment import SAVED_MODEL_FILES
from tfconvert.importers.graph.debug_info import DEBUG_INFO
from tfconvert.importers.graph.tables import ASSETS
from tfconvert.importers.saved_model import is_saved_model
from tfconvert.schema.files import is_file, is_folder, read_file

# The name of an asset's file in MLIR text.
_ASSET = re.compile(rb'filename = "((?:[^"\\\n]|\\.)*)"')


def model_files(
    path: Path, asset_root: str | os.PathLike[str] | None = None, *, follow_links: bool = False
) -> list[Path]:
    """Returns the files of a model in a stable order; empty if there is no such model.

    Args:
        path: A path as for `tfconvert.convert`.
        asset_root: MLIR text: the directory below which it may name files.
        follow_links: Whether links may lead out of the model's directory.
    """
    if path.name in SAVED_MODEL_FILES:
        path = path.parent
    if is_saved_model(path):
        return _of_saved_model(path)
    if path.suffix == ".mlir" and is_file(path):
        return [path, *_named_assets(path, asset_root)]
    if path.suffix in (".pb", ".pbtxt", ".prototxt", ".tflite") and is_file(path):
        return [path]
    return _of_meta_graph(path, follow_links) or ([path] if is_file(path) else [])


def _of_saved_model(folder: Path) -> list[Path]:
    graph = next(folder / name for name in SAVED_MODEL_FILES if is_file(folder / name))
    debug = folder / DEBUG_INFO
    checkpoint = _of_checkpoint(folder / "variables" / "variables")
    return [graph, *checkpoint, *_below(folder / ASSETS), *([debug] if is_file(debug) else [])]


def _of_meta_graph(path: Path, follow_links: bool) -> list[Path]:
    """Returns the files of a MetaGraph; empty if the path refers to none."""
    from tfconvert.importers.meta_graph import STATE, checkpoint_of, find_meta_graph

    file = find_meta_graph(path, follow_links=follow_links)
    if file is None or not is_file(file):
        return []
    prefix = checkpoint_of(file, follow_links=follow_links)
    state = file.parent / STATE
    files = [file, *([state] if is_file(state) else []), *_below(file.parent / ASSETS)]
    return files if prefix is None else [*files, *_of_checkpoint(prefix)]


def _of_checkpoint(prefix: Path) -> list[Path]:
    """Returns a checkpoint's index and shards."""
    if not is_folder(prefix.parent):
        return []
    name = re.compile(re.escape(prefix.name) + r"\.(?:index|data-\d+-of-\d+)")
    return sorted(file for file in prefix.parent.iterdir() if name.fullmatch(file.name) and is_file(file))


def _below(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if is_file(file)) if is_folder(folder) else []


def _named_assets(text: Path, root: str | os.PathLike[str] | None) -> list[Path]:
    if root is None:
        return []
    names = dict.fromkeys(name.decode("utf-8", "surrogateescape") for name in _ASSET.findall(read_file(text)))
    return [Path(name) for name in names if is_file(name)]
