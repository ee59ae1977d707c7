"""Functions of JAX in memory, exported or lowered ones, as modules. JAX is not imported: who has one has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tfconvert.importers.jax_functions import NamedExport
from tfconvert.importers.mlir import import_mlir
from tfconvert.importers.stablehlo.artifact import import_artifact
from tfconvert.importers.stablehlo.interface import MAIN, SIGNATURE, Path, bind_argument, export_main
from tfconvert.importers.stablehlo.jax_export import argument_path
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import tf, types
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.tf_attributes import ShapeAttr
from tfconvert.schema.dialects.tf_saved_model import GlobalTensorOp
from tfconvert.schema.ir.attributes import ArrayAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import NameLoc
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import BlockArgument
from tfconvert.settings.selection import Selection


def import_jax(function: Any, selection: Selection) -> ModuleOp:
    """Returns the module of a function of JAX, with a signature for it.

    Args:
        function: A `jax.export.Exported`, one with names, an object that has one with names as its `function`, or a
            `jax.stages.Lowered`.
        selection: The shapes, the batch and the names that the user wants.

    Raises:
        ConversionError: It is something else of JAX (`unknown-format`), or for several devices
            (`unsupported-artifact`).
    """
    named = getattr(function, "function", function)
    if isinstance(named, NamedExport):
        return _exported(named, selection)
    if hasattr(function, "mlir_module_serialized"):
        return _exported(NamedExport(function, ()), selection)
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


def _exported(named: NamedExport, selection: Selection) -> ModuleOp:
    exported, name = named.exported, name_of(named)
    if exported.nr_devices > 1:
        raise error(
            "unsupported-artifact",
            f"{name} was exported for {exported.nr_devices} devices",
            hint="export it for one device, without shardings",
        )
    kept = exported.module_kept_var_idx
    module = import_artifact(exported.mlir_module_serialized, name)
    main = functions_of(module).get(MAIN)
    if main is not None:
        # The number of the platform is an argument before those of the function.
        first = len(main.args) - len(kept)
        states = [main.args[first + kept.index(each)] if each in kept else None for each in named.states]
        _keep_states(module, main, states, named)
        for index in reversed([index for index in kept if index < len(named.values)]):
            bind_argument(main, first + kept.index(index), named.values[index])
    kept = [index for index in kept if index >= len(named.values)]
    arguments = list(map(argument_path, _paths(exported.in_tree, (0,))))
    results: list[Path] = [("result", *path) for path in _paths(exported.out_tree, ())]
    platforms = [each.lower() for each in exported.platforms]
    inputs = [named.names[index - len(named.values)] for index in kept] if named.names else ()
    paths = [arguments[index] for index in kept]
    keys = named.keys or (SIGNATURE,)
    return export_main(module, selection, platforms, paths, results, (inputs, named.results), keys)


def _keep_states(module: ModuleOp, main: FuncOp, arguments: Sequence[BlockArgument | None], named: NamedExport) -> None:
    """Reads variables instead of arguments, and assigns to them what the function returns for them."""
    block = main.body.block
    first, last = block.first_op, block.last_op
    assert first is not None
    assert last is not None
    count = len(last.operands) - len(arguments)
    for argument, new, (index, name) in zip(arguments, last.operands[count:], named.states.items(), strict=True):
        value, location = named.values[index], NameLoc.get(name)
        tensor = GlobalTensorOp.build(name, value.type, value, is_mutable=True, location=location)
        module.body.block.insert_op_before(tensor, main)
        kind: dict[str, Any] = {"dtype": types.element_of(value.type), "shape": ShapeAttr.get(value.shape)}
        properties = {"container": "", "shared_name": name, "debug_name": name, "allowed_devices": [], **kind}
        handle = tf.build("VarHandleOp", (), (types.resource_of(value.type),), properties, location)
        read = tf.build("ReadVariableOp", handle.results, (value.type,), location=location)
        assigned = tf.build("AssignVariableOp", (handle.results[0], new), (), {"validate_shape": False}, location)
        for op, place in ((handle, first), (read, first), (assigned, last)):
            block.insert_op_before(op, place)
        if argument is not None:
            argument.replace_all_uses_with(read.results[0])
    last.set_operands(last.operands[:count])
    main.function_type = FunctionType.get(main.function_type.inputs, main.function_type.results[:count])
    if main.res_attrs is not None:
        main.res_attrs = ArrayAttr.get(main.res_attrs.data[:count])


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
