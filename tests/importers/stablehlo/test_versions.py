"""Artifacts of all versions of the bytecode are what their texts are."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.differential.artifact_mutants import run, text_mutant
from tests.importers.stablehlo.seeds import SEEDS
from tests.importers.stablehlo.texts import TEXTS
from tfconvert.exporters.mlir import write_mlir
from tfconvert.importers.mlir import import_mlir
from tfconvert.importers.stablehlo.artifact import import_artifact
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.dialects.stablehlo import StableHLOOp
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.values import Value


@pytest.mark.parametrize("name", SEEDS)
def test_each_version_is_the_text(name: str) -> None:
    module = import_artifact(SEEDS[name], name)
    expected = import_mlir(TEXTS[name.partition("-")[0]])
    assert _rows(module, expected) == _rows(expected, module)


def _rows(module: ModuleOp, other: ModuleOp) -> list[tuple[object, ...]]:
    """Returns what a module's ops are; optional properties that another module's op lacks are left out."""
    numbers: dict[Value, int] = {}
    rows: list[tuple[object, ...]] = []
    for op, twin in zip(module.walk(), other.walk(), strict=True):
        defined = [*op.results, *(each for region in op.regions for block in region.blocks for each in block.args)]
        for value in defined:
            numbers[value] = len(numbers)
        types = [str(value.type) for value in defined]
        rows.append((op.name, types, [numbers[value] for value in op.operands], _properties(op, twin)))
    return rows


def _properties(op: Operation, twin: Operation) -> dict[str, str]:
    found: dict[str, Attribute] = {**op.properties, **op.attributes}
    others = {**twin.properties, **twin.attributes}
    listed = op.DEFINITION.properties if isinstance(op, StableHLOOp) else {}
    optional = {name for name, each in listed.items() if each.optional}
    return {name: str(value) for name, value in found.items() if name in others or name not in optional}


@pytest.mark.parametrize("name", SEEDS)
def test_the_printed_module_is_the_same_module(name: str) -> None:
    def printed(module: ModuleOp) -> str:
        stream = io.StringIO()
        write_mlir(module, stream)
        return stream.getvalue()

    text = printed(import_artifact(SEEDS[name], name))
    assert printed(import_mlir(text)) == text


def test_locations_come_along() -> None:
    ops = list(import_artifact(SEEDS["elementwise-1.15.0"], "x").walk())
    places = {op.name: place_of(op.location) for op in ops}
    assert places["stablehlo.add"][:2] == ("jit(f)/add", "f.py:3")
    assert places["stablehlo.logistic"][:2] == ("jit(f)/logistic", "g.py:7")


@pytest.mark.parametrize("name", SEEDS)
def test_cut_artifacts_are_refused(name: str) -> None:
    data = SEEDS[name]
    for length in range(1, len(data), 7):
        with pytest.raises(ConversionError):
            import_artifact(data[:length], name)


def test_unknown_visibilities_are_refused() -> None:
    data = next(data for data in SEEDS.values() if b"private" in data)
    with pytest.raises(ConversionError, match="visibility of a function is one of public, private, nested"):
        import_artifact(data.replace(b"private", b"prlvate"), "model")


def test_mutants_are_converted_or_refused(tmp_path: Path) -> None:
    summary = run(list(SEEDS.values()), range(2000), tmp_path)
    assert not summary.failures, summary.details
    assert summary.counts["converted"] > 50
    assert summary.counts["malformed-artifact"] > 1000


def test_mutants_of_texts_are_converted_or_refused(tmp_path: Path) -> None:
    summary = run([text.encode() for text in TEXTS.values()], range(1000), tmp_path, text_mutant, open_every=10)
    assert not summary.failures, summary.details
    assert summary.counts["converted"] > 50
    assert summary.opened > 2
