"""The exported function of a StableHLO module: its names, the platform, and the sizes that the user pins.

JAX names results by attributes, `jax.result_info = "result['logits']"`, and arguments by their locations. `main` of a
module for several platforms has the number of the platform as an argument; `main` of one with dynamic sizes computes
them and calls the function proper, whose arguments have the names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tfconvert.importers.pinned_shapes import check_batch, override_shape, with_batch
from tfconvert.importers.renaming import check_rename
from tfconvert.schema.diagnostics import error
from tfconvert.schema.dialects import attributes as attrs
from tfconvert.schema.dialects import stablehlo, tensor_data, types
from tfconvert.schema.dialects.cut import CUT, Cut, End
from tfconvert.schema.dialects.foreign import TensorCastOp
from tfconvert.schema.dialects.func import CallOp, FuncOp, functions_of
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION, EXPORTED_NAMES, entry_attribute, path_attributes
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, StringAttr
from tfconvert.schema.ir.block import Block
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import Location, NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.types import FunctionType, TensorType, UnrankedTensorType
from tfconvert.schema.ir.values import BlockArgument
from tfconvert.settings.selection import Selection

MAIN = "main"
"""The exported function."""
SIGNATURE = "serving_default"
"""The key of its signature."""

_GLOBAL = "jax.global_constant"
_PLATFORM = "_platform_index"

# What producers write about a module.
_PRODUCERS = ("jax.", "mhlo.")

Path = tuple[str | int, ...]
"""An argument or a result: its name, then keys of dictionaries and numbers in other containers."""

_INFO = re.compile(r"""([A-Za-z_][\w.]*+)?((?:\[(?:\d+|'[^'\]]*+'|"[^"\]]*+")\])*+)""")
_KEY = re.compile(r"""\[(?:(\d+)|'([^'\]]*+)'|"([^"\]]*+)")\]""")
_NO_NAME = re.compile(r"[^\w./-]+")


def is_foreign(module: ModuleOp) -> bool:
    """Returns whether a text is a module that JAX or torch_xla printed, whose interface has no names of ours yet."""
    main = functions_of(module).get(MAIN)
    if main is None or main.is_declaration or {ENTRY_FUNCTION, EXPORTED_NAMES} & main.attributes.keys():
        return False
    own = [*module.attributes, *_names(main.arg_attrs), *_names(main.res_attrs)]
    return any(name.startswith(_PRODUCERS) for name in own)


def _names(attributes: ArrayAttr | None) -> list[str]:
    found = [] if attributes is None else [each.data for each in attributes.data if isinstance(each, DictionaryAttr)]
    return [name for each in found for name in each]


def export_main(
    module: ModuleOp,
    selection: Selection,
    platforms: Sequence[str] = (),
    arguments: Sequence[Path] = (),
    results: Sequence[Path] = (),
    names: tuple[Sequence[str], Sequence[str]] = ((), ()),
    keys: Sequence[str] = (SIGNATURE,),
) -> ModuleOp:
    """Makes `main` the signature of a module that was just imported; returns the module.

    Args:
        module: The module.
        selection: The shapes, the batch and the names that the user wants.
        platforms: The platforms that the module is for, in lower case.
        arguments: The paths of the arguments, if they are known.
        results: The paths of the results, if they are known.
        names: The names of arguments and of results that the user gave, instead of those in the module.
        keys: The keys of its signatures, by default the last one.

    Raises:
        ConversionError: There is no `main` (`unsupported-artifact`), or the module has no such signature, input or
            size.
    """
    main = functions_of(module).get(MAIN)
    if main is None or main.is_declaration:
        raise error("unsupported-artifact", "the module has no function main", hint="export one function")
    bind_platform(main, platforms)
    # Numbers of arguments are known to be wrong in files whose names don't belong to their modules.
    if len(arguments) != len(main.args):
        arguments = [(f"arg{index}",) for index in range(len(main.args))]
    functions = functions_of(module)
    inputs = _unique(
        [_path_of(argument, main, functions) or known for argument, known in zip(main.args, arguments, strict=True)]
    )
    found = [_info(main.res_attrs, index, "jax.result_info") for index in range(len(main.function_type.results))]
    if len(results) != len(found):
        results = [("result",)] if len(found) == 1 else [("result", index) for index in range(len(found))]
    outputs = _unique([path or results[index] for index, path in enumerate(found)])
    inputs, outputs = list(names[0] or inputs), list(names[1] or outputs)
    _pin(main, inputs, selection)
    rename = selection.rename or {}
    # The cut finds what it replaces by the old names.
    check_rename([(selection.inputs or inputs, selection.outputs or outputs)], rename)
    _mark_cut(main, inputs, selection)
    if selection.inputs is None:
        inputs = [rename.get(name, name) for name in inputs]
    if selection.outputs is None:
        outputs = [rename.get(name, name) for name in outputs]
    main.attributes[ENTRY_FUNCTION] = entry_attribute(inputs, outputs)
    main.attributes[EXPORTED_NAMES] = attrs.of(_chosen(keys, selection))
    main.arg_attrs = ArrayAttr.get([DictionaryAttr.get(path_attributes(name)) for name in inputs])
    main.res_attrs = ArrayAttr.get([DictionaryAttr.get(path_attributes(name)) for name in outputs])
    return module


def bind_platform(main: FuncOp, platforms: Sequence[str]) -> None:
    """Replaces the number of the platform, an argument of modules for several, by that of the processor.

    Args:
        main: The exported function.
        platforms: The platforms in the order of their numbers, in lower case.
    """
    if main.args and _text(main.arg_attrs, 0, _GLOBAL) == _PLATFORM:
        dtype = types.numpy_dtype(main.args[0].element)
        number = platforms.index("cpu") if "cpu" in platforms else 0
        bind_argument(main, 0, tensor_data.of_array(np.array(number, dtype)))


def bind_argument(main: FuncOp, index: int, value: tensor_data.Constant) -> None:
    """Replaces an argument of the exported function by its value."""
    block = main.body.block
    argument = main.args[index]
    constant = stablehlo.constant(value, argument.location)
    _insert_first(block, constant)
    argument.replace_all_uses_with(constant.results[0])
    block.erase_arg(argument)
    if main.arg_attrs is not None:
        main.arg_attrs = ArrayAttr.get([each for at, each in enumerate(main.arg_attrs.data) if at != index])
    _update_type(main)


def _update_type(main: FuncOp) -> None:
    main.function_type = FunctionType.get([each.type for each in main.args], main.function_type.results)


def _insert_first(block: Block, op: Operation) -> None:
    assert block.first_op is not None
    block.insert_op_before(op, block.first_op)


# Names.


def _text(attributes: ArrayAttr | None, index: int, name: str) -> str:
    own = attributes.data[index] if attributes is not None and index < len(attributes.data) else None
    found = own.data.get(name) if isinstance(own, DictionaryAttr) else None
    return found.data if isinstance(found, StringAttr) else ""


def _info(attributes: ArrayAttr | None, index: int, name: str) -> Path | None:
    """Returns the path that an attribute is, `None` if it is absent."""
    text = _text(attributes, index, name)
    return _path(text) if text else None


def _path(text: str) -> Path | None:
    """Returns the path of a text such as `x['a'][0]`, `None` if it is something else."""
    match = _INFO.fullmatch(text)
    if match is None:
        return None
    keys = [int(number) if number else one or other for number, one, other in _KEY.findall(match[2])]
    return (match[1] or "result", *keys)


def _path_of(argument: BlockArgument, main: FuncOp, functions: Mapping[str, FuncOp]) -> Path | None:
    """Returns the path of an argument: its attribute, its location, or the location of what it is passed to."""
    found = _info(main.arg_attrs, argument.index, "jax.arg_info") or _located(argument.location)
    for use in argument.uses:
        callee = functions.get(use.operation.callee) if isinstance(use.operation, CallOp) else None
        if found is None and callee is not None and not callee.is_declaration and use.index < len(callee.args):
            found = _located(callee.args[use.index].location)
    return found


def _located(location: Location) -> Path | None:
    return _path(location.name) if isinstance(location, NameLoc) and location.name else None


def _unique(paths: Sequence[Path]) -> list[str]:
    """Returns a name for each path: the keys if they are those of a dictionary, else with the name before them."""
    short = [_joined(path[1:] if isinstance((*path, 0)[1], str) else path) for path in paths]
    count = Counter(short)
    names = [each if count[each] == 1 and each else _joined(path) for each, path in zip(short, paths, strict=True)]
    taken: set[str] = set()
    for index, name in enumerate(names):
        number = 0
        while names[index] in taken:
            number += 1
            names[index] = f"{name}_{number}"
        taken.add(names[index])
    return names


def _joined(path: Path) -> str:
    return "_".join([_NO_NAME.sub("_", str(part)) for part in path])


# Parts.


def _chosen(keys: Sequence[str], selection: Selection) -> list[str]:
    """Returns the keys of signatures that the user wants."""
    wanted = keys[-1:] if selection.signatures is None else selection.signatures
    for key in wanted:
        if key not in keys:
            hint = f"its signatures are: {', '.join(keys)}"
            raise error("unknown-signature", f"the model has no signature {key!r}", hint=hint)
    return list(dict.fromkeys(wanted))


def _mark_cut(main: FuncOp, names: Sequence[str], selection: Selection) -> None:
    """Marks the tensors that become inputs and outputs: inputs and outputs of the function, or nodes inside of it."""
    if selection.inputs is None and selection.outputs is None:
        return
    if selection.outputs is not None and not selection.outputs:
        raise error("wrong-option", "outputs is empty", hint="name the tensors to fetch, or leave it out")
    rename = selection.rename or {}
    shapes = {
        name: override_shape(name, None, shape)
        for name, shape in (selection.input_shapes or {}).items()
        if name not in names
    }

    def ends(given: Sequence[str] | None) -> tuple[End, ...] | None:
        return None if given is None else tuple([End(name, rename.get(name, name), shapes.get(name)) for name in given])

    # The batch is that of the function's inputs, from which the sizes inside of it follow.
    cut = Cut(ends(selection.inputs), ends(selection.outputs))
    main.attributes[CUT] = cut.to_attribute()


# Sizes.


def _pin(main: FuncOp, names: Sequence[str], selection: Selection) -> None:
    """Gives inputs the shapes that the user wants; the function's ops still see the types that they were made for."""
    wanted = dict(selection.input_shapes or {})
    # Those of other new inputs are set when the function is cut.
    if unknown := sorted(wanted.keys() - {*names, *(selection.inputs or ())}):
        raise error(
            "unknown-input",
            f"input_shapes names {unknown}, which the function doesn't have",
            hint=f"the inputs are {list(names)}",
        )
    if selection.batch is not None:
        check_batch(selection.batch)
    for name, argument in zip(names, main.args, strict=True):
        kind = argument.type
        if not isinstance(kind, TensorType | UnrankedTensorType):
            continue
        if name in wanted:
            shape = override_shape(name, types.shape_of(kind), wanted[name])
            kind = types.tensor(types.element_of(kind), shape)
        if selection.batch is not None:
            kind = with_batch(name, kind, selection.batch)
        if kind is not argument.type:
            _retype(main, argument, kind)
    _update_type(main)


def _retype(main: FuncOp, argument: BlockArgument, kind: Attribute) -> None:
    cast = TensorCastOp.create(operands=(argument,), result_types=(argument.type,), location=argument.location)
    argument.replace_all_uses_with(cast.results[0])
    cast.set_operand(0, argument)
    argument.type = kind
    _insert_first(main.body.block, cast)
