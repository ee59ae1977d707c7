"""TensorFlow in a process of its own, as a witness: it runs SavedModels, GraphDefs and MetaGraphs of any age.

Models run in a session, which all of these formats have in common, by the names of their tensors. This process never
imports TensorFlow.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from tfconvert.converter.ir.interface import Interface
from tfconvert.converter.process.child_process import Child, ChildError
from tfconvert.importers.containment import SAVED_MODEL_FILES
from tfconvert.importers.meta_graph import checkpoint_of, find_meta_graph
from tfconvert.importers.saved_model import is_saved_model
from tfconvert.importers.source import Source
from tfconvert.importers.temporary_model import OwnRun
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.boxes import Array
from tfconvert.schema.limits import budget

_TEXT = (".pbtxt", ".prototxt")
_LEAVE_OUT = "leave witness (--verify tensorflow) out"

Names = tuple[dict[str, str], dict[str, str]]
"""The tensors of a signature's inputs and outputs, by their names in the signature."""


class TensorFlow:
    """TensorFlow in a child process with a model; a context manager.

    Args:
        source: The model.

    Raises:
        ConversionError: TensorFlow is not installed (`tensorflow-missing`), or can't read such a model
            (`wrong-option`).
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._model = _model_of(source)
        if find_spec("tensorflow") is None:
            raise error(
                "tensorflow-missing",
                "TensorFlow can't be the witness, since it is not installed",
                hint=f"pip install 'tfconvert[tensorflow]', or {_LEAVE_OUT}",
            )
        self._child = Child(budget().limits.run_seconds)
        self._session: Any = None
        self._signatures: dict[str, Names] = {}

    def __enter__(self) -> TensorFlow:
        """Loads the model.

        Raises:
            ConversionError: TensorFlow can't (`tensorflow-failed`).
        """
        try:
            self._session = self._child.call(Session, *self._model)
            self._signatures = self._child.call(Session.signatures, self._session)
        except ChildError as problem:
            self._child.stop()
            raise error(
                "tensorflow-failed", f"TensorFlow can't load the model: {problem}", hint=_LEAVE_OUT
            ) from problem
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.stop()

    def function(self, interface: Interface) -> OwnRun | None:
        """Returns what calls a function in turn; `None` if the model has no such signature.

        Args:
            interface: The function, with the model's own names.
        """
        keys = [key for key in (*interface.keys, *interface.other_keys) if key in self._signatures]
        is_cut = self._source.inputs is not None or self._source.outputs is not None
        inputs, outputs = ([each.name for each in side] for side in (interface.inputs, interface.outputs))
        if keys and not is_cut:
            feeds, fetches = self._signatures[keys[0]]
            if not set(inputs) <= set(feeds) or not set(outputs) <= set(fetches):
                return None
            inputs, outputs = [feeds[name] for name in inputs], [fetches[name] for name in outputs]
        else:
            inputs, outputs = (list(map(_tensor, side)) for side in (inputs, outputs))

        def run(calls: Sequence[Sequence[Array]]) -> list[list[Array]]:
            try:
                return self._child.call(Session.run, self._session, inputs, list(map(list, calls)), outputs)
            except ChildError as problem:
                if problem.refusal:
                    raise error("runtime-error", f"TensorFlow can't run the model: {problem.refusal}") from problem
                raise error("tensorflow-failed", f"TensorFlow has ended: {problem}", hint=_LEAVE_OUT) from problem

        return run


def _tensor(name: str) -> str:
    return name if ":" in name else f"{name}:0"


def _model_of(source: Source) -> tuple[str, str, list[str], str]:
    """Returns the kind of a model, its path, the tags of its graph, and the path of its checkpoint.

    Raises:
        ConversionError: TensorFlow can't run it (`wrong-option`).
    """
    model = source.model
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        path = path.parent if path.name in SAVED_MODEL_FILES else path
        if is_saved_model(path):
            return "saved_model", str(path), list(source.tags or ("serve",)), ""
        if path.suffix in (".pb", *_TEXT):
            return "graph_def", str(path), [], ""
        meta_graph = find_meta_graph(path, follow_links=source.follow_links)
        if meta_graph is not None:
            checkpoint = checkpoint_of(meta_graph, follow_links=source.follow_links)
            return "meta_graph", str(meta_graph), [], "" if checkpoint is None else str(checkpoint)
    raise error(
        "wrong-option",
        f"TensorFlow can't be the witness of {source.name}: it runs SavedModels, GraphDefs and MetaGraphs in files",
        hint=_LEAVE_OUT,
    )


class Session:
    """A model in a session of TensorFlow, in the child process.

    Args:
        kind: `saved_model`, `graph_def` or `meta_graph`.
        path: The model.
        tags: The tags of a SavedModel's graph.
        checkpoint: The path of a MetaGraph's checkpoint.
    """

    def __init__(self, kind: str, path: str, tags: list[str], checkpoint: str) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        import tensorflow as tf  # noqa: TID251  # This process is there to run it.

        self._tf, self._kind, self._path, self._tags, self._checkpoint = tf, kind, path, tags, checkpoint
        self._session, self._meta_graph = self._loaded()
        self._is_fresh = True

    def _loaded(self) -> tuple[Any, Any]:
        """Returns a new session with the model in its initial state, and its MetaGraph if it has one."""
        v1 = self._tf.compat.v1
        session = v1.Session(graph=self._tf.Graph())
        try:
            with session.graph.as_default():
                return session, self._load(v1, session)
        except self._tf.errors.OpError as problem:
            raise ValueError(str(problem)) from problem

    def _load(self, v1: Any, session: Any) -> Any:
        if self._kind == "saved_model":
            return v1.saved_model.load(session, self._tags, self._path)
        if self._kind == "meta_graph":
            saver = v1.train.import_meta_graph(self._path, clear_devices=True)
            if saver is not None and self._checkpoint:
                saver.restore(session, self._checkpoint)
            session.run(v1.tables_initializer())
            return None
        graph = v1.GraphDef()
        content = Path(self._path).read_bytes()
        if self._path.endswith(_TEXT):
            from google.protobuf import text_format

            text_format.Parse(content.decode(), graph)
        else:
            graph.ParseFromString(content)
        self._tf.import_graph_def(graph, name="")
        return None

    def signatures(self) -> dict[str, Names]:
        """Returns the tensors of the inputs and outputs of each signature."""
        found = {} if self._meta_graph is None else self._meta_graph.signature_def
        return {
            key: (
                {name: info.name for name, info in each.inputs.items()},
                {name: info.name for name, info in each.outputs.items()},
            )
            for key, each in found.items()
        }

    def run(self, inputs: list[str], calls: list[list[Array]], outputs: list[str]) -> list[list[Array]]:
        """Calls the model in turn, first in its initial state.

        Args:
            inputs: The tensors to feed.
            calls: The values of each call.
            outputs: The tensors to fetch.
        """
        if not self._is_fresh and self._has_state():
            self._session.close()
            self._session, self._meta_graph = self._loaded()
        self._is_fresh = False
        try:
            found = [self._session.run(outputs, dict(zip(inputs, values, strict=True))) for values in calls]
        except self._tf.errors.OpError as problem:
            raise ValueError(str(problem)) from problem
        return [[np.asarray(value, object if isinstance(value, bytes) else None) for value in each] for each in found]

    def _has_state(self) -> bool:
        """Returns whether a run may change something; reading a model again takes long."""
        graph = self._session.graph.as_graph_def()
        nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
        return any("Assign" in node.op or "Stack" in node.op or node.op.startswith("Resource") for node in nodes)
