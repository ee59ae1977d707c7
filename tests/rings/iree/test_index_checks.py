"""Indices that are out of range end in an error in IREE, too, and never in foreign memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfconvert
from tests.converter.targets.stablehlo.cases_indices import CASES
from tests.rings.iree.program import made
from tfconvert.converter.executor import executor
from tfconvert.schema.dialects.parsing import IRParser

pytest.importorskip("iree.runtime")


@pytest.mark.parametrize("name", CASES)
def test_indices_out_of_range_are_reported(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    source = tmp_path / "source.mlir"
    source.write_text(case.text)
    loaded = made(source, tmp_path)
    good = case.operands(case.good)
    expected = executor.run(IRParser(case.text).parse_module(), "main", good)
    for _ in range(3):
        found = loaded.run(good)
        np.testing.assert_allclose(next(iter(found.values())), expected[0], rtol=1e-5)
        with pytest.raises(tfconvert.ConversionError, match=case.message):
            loaded.run(case.operands(case.bad))
