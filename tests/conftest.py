"""Fixtures that every ring of tests shares: TensorFlow, LiteRT, and the sources."""

from __future__ import annotations

import gc
import importlib
import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import settings

from tests.support import litert, outlier, sources
from tests.support.litert import RunTFLite
from tfconvert.schema.versions import version_of

# Other work on the machine must not make a test fail.
settings.register_profile("without a deadline", deadline=None)
settings.load_profile("without a deadline")

# Graphs are full of cycles, but there is memory enough to leave them for a while.
gc.set_threshold(20_000, 200, 20)

# These must be set before any test imports TensorFlow.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# What oneDNN computes, and which ops it knows, depends on the processor.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
# Most XLA programs run once here, so optimizing them takes longer than running them. A flag that is not known ends
# the process: since 0.12 jaxlib has no choice of emitters.
_FLAGS = ["--xla_backend_optimization_level=0", "--xla_cpu_parallel_codegen_split_count=1"]
if tuple(map(int, (version_of("jaxlib") or "0.0").split(".")[:2])) < (0, 12):
    _FLAGS.append("--xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("XLA_FLAGS", " ".join(_FLAGS))
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "2")


def pytest_sessionfinish() -> None:
    """Leaves what is there alone: pytest looks through all of it five times for what it may warn of."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def root() -> Path:
    """Returns the repository's root."""
    return sources.ROOT


@pytest.fixture(scope="session")
def source_files() -> tuple[sources.SourceFile, ...]:
    """Returns the hand-written files of all our packages."""
    return sources.source_files()


@pytest.fixture(scope="session")
def tf() -> ModuleType:
    """Returns TensorFlow, on two threads and without its log."""
    tensorflow = importlib.import_module("tensorflow")
    tensorflow.get_logger().setLevel("ERROR")
    gc.freeze()  # A million objects that stay: no collection needs to look at them.
    return tensorflow


@pytest.fixture(scope="session")
def digits_model() -> Path:
    """Returns the folder of the example's SavedModel."""
    return sources.ROOT / "examples" / "digits" / "saved_model"


@pytest.fixture(scope="session")
def run_tflite() -> RunTFLite:
    """Returns the function that runs a .tflite file's bytes in LiteRT."""
    return litert.run


@pytest.fixture(scope="session")
def outlier_model(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a SavedModel that 8-bit integers ruin, beside samples for it in `images.npy`."""
    folder = tmp_path_factory.mktemp("outlier")
    np.save(folder / "images.npy", outlier.images())
    return outlier.save(tf, folder / "model")
