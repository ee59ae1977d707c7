"""The key of a conversion's result: equal if everything is equal that the result is made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tfconvert.converter.composites.fusion_registry import ENTRY_POINTS
from tfconvert.converter.targets.output_form import Form
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.versions import own_version, version_of


def cache_key(form: Form, settings: object, inputs: object, *, is_run: bool) -> str:
    """Returns the key of a result, which names a file.

    Args:
        form: The form of the result.
        settings: The settings, as plain data.
        inputs: What is known of all that is read, as plain data: digests of contents, or names, sizes and times.
        is_run: Whether the model or the result is run during the conversion: to calibrate, or to verify.
    """
    made_by = [own_version(), *_tools(form, is_run=is_run), *_plugins()]
    text = json.dumps([made_by, settings, inputs], sort_keys=True)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def is_run(settings: Mapping[str, Any]) -> bool:
    """Returns whether settings, as keywords of `tfconvert.convert`, ask to run the model or the result."""
    return any(settings.get(name) for name in ("quantize", "verify", "verify_data", "compare_layers"))


def _tools(form: Form, *, is_run: bool) -> list[object]:
    """Returns the versions of other programs that make a result, or decide whether there is one."""
    if form.target == "litert":
        return [version_of("ai-edge-litert")] if is_run else []
    if form.mlir_artifact:
        return [version_of("jaxlib")]
    if form.target != "iree":
        return []
    # Here, so that other conversions don't load it.
    from tfconvert.converter.targets.iree import compiler

    try:
        program = Path(compiler.find()).stat()
    except ConversionError:
        return []  # Converting reports that it is missing.
    return [program.st_size, program.st_mtime_ns, version_of("iree-base-runtime") if is_run else ""]


@cache
def _plugins() -> list[str]:
    """Returns the packages that bring composite functions along."""
    return sorted(f"{each.name} {each.value} {each.dist}" for each in entry_points(group=ENTRY_POINTS))
