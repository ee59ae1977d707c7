"""Writes docs/errors.md: the meaning of each error code, from the table that `tfconvert explain` reads.

python docs/write_errors.py
"""

from __future__ import annotations

from pathlib import Path

from tfconvert.schema.error_codes import all_codes

PAGE = Path(__file__).parent / "errors.md"

_HEAD = """# Error codes

Everything that `tfconvert` reports has a stable code: `[unsupported-op]` in the output of the command, `"code"` in
JSON, `Diagnostic.code` in Python. `tfconvert explain CODE` prints a section of this page.
[errors_compared.md](errors_compared.md) compares the messages with those of the official converter.

A failed command exits with status 1 if the model couldn't be converted, 2 if the command line was invalid, and 3 on an
`internal-error`, which is a bug in tfconvert; `--debug` prints its traceback. In Python a failed conversion raises
`tfconvert.ConversionError`, which has all diagnostics. Any other exception is a bug in tfconvert.

Each error about an op gives its types, its attributes, and the source line that created it, if the model records source
lines. Models in memory have them; a SavedModel has them if it was saved with
`options=tf.saved_model.SaveOptions(save_debug_info=True)`.
"""


def page() -> str:
    """Returns the text of the page."""
    return "\n".join([_HEAD, *(code.to_markdown() for code in all_codes().values())])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
