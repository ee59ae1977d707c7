"""JSON has no infinite and undefined numbers; records tell why they are missing."""

from __future__ import annotations

import ast
import json
import math

import pytest

from tests.support.sources import SourceFile
from tfconvert.converter.pipeline.pass_result import LayerReport
from tfconvert.schema.fidelity import Exclusions, Fidelity, LayerFidelity, OutputFidelity
from tfconvert.schema.json_text import json_text, record, restored


@pytest.mark.parametrize(
    ("value", "reason"), [(math.inf, "infinite"), (-math.inf, "minus infinite"), (math.nan, "undefined")]
)
def test_a_record_says_why_a_number_is_missing(value: float, reason: str) -> None:
    fields = {"name": "y", "snr": value, "agreement": 1.0}
    made = record(fields)
    assert made == {"name": "y", "snr": None, "agreement": 1.0, "why_null": {"snr": reason}}
    assert json.loads(json_text(made), parse_constant=pytest.fail) == made
    back = restored(made)
    assert repr(back) == repr({"name": "y", "agreement": 1.0, "snr": value}) or repr(back) == repr(fields)
    assert record({"snr": 1.0}) == restored({"snr": 1.0}) == {"snr": 1.0}


def test_numbers_that_json_lacks_are_null_anywhere() -> None:
    text = json_text({"all": [math.nan, 1.5, (math.inf,)], "inside": {"one": -math.inf}})
    assert json.loads(text, parse_constant=pytest.fail) == {"all": [None, 1.5, [None]], "inside": {"one": None}}


def test_an_exact_result_is_told_apart_from_an_undefined_one() -> None:
    layer = LayerFidelity("n", "ADD", math.inf, -math.inf, 0.0, math.inf, 1.0, 0.0)
    outputs = (OutputFidelity("y", math.inf, 1.0), OutputFidelity("z"))
    fidelity = Fidelity(4, outputs, (("n", -math.inf),), (layer,), Exclusions(("n",), math.inf))
    data = fidelity.to_dict()
    assert json.loads(json_text(data), parse_constant=pytest.fail) == data
    assert (data["snr"], data["why_null"]) == (None, {"snr": "infinite"})
    assert [each["why_null"] for each in data["outputs"]] == [{"snr": "infinite"}, {"snr": "undefined"}]
    assert data["worst"] == {"n": None}
    assert data["layers"][0]["why_null"] == {"snr": "infinite", "channel_snr": "minus infinite", "high": "infinite"}
    assert data["exclusions"]["why_null"] == {"snr": "infinite", "agreement": "undefined"}
    assert fidelity.summary() == {"is_low": False, "snr": None, "agreement": 1.0, "why_null": {"snr": "infinite"}}
    assert LayerReport("n", "ADD", "int8", weight_snr=math.inf).to_dict()["why_null"] == {"weight_snr": "infinite"}


# Files that write JSON for this program alone, which reads such numbers.
_OWN = {"converter/process/child_process.py", "batch/cache_key.py"}


def test_no_json_is_written_with_numbers_that_it_lacks(source_files: tuple[SourceFile, ...]) -> None:
    writers = [
        (file.path.as_posix(), call)
        for file in source_files
        for call, name in file.calls
        if name in ("json.dump", "json.dumps") and file.path.relative_to("tfconvert").as_posix() not in _OWN
    ]
    assert writers
    for path, call in writers:
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert given.get("allow_nan") == "False", f"{path}:{call.lineno}"
