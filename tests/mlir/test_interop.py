"""Our output must parse and verify in TensorFlow's own MLIR, at every stage that is in TensorFlow's dialects."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

from tests.mlir import graphs, oracle
from tests.support import sample_models
from tfconvert.converter.pipeline.runner import run_stages
from tfconvert.converter.pipelines import PIPELINES
from tfconvert.importers.source import Source
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.options import Options

# The control text must be refused, or the oracle judges nothing.
_WRONG = "func.func @f(%x: tensor<2xf32>) -> tensor<3xf32> { func.return %x : tensor<2xf32> }"

_BUILDS = sample_models.MODELS | sample_models.UNSUPPORTED


def _texts(source: Source) -> dict[str, str]:
    """Returns the module as imported and after each pass before the dialect is LiteRT's, by pass."""
    module = source.open()
    texts = {"import": oracle.whole_text(module)}
    with suppress(ConversionError):
        for done in run_stages(module, PIPELINES["tf-standard"], Options()):
            texts[done.name] = oracle.whole_text(module)
    return texts


@pytest.fixture(scope="module")
def problems(tf: ModuleType, digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Returns TensorFlow's MLIR's errors for our texts, by `model/pass`."""
    folder = tmp_path_factory.mktemp("models")
    models = {"digits": Source(digits_model)}
    for name, build in _BUILDS.items():
        models[name] = Source(sample_models.save(tf, build, folder / name))
    for name, case in graphs.CASES.items():
        graph = graphs.build(tf, case)
        inputs = tuple(each[0] for each in graph.inputs)
        models[f"{name} graph"] = Source(graph.save(folder / f"{name}.pb"), inputs=inputs, outputs=graph.outputs)
    texts = {f"{name}/{stage}": text for name, source in models.items() for stage, text in _texts(source).items()}
    return oracle.problems({"wrong": _WRONG, **texts})


def test_the_oracle_refuses_what_is_wrong(problems: dict[str, str]) -> None:
    assert "wrong" in problems


@pytest.mark.parametrize("model", ["digits", *_BUILDS, *(f"{name} graph" for name in graphs.CASES)])
def test_tensorflow_takes_every_stage(problems: dict[str, str], model: str) -> None:
    assert {name: text for name, text in problems.items() if name.startswith(f"{model}/")} == {}
