"""The interface of an exported function: its signature keys, and its inputs and outputs with names and types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tfconvert.schema.diagnostics import NOTE, SAME_SIGNATURE, Diagnostic, error
from tfconvert.schema.dialects import quant, types
from tfconvert.schema.dialects.func import FuncOp, functions_of
from tfconvert.schema.dialects.tf_saved_model import ENTRY_FUNCTION, EXPORTED_NAMES, OTHER_NAMES, port_names
from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, StringAttr
from tfconvert.schema.ir.builtin import ModuleOp

# Maximum number of inputs that a hint names.
_SHOWN = 4


class Tensor(NamedTuple):
    """A named input or output.

    Its type reads `f32[?,224,224,3]`, `?` for what is not known at compile time; integers that represent numbers have
    their scale and zero point beside them. The other fields are the same for programs.

    Attributes:
        name: Its name.
        type: Its type as text.
        dtype: Its element type by numpy's name, `float32`, or `string`.
        shape: Its dimensions, `None` where open; `None` if not even their number is known.
        scale: What an integer is multiplied with to give the number that it represents; `None` if it is just itself.
        zero_point: The integer that represents zero.
    """

    name: str
    type: str
    dtype: str = ""
    shape: tuple[int | None, ...] | None = None
    scale: float | None = None
    zero_point: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data."""
        shape = None if self.shape is None else list(self.shape)
        quantization = {} if self.scale is None else {"scale": self.scale, "zero_point": self.zero_point}
        return {"name": self.name, "dtype": self.dtype, "shape": shape, **quantization}

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


