"""Artifacts of every version that jaxlib writes, in our reader and in jaxlib's.

TFCONVERT_ARTIFACTS may name a directory of artifacts (`*.mlirbc`, `*.bc`) and SavedModels, which are compared too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.importers.stablehlo.texts import TEXTS
from tfconvert.importers.stablehlo.artifact import import_artifact
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

pytest.importorskip("jaxlib")

_MINOR_VERSIONS = [f"0.{minor}.0" for minor in range(9, 21)] + [f"1.{minor}.0" for minor in range(18)]
_NEEDED = {"rare": "1.5.0", "new": "1.9.0"}


@pytest.mark.parametrize("version", _MINOR_VERSIONS)
def test_each_version_is_read_as_jaxlib_reads_it(version: str) -> None:
    from tests.rings.jaxlib_reading import compare, serialized

    compared = set()
    for name, text in TEXTS.items():
        data = serialized(text, version)
        if data is not None:
            assert compare(data) > 5
            compared.add(name)
    numbers = tuple(map(int, version.split(".")))
    assert compared >= {name for name in TEXTS if numbers >= tuple(map(int, _NEEDED.get(name, "0.9.0").split(".")))}


def test_plain_bytecode_is_refused() -> None:
    from jaxlib.mlir import ir  # type: ignore[import-not-found,unused-ignore]

    from tests.rings.jaxlib_reading import context

    with context(), pytest.raises(ConversionError, match="no portable artifact") as caught:
        import_artifact(_written(ir.Module.parse(TEXTS["elementwise"])), "plain.mlirbc")
    assert caught.value.code == "unsupported-artifact"
    assert "serialize_portable_artifact" in caught.value.diagnostics[0].hint


def _written(module: object) -> bytes:
    import io

    stream = io.BytesIO()
    module.operation.write_bytecode(stream)  # type: ignore[attr-defined]
    return stream.getvalue()


def _artifacts(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted([*folder.rglob("*.mlirbc"), *folder.rglob("*.bc")]):
        yield str(path), path.read_bytes()
    for path in sorted(folder.rglob("saved_model.pb")):
        model = pb.SavedModel.FromString(path.read_bytes())
        for graph in model.meta_graphs:
            for function in graph.graph_def.library.function:
                for node in function.node_def:
                    if node.op == "XlaCallModule":
                        yield f"{path}:{node.name}", node.attr["module"].s


@pytest.mark.skipif("TFCONVERT_ARTIFACTS" not in os.environ, reason="no directory of artifacts is named")
def test_artifacts_of_a_directory() -> None:
    from tests.rings.jaxlib_reading import compare

    compared, unreadable = 0, []
    for name, data in _artifacts(Path(os.environ["TFCONVERT_ARTIFACTS"])):
        try:
            compare(data)
        except ValueError:
            # jaxlib is older, or lacks a dialect of attributes; we read it.
            import_artifact(data, name)
            unreadable.append(name)
        compared += 1
    assert compared > 2 * len(unreadable), unreadable
