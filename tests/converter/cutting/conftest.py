"""The models that are cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.converter.cutting import models

Folder = Callable[[str], Path]


@pytest.fixture(scope="package")
def network(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Returns a module and its functions."""
    return models.network(tf)


@pytest.fixture(scope="package")
def networks(tf: ModuleType, network: tuple[Any, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a SavedModel with all of them as signatures."""
    module, functions = network
    folder = tmp_path_factory.mktemp("cut") / "network"
    tf.saved_model.save(module, str(folder), signatures=functions)
    return folder


@pytest.fixture(scope="package")
def outside(tf: ModuleType) -> tuple[Any, dict[str, Any]]:
    """Returns a module whose functions do what belongs outside of models."""
    return models.outside(tf)


@pytest.fixture(scope="package")
def outsides(tf: ModuleType, outside: tuple[Any, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a SavedModel with all of them as signatures."""
    module, functions = outside
    folder = tmp_path_factory.mktemp("cut") / "outside"
    tf.saved_model.save(module, str(folder), signatures=functions)
    return folder


@pytest.fixture(scope="package")
def model_v1(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a SavedModel of TensorFlow 1."""
    return models.save_v1(tf, tmp_path_factory.mktemp("cut") / "v1")
