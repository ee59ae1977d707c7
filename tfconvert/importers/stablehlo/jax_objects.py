"""Functions of JAX in memory, exported or lowered ones, as modules. JAX is not imported: who has one has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tfconvert.importers.jax_functions import NamedExport
from tfconvert.importers.mlir import import_mlir
from tfconvert.importers.stablehlo.artifact import import_artifact
from tfconvert.importers.stablehlo.interface import MAIN, Path, export_main
from tfconvert.importers.stablehlo.jax_export import argument_path
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects.func import functions_of
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.settings.selection import Selection


def import_jax(function: Any, selection: Selection) -> ModuleOp:
    """Returns the module of a function of JAX, with a signature for it.

    Args:
        function: A `jax.export.Exported`, one with names, or a `jax.stages.Lowered`.
        selection: The shapes, the batch and the names that the user wants.

    Raises:
        ConversionError: It is something else of JAX (`unknown-format`), or for several devices
            (`unsupported-artifact`).
    """
    if isinstance(function, NamedExport):
        return _exported(function.exported, selection, function.names)
    if hasattr(function, "mlir_module_serialized"):
        return _exported(function, selection)
    if hasattr(function, "as_text") and hasattr(function, "compile"):
        name = name_of(function)
        return export_main(import_mlir(function.as_text(dialect="stablehlo", debug_info=True), name), selection)
    raise error(
        "unknown-format",
        f"a {type(function).__name__} of JAX has no inputs yet",
        hint="give examples of its arguments: convert(f, args=(x,))",
    )


def name_of(function: Any) -> str:
    """Returns what to call a function in messages."""
    exported = function.exported if isinstance(function, NamedExport) else function
    name = getattr(exported, "fun_name", "")
    return f"the function {name} of JAX" if name else f"a {type(exported).__name__} of JAX"


def _exported(exported: Any, selection: Selection, names: Sequence[str] = ()) -> ModuleOp:
    name = name_of(exported)
    if exported.nr_devices > 1:
        raise error(
            "unsupported-artifact",
            f"{name} was exported for {exported.nr_devices} devices",
            hint="export it for one device, without shardings",
        )
    kept = exported.module_kept_var_idx
    module = import_artifact(exported.mlir_module_serialized, name)
    main = functions_of(module).get(MAIN)
    if names and main is not None:
        # The number of the platform is an argument before those of the function.
        for argument, index in zip(reversed(main.args), reversed(kept), strict=False):
            argument.location = NameLoc.get(names[index])
    arguments = list(map(argument_path, _paths(exported.in_tree, (0,))))
    results: list[Path] = [("result", *path) for path in _paths(exported.out_tree, ())]
    platforms = [each.lower() for each in exported.platforms]
    return export_main(module, selection, platforms, [arguments[index] for index in kept], results)


def _paths(tree: Any, others: Path) -> list[Path]:
    """Returns the paths of a tree's leaves, by keys of dictionaries and numbers in all other containers.

    Args:
        tree: The tree.
        others: The container whose items leaves are taken to be that are in objects of other kinds.
    """
    leaves = tree.num_leaves
    found: dict[int, Path] = dict(_numbered(tree.unflatten(range(leaves)), ()))
    return [found.get(leaf, (*others, leaf)) for leaf in range(leaves)]


def _numbered(node: Any, path: Path) -> Iterator[tuple[int, Path]]:
    if type(node) is int:
        yield node, path
        return
    items: Any = ()
    if isinstance(node, Mapping):
        items = node.items()
    elif isinstance(node, list | tuple):
        items = enumerate(node)
    for key, inner in items:
        yield from _numbered(inner, (*path, key if type(key) is int else str(key)))
