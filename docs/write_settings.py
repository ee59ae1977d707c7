"""Writes docs/settings.md: all settings of a conversion, from the classes that declare them.

python docs/write_settings.py
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.selection import Selection
from tfconvert.settings.setting import Setting, settings_of
from tfconvert.settings.targets import Iree, LiteRT, StableHLO
from tfconvert.settings.verify_options import Verify

PAGE = Path(__file__).parent / "settings.md"

_HEAD = """# Settings

Every setting of a conversion, with its name in Python, its flag, and its name in data: files of `tfconvert build` and
`tfconvert batch`, requests to the service, and keywords of the client. A setting without a flag can only be given in
Python; one without a name in data can't leave the process.

```python
import tfconvert

model = tfconvert.convert(
    tfconvert.Source("saved_model/", order="official"),
    batch=1,
    target=tfconvert.LiteRT(allow_custom_ops=True),
    quantize="dynamic",
    verify=tfconvert.Verify(data=["inputs.npz"]),
)
```

`target` is a name (`"litert"`, `"stablehlo"`, `"iree"`) or an object of the class that has the settings of this target.
A setting that belongs to another target is refused, on the command line too.
"""

_SECTIONS: tuple[tuple[str, Any, str], ...] = (
    ("The model", Selection, "Fields of `tfconvert.Source(model, ...)`; the first six are also keywords of `convert`."),
    ("The conversion", Options, "Keywords of `convert`."),
    ("LiteRT", LiteRT, "Fields of `tfconvert.LiteRT`; `quantize` is also a keyword of `convert`."),
    ("StableHLO", StableHLO, "Fields of `tfconvert.StableHLO`."),
    ("IREE", Iree, "Fields of `tfconvert.Iree`; in data, of the object `iree`."),
    ("Quantization", Quantize, "Fields of `tfconvert.Quantize`; in data, of the object `quantize`."),
    ("Verification", Verify, "Fields of `tfconvert.Verify`; in data, of the object `verify`."),
)

# Flags of settings that are more than their value.
_FLAGS = {
    "per_channel": "`--per-tensor`, `--per-tensor-dense`",
    "metadata": "`--metadata`, `--metadata-normalization`",
    "quantize": "`--quantize`",
}


def _value(row: Setting) -> str:
    """Returns a setting's default as Python writes it."""
    is_plain = isinstance(row.default, str | int | float | bool) and row.default != ""
    return f"`{row.default!r}`" if is_plain and row.default is not MISSING else ""


def _choices(row: Setting) -> str:
    choices = row.schema.get("enum", ())
    return f" One of {', '.join(f'`{each!r}`' for each in choices)}." if choices else ""


def _rows(cls: Any) -> Iterable[str]:
    yield "| Python | flag | data | default | |"
    yield "|---|---|---|---|---|"
    for row in settings_of(cls).values():
        flag = _FLAGS.get(row.name, f"`{row.flag}`" if row.flag else "")
        data = "" if row.stays else f"`{row.data}`"
        text = f"{row.text}{_choices(row)}".replace("|", "\\|").replace("*/", "\\*/")
        yield f"| `{row.name}` | {flag} | {data} | {_value(row)} | {text} |"


def page() -> str:
    """Returns the page's text."""
    sections = ("\n".join([f"\n## {title}\n", text, "", *_rows(cls)]) for title, cls, text in _SECTIONS)
    return "\n".join([_HEAD.rstrip(), *sections, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