class Interface(NamedTuple):
    """The interface of an exported function.

    Attributes:
        function: Its symbol.
        keys: The signatures that are this function; empty for a plain graph.
        inputs: Its inputs.
        outputs: Its outputs.
        other_keys: Signatures of the model that are this function, too, and that the result doesn't have.
    """

    function: str
    keys: tuple[str, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    other_keys: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; types are there as text, by name, and taken apart, in order."""
        return {
            "signatures": list(self.keys),
            "other_signatures": list(self.other_keys),
            "inputs": {tensor.name: tensor.type for tensor in self.inputs},
            "outputs": {tensor.name: tensor.type for tensor in self.outputs},
            "arguments": [tensor.to_dict() for tensor in self.inputs],
            "results": [tensor.to_dict() for tensor in self.outputs],
        }

    def __str__(self) -> str:
        inputs, outputs = (", ".join(map(str, tensors)) for tensors in (self.inputs, self.outputs))
        others = f" (in the model also {', '.join(self.other_keys)})" if self.other_keys else ""
        return f"{', '.join(self.keys) or self.function}{others}: {inputs or '()'} -> {outputs}"


def interface_called(found: Sequence[Interface], signature: str) -> Interface:
    """Returns the function of a signature or a name, which may be empty if there is one function.

    Raises:
        ConversionError: There is no such function, or there are several (`wrong-sample`).
    """
    for each in found:
        known = (each.function, *each.keys, *each.other_keys)
        if signature in known or (not signature and len(found) == 1):
            return each
    names = [key for each in found for key in (each.keys or (each.function,))]
    message = f"there is no signature {signature!r}" if signature else "there are several signatures"
    raise error("wrong-sample", message, hint=f"pass signature=...; there are {', '.join(names)}")


def in_order(inputs: Mapping[str, Any] | Sequence[Any], interface: Interface) -> list[Any]:
    """Returns values, given by name or in order, in the order of a function's inputs.

    Raises:
        ConversionError: They are not those of the function (`wrong-sample`).
    """
    names = [tensor.name for tensor in interface.inputs]
    if not isinstance(inputs, Mapping):
        if len(inputs) != len(names):
            message = f"{len(inputs)} inputs are given, but these are taken: {', '.join(names) or '(none)'}"
            raise error("wrong-sample", message, hint="pass them in this order, or by name")
        return list(inputs)
    if set(inputs) != set(names):
        raise error(
            "wrong-sample",
            f"the inputs {', '.join(map(str, inputs)) or '(none)'} are given, but these are "
            f"taken: {', '.join(names) or '(none)'}",
            hint="pass each of them once",
        )
    return [inputs[name] for name in names]


def input_notes(found: Iterable[Interface], batch: int | None, *, has_delegates: bool = True) -> list[Diagnostic]:
    """Returns what the user should know about the sizes of inputs.

    Args:
        found: The interfaces of the exported functions.
        batch: The batch that the user asked for.
        has_delegates: Whether the model is for LiteRT, whose delegates ask for known sizes.
    """
    inputs = list(dict.fromkeys(each for interface in found for each in interface.inputs))
    notes = []
    left = [str(each) for each in inputs if "[]" in each.type or "[...]" in each.type]
    if batch is not None and left:
        message = f"without a known first dimension, these inputs have no batch: {', '.join(left)}"
        notes.append(Diagnostic("no-batch", message, severity=NOTE))
    unknown = [each for each in inputs if "?" in each.type or "..." in each.type]
    if unknown and has_delegates:
        message = f"many GPU and NPU delegates need fixed sizes, and these are dynamic: {', '.join(map(str, unknown))}"
        notes.append(Diagnostic("open-sizes", message, hint=_pinned(unknown), severity=NOTE))
    return notes


def signature_notes(found: Iterable[Interface]) -> list[Diagnostic]:
    """Returns which names of signatures the result doesn't have."""
    return [_left_out(interface) for interface in found if interface.other_keys]


def _left_out(interface: Interface) -> Diagnostic:
    own, others = interface.keys[0], interface.other_keys
    both = " ".join(f"--signature {key}" for key in (*others, own))
    return Diagnostic(
        SAME_SIGNATURE,
        f"{own!r} is also exported as {', '.join(map(repr, others))}: the result has it once",
        hint=f"{both} (signatures={[*others, own]}) keeps {'both' if len(others) == 1 else 'all'}",
        severity=NOTE,
    )


def _pinned(inputs: Sequence[Tensor]) -> str:
    """Returns how to pin the sizes of inputs."""
    if all("[?" in each.type and each.type.count("?") == 1 for each in inputs):
        return "batch=1 (--batch 1) fixes them"
    flags = " ".join(f"--input-shape {each.name}={_with_letters(each.type)}" for each in inputs[:_SHOWN])
    return f"input_shapes ({flags}{' ...' if len(inputs) > _SHOWN else ''}) fixes them"


def _with_letters(kind: str) -> str:
    """Returns the sizes of a type with letters for those that are unknown."""
    dims = kind.partition("[")[2].partition("]")[0].replace("...", "N,N").split(",")
    return ",".join("N" if dim == "?" else dim for dim in dims)


def interfaces(module: ModuleOp) -> Iterator[Interface]:
    """Yields the interface of each of the `entry_functions`."""
    yield from map(interface_of, entry_functions(module))


def entry_functions(module: ModuleOp) -> list[FuncOp]:
    """Returns the exported functions of a module; of one that names none, what becomes the main one."""
    functions = list(functions_of(module).values())
    main = [function for function in functions if function.sym_name == "main"] or functions
    return [function for function in functions if ENTRY_FUNCTION in function.attributes] or main[:1]


def is_open_inside(shape: types.Shape) -> bool:
    """Returns whether more of a shape than a batch is unknown."""
    return bool(shape) and min(shape[1:] or shape) < 0


def has_open_sizes(module: ModuleOp) -> bool:
    """Returns whether an exported function has an input of which more than the batch is unknown."""
    return any(
        is_open_inside(types.shape_of(each) or ())
        for function in entry_functions(module)
        for each in function.function_type.inputs
    )


def has_half_inputs(module: ModuleOp) -> bool:
    """Returns whether an exported function has an input of `f16` or `bf16`."""
    return any(
        types.element_of(each) in (types.F16, types.BF16)
        for function in entry_functions(module)
        for each in function.function_type.inputs
    )


def interface_of(function: FuncOp) -> Interface:
    """Returns the interface of an exported function."""
    kind = function.function_type
    return Interface(
        function.sym_name,
        _strings(function.attributes.get(EXPORTED_NAMES)),
        tuple(map(_tensor, port_names(function, "inputs"), kind.inputs)),
        tuple(map(_tensor, port_names(function, "outputs"), kind.results)),
        _strings(function.attributes.get(OTHER_NAMES)),
    )


def _strings(value: Attribute | None) -> tuple[str, ...]:
    return (
        tuple(each.data for each in value.data if isinstance(each, StringAttr)) if isinstance(value, ArrayAttr) else ()
    )


def _tensor(name: str, tensor_type: Attribute) -> Tensor:
    element, shape = types.element_of(tensor_type), types.shape_of(tensor_type)
    stored = quant.storage_of(element)
    row = types.from_mlir(stored)
    mlir_name = str(stored).removeprefix("!tf_type.")
    dtype = mlir_name if row is None or row.dtype == object else str(row.dtype)
    dims = None if shape is None else tuple(None if dim < 0 else dim for dim in shape)
    text = "..." if dims is None else ",".join("?" if dim is None else str(dim) for dim in dims)
    if not isinstance(element, quant.UniformType) or element.data.axis is not None:
        return Tensor(name, f"{mlir_name}[{text}]", dtype, dims)
    scale, zero_point = float(element.data.scales[0]), int(element.data.zero_points[0])
    # As the runtime tells it: the number that an integer is, is the scale times its distance from the zero point.
    told = f" (scale {scale:.6g}, zero point {zero_point})"
    return Tensor(name, f"{mlir_name}[{text}]{told}", dtype, dims, scale, zero_point)
