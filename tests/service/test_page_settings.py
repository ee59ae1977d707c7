"""The fields of the page's form have every setting that a browser can send."""

from __future__ import annotations

import json

from tfconvert.service.http.pages import fields
from tfconvert.settings.data import SETTINGS

# Settings that the form has fields of its own for, and those that are sent as JSON.
_OWN = {"target", "quantize", "verify", "batch", "iree"}
_JSON = {"metadata", "limits", "keep_graphs", "verify_data", "compare_layers"}


def test_every_setting_that_may_be_sent_has_a_field() -> None:
    outside = {field["name"] for group in fields()["groups"] if "inside" not in group for field in group["fields"]}
    sent = {name for name, row in SETTINGS.items() if row.own_values or not row.is_path}
    assert outside == sent - _OWN - _JSON


def test_fields_say_nothing_of_the_command() -> None:
    found = [field for group in fields()["groups"] for field in group["fields"]]
    assert len({field["label"] for field in found}) > 30
    for field in found:
        assert field["text"], field
        assert "--" not in field["text"]
        assert "_" not in field["label"]
        assert bool(field.get("choices")) == (field["kind"] in ("choice", "choices")), field
        if field["kind"] in ("shapes", "names"):
            assert isinstance(json.loads(field["example"]), dict)


def test_flags_and_settings_have_the_same_labels() -> None:
    table = fields()
    assert table["flags"]["--allow-flex"] == table["labels"]["allow_flex"] == "Select TF ops"
    assert table["flags"]["--quantize"] == "Quantization"
    assert table["flags"]["--samples"] == table["labels"]["samples"]
