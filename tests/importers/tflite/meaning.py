"""The meaning of a .tflite file, in a form that compares equal regardless of the order of tables."""

from __future__ import annotations

from typing import Any

from tfconvert.schema.tflite.reader import View, read_model
from tfconvert.schema.tflite.tables import SCALARS, TFLITE

Tree = dict[str, Any]


def meaning(content: bytes) -> Tree:
    """Returns a model's subgraphs, signatures and metadata, indices replaced by what they refer to."""
    model = read_model(content)

    def data(index: int) -> bytes:
        view = model["buffers"][index]
        if view["offset"] > 1:
            return content[view["offset"] : view["offset"] + view["size"]]
        return b"" if view["data"] is None else view["data"].tobytes()

    codes = [_code(view) for view in model["operator_codes"] or ()]
    subgraphs = model["subgraphs"]
    return {
        "description": model["description"] or "",
        "subgraphs": [_subgraph(view, codes, data) for view in subgraphs],
        "signatures": sorted(_signature(view) for view in model["signature_defs"] or ()),
        "metadata": {
            view["name"]: data(view["buffer"]) for view in model["metadata"] or () if view["name"] != "buffer_location"
        },
        "beside": [
            [view.tree() for view in model[name] or ()] for name in ("external_buffers", "external_buffer_groups")
        ],
    }


def _code(view: View) -> tuple[str | None, str]:
    number = max(view["builtin_code"], view["deprecated_builtin_code"])
    return TFLITE.member("BuiltinOperator", number), view["custom_code"] or ""


def _signature(view: View) -> tuple[str, int, list[str], list[str]]:
    names = (sorted(item["name"] for item in view[which] or ()) for which in ("inputs", "outputs"))
    return (view["signature_key"], view["subgraph_index"], *names)


def _numbers(value: Any) -> list[int]:
    return [] if value is None else value.tolist()


def _subgraph(view: View, codes: list[tuple[str | None, str]], data: Any) -> Tree:
    order: dict[int, int] = {}
    tensors: list[Tree] = []

    def use(index: int) -> int:
        if index == -1:
            return -1
        if index not in order:
            order[index] = len(order)
            tensors.append(_tensor(view["tensors"][index], data, view["tensors"]))
        return order[index]

    inputs = [use(index) for index in _numbers(view["inputs"])]
    operators = []
    for operator in view["operators"] or ():
        rest = {"mutating_variable_inputs", "debug_metadata_index"} & set(operator.stored())
        operators.append(
            {
                "code": codes[operator["opcode_index"]],
                "options": [_options(operator[union]) for union in ("builtin_options", "builtin_options2")],
                "custom": b"" if operator["custom_options"] is None else operator["custom_options"].tobytes(),
                "rest": [(name, str(operator[name])) for name in sorted(rest)],
                **{
                    name: [use(item) for item in _numbers(operator[name])]
                    for name in ("inputs", "intermediates", "outputs")
                },
            }
        )
    outputs = [use(index) for index in _numbers(view["outputs"])]
    return {
        "name": view["name"] or "",
        "inputs": inputs,
        "outputs": outputs,
        "operators": operators,
        "tensors": tensors,
    }


def _options(view: View | None) -> Any:
    """Returns an options table with its defaults filled in; none at all is as good as all defaults."""
    if view is None:
        return {}
    scalars = {name: view[name] for name, field in TFLITE.fields(view.table).items() if field.kind in SCALARS}
    return {name: value for name, value in {**scalars, **view.tree()}.items() if value not in (None, 0)}


def _tensor(view: View, data: Any, others: list[View]) -> Tree:
    tree = view.tree()
    constant = data(view["buffer"])
    quantization = {key: value for key, value in tree.get("quantization", {}).items() if value not in ((), 0)}
    kind, details = quantization.get("details", ("", {}))
    if "scale" in quantization and (view.name("type") or "").lstrip("U").startswith("INT"):
        quantization = _with_all_zero_points(quantization, tree.get("shape", ()))
    if kind in ("BlockwiseQuantization", "MultiAxisQuantization"):
        zero_points = {"zero_points": details["zero_points"]} if details.get("zero_points", 0) > 0 else {}
        indices = {"scales": details.get("scales", 0), **zero_points}
        parts = {name: _tensor(others[index], data, others) for name, index in indices.items()}
        quantization["details"] = (kind, {**details, **parts})
    shape = tree.get("shape", ())
    kept = ("is_variable", "sparsity", "variant_tensors", "external_buffer")
    return {
        "name": view["name"] or "",
        "type": view.name("type"),
        "shape": shape,
        "constant": constant,
        "signature": shape if constant else tree.get("shape_signature") or shape,
        "quantization": quantization,
        **{name: tree[name] for name in kept if tree.get(name)},
    }


def _with_all_zero_points(quantization: Tree, shape: tuple[int, ...]) -> Tree:
    """Returns the parameters of integers with a zero point for each scale, and without an axis that has no scales."""
    count, axis = len(quantization["scale"]), quantization.get("quantized_dimension", 0)
    stored = quantization.get("zero_point", ())
    zero_points = stored if len(stored) > 1 else (stored or (0,)) * count
    has_axis = axis > 0 and shape[axis : axis + 1] == (count,)
    rest = {key: value for key, value in quantization.items() if has_axis or key != "quantized_dimension"}
    return {**rest, "zero_point": zero_points}
