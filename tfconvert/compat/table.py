"""The table of attributes as the documentation has it; run as a module, it writes the table into the page again.

python -m tfconvert.compat.table docs/tflite_converter.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from tfconvert.compat.attributes import ROWS, TARGET, TARGET_ROWS, V1_ROWS
from tfconvert.compat.flags import FLAGS
from tfconvert.compat.row import Effect, OfficialAttribute


class NameRow(NamedTuple):
    """A name of `tf.lite` or `tf.compat.v1.lite`.

    Attributes:
        name: The name; that of a method has its class before it.
        text: What stands for it here, or why nothing does.
        is_here: Whether there is something under the same name.
        is_old: Whether only the first generation has it.
    """

    name: str
    text: str
    is_here: bool = True
    is_old: bool = False


def _gone(name: str, text: str) -> NameRow:
    return NameRow(name, text, is_here=False, is_old=True)


NAMES: Sequence[NameRow] = (
    NameRow("TFLiteConverter", "a class over `tfconvert.convert`"),
    NameRow("TFLiteConverter.from_saved_model", "the signatures named, or all"),
    NameRow("TFLiteConverter.from_keras_model", "Keras 3 on TensorFlow, and tf_keras"),
    NameRow("TFLiteConverter.from_concrete_functions", "one or several; several become signatures"),
    NameRow("TFLiteConverter.experimental_from_jax", "one function of JAX, which `jax.export` exports"),
    NameRow("Optimize", "the same names and values"),
    NameRow("OpsSet", "the same names and values"),
    NameRow("TargetSpec", "the same attributes"),
    NameRow("RepresentativeDataset", "the same"),
    NameRow("Interpreter", "LiteRT's, from the extra `verify`"),
    NameRow("experimental", "the module below"),
    NameRow(
        "experimental.Analyzer",
        "`analyze` prints the structure, and what a GPU doesn't take with the reason; `rows` returns the same as data",
    ),
    NameRow(
        "experimental.QuantizationDebugger",
        "compares the quantized file with the float one: `layer_statistics`, "
        "its CSV with the same columns, `model_statistics`; a layer inherits what those before it lost; "
        "`get_debug_quantized_model` is an error",
    ),
    NameRow("experimental.QuantizationDebugOptions", "the same"),
    NameRow("experimental.authoring", "`compatible`, and the error `CompatibilityError` that it raises if asked to"),
    NameRow("experimental.OpResolverType", "LiteRT's"),
    NameRow("experimental.load_delegate", "LiteRT's"),
    NameRow("TFLiteConverter.from_session", "variables as they are now", is_old=True),
    NameRow("TFLiteConverter.from_frozen_graph", "`.pb` and `.pbtxt`", is_old=True),
    NameRow("TFLiteConverter.from_keras_model_file", "`.keras` and `.h5`; with custom objects, too", is_old=True),
    NameRow("TFLiteConverter.get_input_arrays", "the names of the inputs", is_old=True),
    NameRow("TocoConverter", "the same as `TFLiteConverter`", is_old=True),
    _gone("OpHint", "converters have not read hints for years; composites mark functions"),
    _gone("experimental.convert_op_hints_to_stubs", "converters have not read hints for years"),
    _gone("toco_convert", "deprecated there: use `TFLiteConverter.from_session`"),
    _gone("constants", 'the names of element types as constants: pass `np.int8`, or `"int8"`'),
)
"""The names, those of the first generation last."""


BEGIN, END = "<!-- table of attributes -->", "<!-- end of the table -->"
"""The lines of a page between which the table is."""

_TITLES: dict[Effect, str] = {
    "maps": "Attributes that map to arguments",
    "no effect": "Attributes without effect",
    "refused": "Attributes that are refused",
}
_WAYS: dict[Effect, str] = {"maps": "here", "no effect": "why", "refused": "why, and what to do instead"}


def markdown() -> str:
    """Returns the tables: names, attributes (one part an effect), flags."""
    target = [row._replace(name=f"{TARGET}{row.name}") for row in TARGET_ROWS]
    old = [row._replace(name=f"{row.name} (v1)") for row in V1_ROWS if row not in ROWS]
    parts = ["\n".join(_part(effect, [*ROWS, *target, *old])) for effect in _TITLES]
    return "\n\n".join(("\n".join(_names()), *parts, "\n".join(_flags())))


def update(page: str) -> str:
    """Returns a page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n{markdown()}\n\n{END}{after}"


def _names() -> Iterator[str]:
    yield "### Names\n"
    yield "| name | here |"
    yield "| --- | --- |"
    for row in NAMES:
        text = row.text if row.is_here else f"not here: {row.text}"
        yield f"| `{row.name}`{' (v1)' if row.is_old else ''} | {text} |"


def _flags() -> Iterator[str]:
    yield "### Flags of the command `tflite_convert`\n"
    yield "| flag | here |"
    yield "| --- | --- |"
    for name, flag in FLAGS.items():
        text = flag.text if flag.effect == "maps" else f"{flag.effect}: {flag.text}"
        yield f"| `--{name}` | {text} |"


def _part(effect: Effect, rows: Sequence[OfficialAttribute]) -> Iterator[str]:
    yield f"### {_TITLES[effect]}\n"
    yield f"| attribute | default | {_WAYS[effect]} |"
    yield "| --- | --- | --- |"
    for row in rows:
        if row.effect == effect:
            name, _, old = row.name.partition(" ")
            text = f"{row.text}; {row.hint}" if row.hint else row.text
            yield f"| `{name}`{' ' + old if old else ''} | `{_shown(row.default)}` | {text} |"


def _shown(value: Any) -> str:
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(map(_shown, value))}}}"
    return str(value) if isinstance(value, Enum) else repr(value)


def main() -> None:
    """Writes the table into the page that the command line names."""
    page = Path(sys.argv[1])
    page.write_text(update(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
