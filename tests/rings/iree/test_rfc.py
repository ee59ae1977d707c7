"""The smallest model of open sizes, a slice, an addition and a product, in IREE."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.stablehlo.test_rfc import TEXT

pytest.importorskip("iree.runtime")


def test_sizes_are_computed_on_the_host_and_the_rest_in_two_dispatches(tmp_path: Path) -> None:
    source, program = tmp_path / "model.mlir", tmp_path / "model.vmfb"
    source.write_text(TEXT)
    model = tfconvert.convert(source, target="iree")
    assert model.report.rewrites["compile"]["dispatches"] == 2
    model.save(program)
    loaded = tfconvert.load(program)
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    for rows, columns in ((2, 4), (4, 8), (2, 2)):
        half = np.array([rows // 2, columns // 2], np.int64)
        y = np.ones((rows, columns), np.float32)
        z = np.full((columns, 3), 0.5, np.float32)
        (found,) = loaded.run([x, half, y, z]).values()
        np.testing.assert_allclose(found, (x[:rows, :columns] + y) @ z, rtol=1e-5)
    for ends, rows, told in (([2, 5], 4, "slice"), ([1, 2], 3, "equal or 1")):
        with pytest.raises(tfconvert.ConversionError, match=told):
            loaded.run([x, np.array(ends, np.int64), np.ones((rows, 4), np.float32), np.ones((4, 3), np.float32)])
