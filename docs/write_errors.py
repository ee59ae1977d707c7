"""Writes docs/errors.md: what each code of an error means, from the table that `tfconvert explain` reads.

python docs/write_errors.py
"""

from __future__ import annotations

from pathlib import Path

from tfconvert.schema.error_codes import all_codes

PAGE = Path(__file__).parent / "errors.md"

_HEAD = """# Error codes

Everything that `tfconvert` reports has a stable code: `[unsupported-op]` in the text of the command, `"code"` in JSON,
`Diagnostic.code` in Python. `tfconvert explain CODE` prints a section of this page. How the messages compare with those
of the official converter is described in [errors_compared.md](errors_compared.md).

A failed command ends with status 1 if the model couldn't be converted, 2 if the command line was wrong, and 3 after an
`internal-error`, a mistake of tfconvert's own; `--debug` prints the traceback of such a mistake. In Python a failed
conversion raises `tfconvert.ConversionError`, which has all diagnostics; anything else that is raised is a mistake of
tfconvert's own.

Each error about an op tells its types, its attributes, and the line of the source that created it, if the model holds
source lines. Models in memory come with them; a SavedModel has them if `tf.saved_model.save` got
`options=tf.saved_model.SaveOptions(save_debug_info=True)`.
"""


def page() -> str:
    """Returns the page's text."""
    return "\n".join([_HEAD, *(code.to_markdown() for code in all_codes().values())])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
