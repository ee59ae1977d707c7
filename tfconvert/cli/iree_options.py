"""Options of the command that say how IREE compiles a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from tfconvert.settings.iree_options import BACKENDS, IreeOptions

_OPTIONS = (
    click.option(
        "--iree-backend",
        "iree_backend",
        type=click.Choice(BACKENDS),
        help="IREE: what to make code for. Default: llvm-cpu.",
    ),
    click.option(
        "--iree-target-cpu",
        "iree_cpu",
        metavar="CPU",
        help="IREE, llvm-cpu: a processor's name, or host for this machine's. Default: generic.",
    ),
    click.option(
        "--iree-flag",
        "iree_flags",
        metavar="FLAG",
        multiple=True,
        help="IREE: a further flag of iree-compile; repeatable.",
    ),
    click.option(
        "--iree-embed-weights",
        "iree_embeds",
        is_flag=True,
        help="IREE: weights in the .vmfb itself, not in a .safetensors beside it.",
    ),
    click.option(
        "--keep-mlir",
        "keep_mlir",
        is_flag=True,
        help="IREE: write the text that is compiled, too (.mlir), also if it can't be compiled.",
    ),
    click.option(
        "--iree-skip-index-checks",
        "iree_skips_checks",
        is_flag=True,
        help="IREE: move indices that are out of range inside, without an error.",
    ),
)

IREE_SETTINGS = ("iree_backend", "iree_cpu", "iree_flags", "iree_embeds", "keep_mlir", "iree_skips_checks")
"""The parameters that `iree_options` adds to a command."""

Function = Callable[..., Any]


def iree_options(function: Function) -> Function:
    """Adds the options that say how IREE compiles."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def to_iree(values: Mapping[str, Any]) -> IreeOptions | None:
    """Returns the settings that `iree_options` were given, `None` if there were none.

    Args:
        values: The parameters `IREE_SETTINGS`.
    """
    if not any(values.values()):
        return None
    backend: Any = values["iree_backend"] or BACKENDS[0]
    cpu = values["iree_cpu"] or "generic"
    flags, checks = tuple(values["iree_flags"]), not values["iree_skips_checks"]
    return IreeOptions(backend, cpu, flags, values["iree_embeds"], values["keep_mlir"], checks)
