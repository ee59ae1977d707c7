"""Writes docs/errors.md and docs/errors/: the error codes, from the table that `tfconvert explain` reads.

python docs/write_errors.py

Each code is on the page of the part of the package that reports it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tfconvert.schema.error_codes import ErrorCode, all_codes

DOCS = Path(__file__).parent

_PACKAGE = DOCS.parent / "tfconvert"
_CODE = re.compile(r"[\"']([a-z]+(?:-[a-z0-9]+)+)[\"']")
# The pages: a name, a title, and the parts of the package whose codes they have.
_PAGES = (
    ("reading", "Reading models", ("importers/", "schema/")),
    ("conversion", "Conversion", ("converter/", "ops/")),
    ("quantization", "Quantization", ("converter/targets/litert/quantize/", "settings/quantization.py")),
    ("stablehlo", "StableHLO and IREE", ("converter/targets/stablehlo/", "converter/targets/iree/")),
    ("verification", "Verification and tools", ("converter/validation/", "converter/executor/", "tools/", "report/")),
    ("service", "The service and batches", ("service/", "client/", "batch/")),
    (
        "options",
        "Options and files to write",
        ("exporters/", "settings/", "compat/", "cli/", "api.py", "conversion.py"),
    ),
)
# Codes that belong to a page though other parts report them more often.
_ELSEWHERE = {
    **dict.fromkeys(("training-mode", "unsupported-op", "unsupported-type"), "conversion"),
    **dict.fromkeys(("calibrated-in-numpy", "constant-input", "default-range"), "quantization"),
    **dict.fromkeys(("low-fidelity", "no-samples", "wrong-metric"), "quantization"),
    **dict.fromkeys(("not-quantized", "stays-float", "unknown-range", "worst-layers"), "quantization"),
    **dict.fromkeys(("litert-missing", "litert-timeout"), "verification"),
    "not-a-saved-model": "reading",
    "output-not-writable": "options",
    "wrong-backend": "stablehlo",
}

_HEAD = """# Error codes

Everything that `tfconvert` reports has a stable code: `[unsupported-op]` in the output of the command, `"code"` in
JSON, `Diagnostic.code` in Python. `tfconvert explain CODE` prints a section of this page.
[errors_compared.md](errors_compared.md) compares the messages with those of the official converter.

The [exit status](command_line.md#exit-status) says whether to correct the command line or the model. An
`internal-error` is a bug in tfconvert; `--debug` prints its traceback. In Python a failed conversion raises
`tfconvert.ConversionError`, which has all diagnostics. Any other exception is a bug in tfconvert.

Each error about an op gives its types, its attributes, and the source line that created it, if the model records source
lines. Models in memory have them; a SavedModel has them if it was saved with
`options=tf.saved_model.SaveOptions(save_debug_info=True)`.
"""


def pages() -> dict[str, str]:
    """Returns the texts of the pages by their names below docs."""
    codes = all_codes()
    found = {name: [codes[each] for each in members] for name, members in _by_page(codes).items()}
    texts = {
        f"errors/{name}.md": "\n".join((f"# Error codes: {title}\n", *(each.to_markdown() for each in found[name])))
        for name, title, _ in _PAGES
    }
    lists = [f"## {title}\n\n{_list(name, found[name])}" for name, title, _ in _PAGES]
    return {"errors.md": "\n".join((_HEAD, *lists)), **texts}


def _by_page(codes: Mapping[str, ErrorCode]) -> dict[str, list[str]]:
    """Returns the codes of each page: that whose parts have most of the modules with the code."""
    uses = {code: Counter[str]() for code in codes}
    for path in _PACKAGE.rglob("*.py"):
        page = _page_of(path.relative_to(_PACKAGE).as_posix())
        for code in set(_CODE.findall(path.read_text("utf-8"))) & codes.keys():
            uses[code][page] += 1
    order = [name for name, _, _ in _PAGES]
    found = {
        code: _ELSEWHERE.get(code) or max(order, key=lambda page: (uses[code][page], -order.index(page)))
        for code in codes
    }
    return {page: [code for code in codes if found[code] == page] for page in order}


def _page_of(module: str) -> str:
    """Returns the page with the longest part that a module is in."""
    fitting = [(len(part), name) for name, _, parts in _PAGES for part in parts if module.startswith(part)]
    return max(fitting, default=(0, "options"))[1]


def _list(page: str, codes: list[ErrorCode]) -> str:
    return "".join(f"- [`{each.name}`](errors/{page}.md#{each.name}): {each.means}\n" for each in codes)


def written() -> dict[str, str]:
    """Returns the pages that are there, by their names below docs."""
    paths = [DOCS / "errors.md", *(DOCS / "errors").glob("*.md")]
    return {path.relative_to(DOCS).as_posix(): path.read_text("utf-8") for path in paths}


if __name__ == "__main__":
    (DOCS / "errors").mkdir(exist_ok=True)
    made = pages()
    for name in written().keys() - made.keys():
        (DOCS / name).unlink()
    for name, text in made.items():
        (DOCS / name).write_text(text, "utf-8")
