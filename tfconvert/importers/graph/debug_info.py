"""Source lines of nodes, where a SavedModel was saved with debug info (`SaveOptions(save_debug_info=True)`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from google.protobuf.message import DecodeError

from tfconvert.importers.containment import Folder
from tfconvert.schema.diagnostics import error
from tfconvert.schema.ir.locations import UNKNOWN_LOC, FileLineColLoc, Location
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

SourceOf = Callable[[str], Location]
"""Returns the source location of a node by its full name (`node@function`); `UNKNOWN_LOC` if unknown."""

# Frames of installed packages are less useful than the user's own.
_LIBRARIES = ("/site-packages/", "/dist-packages/")
_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"


def no_source(name: str) -> Location:
    """Returns the unknown location, for models without debug info."""
    return UNKNOWN_LOC


DEBUG_INFO = Path("debug", "saved_model_debug_info.pb")
"""The path of debug info in a SavedModel's directory."""


def load_debug_info(folder: Folder) -> SourceOf:
    """Returns a function that finds the source line of a SavedModel's node.

    Raises:
        ConversionError: The debug info can't be read (`damaged-debug-info`) or lies elsewhere
            (`outside-model`).
    """
    file = folder.path / DEBUG_INFO
    if not folder.has(file):
        return no_source
    try:
        info = pb.GraphDebugInfo.FromString(folder.read(file))
    except (OSError, DecodeError) as problem:
        raise error(
            "damaged-debug-info", f"{file} can't be read: {problem}", hint="copy it again or delete it"
        ) from None
    return Sources(info).find


class Sources:
    """Looks nodes up in a GraphDebugInfo of the old form (traces by name) or the new (traces and frames by number)."""

    def __init__(self, info: pb.GraphDebugInfo) -> None:
        self._files: list[str] = list(info.files)
        self._info = info
        self._traces: Mapping[str, pb.GraphDebugInfo.StackTrace] = info.traces

    def find(self, name: str) -> Location:
        """Returns the innermost frame of the user's own code, or the innermost of all.

        Where this package traced the model, that is among the frames of what it called: what called the package is not
        where the node comes from.
        """
        frames = list(self._frames(name))
        places = [
            (self._files[frame.file_index], frame) for frame in frames if 0 <= frame.file_index < len(self._files)
        ]
        ours = [index for index, (path, _) in enumerate(places) if path.startswith(_PACKAGE)]
        places = places[ours[-1] + 1 :] if ours else places
        own = [place for place in places if not any(library in place[0] for library in _LIBRARIES)]
        if not places:
            return UNKNOWN_LOC
        path, frame = (own or places)[-1]
        return FileLineColLoc.get(path, frame.line, frame.col)

    def _frames(self, name: str) -> Iterable[pb.GraphDebugInfo.FileLineCol]:
        """Returns the frames of a node's trace, innermost last."""
        trace: pb.GraphDebugInfo.StackTrace | None = None
        if name in self._info.name_to_trace_id:
            trace = self._info.traces_by_id.get(self._info.name_to_trace_id[name])
        elif name in self._traces:
            trace = self._traces[name]
        if trace is None:
            return []
        if trace.frame_id:
            return [self._info.frames_by_id[number] for number in trace.frame_id if number in self._info.frames_by_id]
        return trace.file_line_cols
