"""The benchmarks' choice of models."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks import zoo
from benchmarks.architectures import ARCHITECTURES, BENCH_SET

CACHE = Path("cache")


def test_all_are_chosen_by_default_the_bench_set_first() -> None:
    labels = [entry.label for entry in zoo.select(CACHE)]
    assert len(labels) == len(set(labels)) == sum(len(row.flavours) for row in ARCHITECTURES.values())
    assert labels[: len(BENCH_SET)] == [f"k3/{name}" for name in BENCH_SET]
    assert labels[len(BENCH_SET) : 2 * len(BENCH_SET)] == [f"tfk/{name}" for name in BENCH_SET]


@pytest.mark.parametrize(
    ("only", "flavour", "which", "labels"),
    [
        (["MobileNetV2"], "all", "all", ["k3/MobileNetV2", "tfk/MobileNetV2"]),
        (["tfk/MobileNetV2"], "all", "all", ["tfk/MobileNetV2"]),
        (["MobileNetV2", " ResNet50 "], "k3", "all", ["k3/MobileNetV2", "k3/ResNet50"]),
        (["ResNet50", "MobileNetV2", ""], "tfk", "bench", ["tfk/MobileNetV2", "tfk/ResNet50"]),
        (["ResNet101"], "k3", "bench", []),
    ],
)
def test_names_and_flavours_narrow_the_choice(only: list[str], flavour: str, which: str, labels: list[str]) -> None:
    assert [entry.label for entry in zoo.select(CACHE, only, flavour, which)] == labels


def test_unknown_names_are_reported() -> None:
    with pytest.raises(ValueError, match="LeNet"):
        zoo.select(CACHE, ["MobileNetV2", "LeNet"])
    parser = argparse.ArgumentParser()
    zoo.add_selection(parser)
    with pytest.raises(SystemExit):
        zoo.selected(parser, parser.parse_args(["--only", "LeNet"]))


def test_a_model_exists_only_as_it_would_be_made_today(tmp_path: Path) -> None:
    (entry,) = zoo.select(tmp_path, ["k3/MobileNetV2"])
    assert not entry.exists()
    entry.folder.mkdir(parents=True)
    entry.manifest.write_text(f'{{"settings": "{entry.settings()}"}}')
    assert entry.exists()
    for text in ('{"settings": "older"}', "{}", '{"sett'):
        entry.manifest.write_text(text)
        assert not entry.exists()
