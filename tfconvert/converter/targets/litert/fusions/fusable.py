"""Any function marked `tfl_fusable_op`: a custom operator of the interface's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfconvert.converter.composites.composite import Composite, plain_option, unfit_option
from tfconvert.converter.composites.fusion import Body, Fusion
from tfconvert.converter.ir import option_map
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.values import Value

FLAG = "tfl_fusable_op"


def _options(composite: Composite) -> Mapping[str, Attribute]:
    return {name: value for name, value in sorted(composite.attributes.items()) if name != FLAG}


def _check(composite: Composite) -> str | None:
    if not composite.name:
        return "an operator's name can't be empty"
    return unfit_option(_options(composite))


def _rewrite(composite: Composite, body: Body) -> Sequence[Value]:
    options = {name: plain_option(value) for name, value in _options(composite).items()}
    return body.custom(composite.name, option_map.encode(options), body.arguments, composite.results)


FUSIONS = (
    Fusion(
        "fusable-op",
        "*",
        "any arguments and results; the other attributes are the options: a custom operator of the interface's name",
        _check,
        _rewrite,
        flag=FLAG,
        is_custom=True,
    ),
)
