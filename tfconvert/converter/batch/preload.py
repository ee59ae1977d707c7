"""Loads all that a conversion may need, before the first one."""

from __future__ import annotations

import importlib
import os
import pkgutil
from pathlib import Path

from tfconvert.converter.batch.job import Job
from tfconvert.converter.batch.run_job import run_job
from tfconvert.schema.tensorflow.generated.tensorflow_pb2 import DT_FLOAT, GraphDef

_PACKAGE = Path(__file__).parents[2]

_LEFT_OUT = (
    "tfconvert.__main__",
    "tfconvert.compat",
    "tfconvert.converter.batch",
    "tfconvert.converter.cli",
    "tfconvert.converter.compat",
    "tfconvert.converter.service",
    "tfconvert.experimental",
    "tfconvert.importers.keras",
    "tfconvert.schema.tensorflow.make_op_defs",
)
"""What conversions in a worker never need, or what has an effect when it is loaded."""


def preload(folder: str) -> None:
    """Imports the package's modules, and converts a small graph, which reads the tables that are read once.

    Args:
        folder: Where the graph and its result go.
    """
    for module in pkgutil.walk_packages([os.fspath(_PACKAGE)], "tfconvert."):
        if not module.name.startswith(_LEFT_OUT):
            importlib.import_module(module.name)
    graph = GraphDef()
    x = graph.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = DT_FLOAT
    x.attr["shape"].shape.dim.add(size=2)
    y = graph.node.add(name="y", op="Relu", input=["x"])
    y.attr["T"].type = DT_FLOAT
    path = Path(folder, "graph.pb")
    path.write_bytes(graph.SerializeToString())
    run_job(Job(os.fspath(path), os.fspath(Path(folder, "graph.tflite"))), lambda stage: None)
