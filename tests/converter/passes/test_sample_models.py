"""Passes on whole models: what a pass has done once it finds done, and nothing it leaves behind is broken."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.support import sample_models
from tfconvert.converter.pipeline.runner import make_pass
from tfconvert.converter.targets.litert.stages import STAGES
from tfconvert.importers.source import Source
from tfconvert.ops.verification import verify
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.options import Options


@pytest.fixture(scope="module", params=sample_models.MODELS)
def imported(request: pytest.FixtureRequest, tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> ModuleOp:
    """Returns a sample model, imported."""
    model: Path = sample_models.save(
        tf, sample_models.MODELS[request.param], tmp_path_factory.mktemp("models") / request.param
    )
    return Source(model).open()


def test_what_is_done_is_done(imported: ModuleOp) -> None:
    """Each pass verifies and, applied again at once, changes nothing."""
    module = imported.clone()
    for stage in STAGES:
        if stage.only_with == "quantize":
            continue  # It would need samples.
        run = make_pass(stage, Options())
        run.apply(module)
        verify(module)
        once = str(module)
        run.apply(module)
        assert str(module) == once, stage.run
