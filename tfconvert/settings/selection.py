"""The part of a model to import."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tfconvert.settings.setting import documented, is_path, setting

Order = Literal["written", "official", "official-v1", "flattened"]
"""The orders of a signature's inputs and outputs: that of the function's arguments and results, those of TensorFlow's
own converters (of version 2 and 1), and that of a function whose variables nobody owns: a dictionary's results by key.
"""

_MAX_DIM = (1 << 62) - 1


def _are_shapes(value: Any) -> bool:
    """Returns whether a value has the structure of shapes by name; their numbers are checked with the model."""
    return isinstance(value, Mapping) and all(
        isinstance(name, str)
        and isinstance(shape, Sequence)
        and not isinstance(shape, str | bytes | bytearray)
        and all(size is None or (hasattr(size, "__index__") and not isinstance(size, type)) for size in shape)
        for name, shape in value.items()
    )


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The part of a model to import; each format accepts some of these settings and rejects the others."""

    inputs: Sequence[str] | None = setting(
        None,
        "The tensors to feed, x or x:0, in this order; the nodes that compute them are left out.",
        flag="--input",
        metavar="NAME",
        expected="a list of names",
        example='["x:0"]',
        is_common=True,
    )
    outputs: Sequence[str] | None = setting(
        None,
        "The tensors to fetch, x or x:0, in this order; the nodes that use them are left out.",
        flag="--output",
        metavar="NAME",
        expected="a list of names",
        example='["scores:0"]',
        is_common=True,
    )
    input_shapes: Mapping[str, Sequence[int | None]] | None = setting(
        None,
        "Shapes by input name; -1 leaves a dimension as the model has it.",
        flag="--input-shape",
        expected="a mapping from names of inputs to shapes",
        example='{"image": [1, 224, 224, 3]}',
        schema={
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": {"type": ["integer", "null"], "minimum": -1, "maximum": _MAX_DIM},
                "maxItems": 32,
            },
        },
        accepts=_are_shapes,
        is_common=True,
    )
    signatures: Sequence[str] | None = setting(
        None,
        "SavedModels: the signatures to convert; by default all of them.",
        flag="--signature",
        metavar="KEY",
        expected="a signature or a list of them",
        example='["serving_default"]',
        is_common=True,
    )
    batch: int | None = setting(
        None,
        "The size that replaces the unknown first dimension of every input.",
        metavar="N",
        schema={"type": "integer", "minimum": 1, "maximum": _MAX_DIM},
        accepts=lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 1,
        is_common=True,
    )
    rename: Mapping[str, str] | None = setting(
        None,
        "New names of inputs and outputs, by the names that the model has.",
        expected="a mapping from names to new names",
        example='{"output_0": "scores"}',
    )
    tags: Sequence[str] | None = setting(
        None,
        "SavedModels: the tags of the graph to convert; by default serve.",
        help="SavedModels: the tags of the graph to convert, or several with commas; by default serve.",
        metavar="TAG",
        expected="a list of tags",
        example='["serve"]',
    )
    order: Order = setting(
        "written",
        "SavedModels: the order of inputs and outputs: the function's, or that of TensorFlow's own converters.",
    )
    checkpoint: str | os.PathLike[str] | None = setting(
        None,
        "SavedModel messages: the path of the checkpoint of their variables, without its files' extensions.",
        has_flag=False,
        expected="a path",
        accepts=is_path,
        stays="it belongs to a SavedModel message in memory, and models are sent as files",
    )
    asset_root: str | os.PathLike[str] | None = setting(
        None,
        "MLIR: the directory below which the text may name files, which are then read; by default none.",
        metavar="DIR",
        expected="a path",
        accepts=is_path,
        is_path=True,
    )
    follow_links: bool = setting(
        False, "Follow links that lead out of the model's directory; only for models that you trust.", is_path=True
    )
    op_defs: Any = setting(
        None,
        "Definitions of custom ops that a GraphDef uses: an OpList as text or binary, by its path or as a message.",
        help="Definitions of custom ops that a GraphDef uses: an OpList as text or binary.",
        metavar="FILE",
        expected="a path or an OpList",
        schema={"type": "string"},
        accepts=lambda value: is_path(value) or hasattr(value, "SerializeToString"),
        is_path=True,
    )
    # What follows is set by the package itself.
    is_raw: bool = False
    """GraphDefs: whether to import every node as it is, though it can't be converted so."""
    is_functional: bool = False
    """Whether graphs without V1 control flow, which need no executor, are imported as plain ops.

    They are what the pass `executor-to-functional` makes of them."""
    results: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names of outputs by signature, in the order of the function's results, where the graph doesn't tell."""
    tensors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The names of outputs in the graph of a function in memory, by signature and name, in the graph's order."""


WHOLE = Selection()
"""All of a model."""
