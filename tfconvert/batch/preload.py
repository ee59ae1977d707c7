"""Loads all that a conversion may need, before the first one."""

from __future__ import annotations

import importlib
import os
import pkgutil
from pathlib import Path

from tfconvert.batch.job import Job
from tfconvert.batch.run_job import run_job
from tfconvert.batch.warm_up import warm_up_model

_PACKAGE = Path(__file__).parents[1]

# Modules that conversions in a worker never need, or that have an effect when loaded.
_LEFT_OUT = (
    "tfconvert.__main__",
    "tfconvert.compat",
    "tfconvert.batch",
    "tfconvert.client",
    "tfconvert.cli",
    "tfconvert.service",
    "tfconvert.experimental",
    "tfconvert.importers.keras",
    "tfconvert.schema.tensorflow.make_op_defs",
)


def preload(folder: str) -> None:
    """Imports the package's modules, and converts a small network, which reads the tables that are read once.

    Args:
        folder: Where the network and its result go.
    """
    for module in pkgutil.walk_packages([os.fspath(_PACKAGE)], "tfconvert."):
        if not module.name.startswith(_LEFT_OUT):
            importlib.import_module(module.name)
    model = Path(folder, "model")
    model.mkdir()
    (model / "saved_model.pb").write_bytes(warm_up_model().SerializeToString())
    files = (os.fspath(Path(folder, name)) for name in ("model.tflite", "report.json", "report.html"))
    run_job(Job(os.fspath(model), next(files), {}, *files), lambda stage: None)
