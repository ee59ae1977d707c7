"""The settings of quantization: what is wrong is an error that says so, before any work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfconvert.api import convert
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.quantization import Quantize, to_quantize


@pytest.mark.parametrize(
    "settings",
    [
        {"mode": "int7"},
        {"mode": 5},
        {"mode": None},
        {"mode": ["int8"]},
        {"mode": np.array(["int8", "int16"])},
        {"weights": 5},
        {"weights": "8"},
        {"weights": 8.0},
        {"weights": True},
        {"weights": None},
        {"io": "int32"},
        {"io": None},
        {"io": np.int8},
        {"io": ("int8",)},
        {"io": ("int8", "int4")},
        {"io": (None, "int8")},
        {"io": ["int8", "int8"]},
        {"io": ("float32", "int16")},
        {"mode": "dynamic", "io": ("float32", "int8")},
        {"ranges": "kl"},
        {"ranges": None},
        {"exclude": "SOFTMAX"},
        {"exclude": b"SOFTMAX"},
        {"exclude": 5},
        {"exclude": [5]},
        {"exclude": None},
        {"exclude": (name for name in ("ADD",))},
        {"calibration": 5},
        {"progress": 5},
        {"per_channel": "yes"},
        {"per_channel": "dense"},
        {"strict": 1},
        {"hybrid_only": None},
        {"io": "int16"},
        {"mode": "int16", "io": "int8"},
        {"mode": "dynamic", "io": "int8"},
        {"mode": "float16", "weights": 4},
        {"mode": "weights", "samples": []},
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConversionError) as caught:
        Quantize(**{"mode": "int8", **settings}).check()
    assert caught.value.code == "wrong-option"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"weights": 4},
        {"io": "uint8"},
        {"io": ("uint8", "float32")},
        {"mode": "int16", "io": "int16"},
        {"exclude": ("A*",)},
        {"exclude": {"B"}},
        {"calibration": Path("ranges.json"), "progress": print, "per_channel": False, "strict": True, "ranges": "mse"},
    ],
)
def test_other_settings_are_right(settings: dict[str, Any]) -> None:
    Quantize(**{"mode": "int8", **settings}).check()


@pytest.mark.parametrize("setting", [5, {}, "int7", Quantize, ["int8"]])
def test_what_is_no_setting_is_refused(setting: Any, tmp_path: Path) -> None:
    # The model is not even looked for.
    with pytest.raises(ConversionError) as caught:
        convert(tmp_path / "none", quantize=setting)
    assert caught.value.code == "wrong-option"
    if not isinstance(setting, str):
        with pytest.raises(ConversionError):
            to_quantize(setting).check()
