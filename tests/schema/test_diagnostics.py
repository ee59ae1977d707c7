"""The text of diagnostics and errors."""

from __future__ import annotations

from tfconvert.schema.diagnostics import NOTE, ConversionError, Diagnostic, texts_of
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.ir.locations import CallSiteLoc, NameLoc

_PROBLEM = Diagnostic(
    "unsupported-op", "it is unknown", "tf.X", "dense/X", "model.py:7", "leave it out", signature="(f32) -> f32"
)


def test_all_known_details_are_reported_in_order() -> None:
    assert _PROBLEM.to_text(with_code=True).splitlines() == [
        'tf.X, node "dense/X", model.py:7: it is unknown [unsupported-op]',
        "  types: (f32) -> f32",
        "  hint: leave it out",
    ]


def test_a_layer_is_reported_if_the_nodes_name_lacks_it() -> None:
    assert "layer" not in _PROBLEM._replace(layer="dense").to_text()
    assert "  layer: model/dense" in _PROBLEM._replace(layer="model/dense").to_text()


def test_the_layer_of_a_node_in_a_called_function_is_that_of_the_call() -> None:
    call = NameLoc.get("model/block/StatefulPartitionedCall@main")
    place = place_of(CallSiteLoc.get(NameLoc.get("dense/MatMul@f"), call))
    assert (place.node, place.layer) == ("dense/MatMul", "model/block/dense")


def test_a_repeated_hint_is_reported_once() -> None:
    other = _PROBLEM._replace(op="tf.Y")
    first, second, third = texts_of([_PROBLEM, other, _PROBLEM._replace(hint="write it again")])
    assert "hint" not in first
    assert "hint: leave it out" in second
    assert "hint: write it again" in third


def test_advice_about_several_follows_them() -> None:
    consequence = Diagnostic("unsupported-op", "a consequence", severity=NOTE)
    error = ConversionError([_PROBLEM, consequence], ["save it otherwise"])
    assert str(error).splitlines()[-2:] == ["a consequence", "note: save it otherwise"]
    assert error.to_dict()["advice"] == ["save it otherwise"]
    assert "advice" not in ConversionError([_PROBLEM]).to_dict()
