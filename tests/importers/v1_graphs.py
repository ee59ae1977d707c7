"""Small graphs with V1 control flow, as protos, for the importer's tests and the interop ring."""

from __future__ import annotations

from typing import cast

from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

FLOAT, INT, BOOL = pb.DT_FLOAT, pb.DT_INT32, pb.DT_BOOL

Value = int | float | bool | str | tuple[int, ...]


def node(name: str, op: str, *inputs: str, **attributes: Value) -> pb.NodeDef:
    """Returns a node. An attribute in upper case, or `dtype`, is a type; a string a string; a tuple a shape."""
    made = pb.NodeDef(name=name, op=op, input=inputs)
    for key, value in attributes.items():
        attr = made.attr[key]
        if isinstance(value, tuple):
            attr.shape.CopyFrom(pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=dim) for dim in value]))
        elif isinstance(value, str):
            attr.s = value.encode()
        elif isinstance(value, bool):
            attr.b = value
        elif key == "dtype" or key.startswith("T"):
            attr.type = cast("pb.DataType", value)
        elif isinstance(value, int):
            attr.i = value
        else:
            attr.f = value
    return made


def graph(*nodes: pb.NodeDef) -> pb.GraphDef:
    """Returns a graph of nodes."""
    return pb.GraphDef(node=nodes, versions=pb.VersionDef(producer=2000))


def placeholder(name: str, dtype: pb.DataType = FLOAT, shape: tuple[int, ...] = ()) -> pb.NodeDef:
    """Returns an input."""
    return node(name, "Placeholder", dtype=dtype, shape=shape)


def scalar(name: str, value: float, *controls: str, dtype: pb.DataType = FLOAT) -> pb.NodeDef:
    """Returns a constant."""
    made = node(name, "Const", *controls, dtype=dtype)
    tensor = made.attr["value"].tensor
    tensor.dtype = dtype
    if dtype == FLOAT:
        tensor.float_val.append(value)
    else:
        tensor.int_val.append(int(value))
    return made


def cond() -> pb.GraphDef:
    """Returns `y = -x if p else x + 1`, the constant pulled into its branch by a control input."""
    return graph(
        placeholder("x", FLOAT, (2,)),
        placeholder("p", BOOL),
        node("switch", "Switch", "x", "p", T=FLOAT),
        node("pivot", "Identity", "switch", T=FLOAT),
        scalar("one", 1.0, "^pivot"),
        node("add", "AddV2", "switch", "one", T=FLOAT),
        node("neg", "Neg", "switch:1", T=FLOAT),
        node("merge", "Merge", "add", "neg", T=FLOAT, N=2),
        node("y", "Identity", "merge", T=FLOAT),
    )


def loop() -> pb.GraphDef:
    """Returns `i = 0; while i < n: i += 1`, `n` an invariant of the loop."""
    return graph(
        placeholder("n", INT),
        scalar("zero", 0, dtype=INT),
        node("enter", "Enter", "zero", T=INT, frame_name="frame"),
        node("limit", "Enter", "n", T=INT, frame_name="frame", is_constant=True, parallel_iterations=3),
        node("merge", "Merge", "enter", "next", T=INT, N=2),
        node("less", "Less", "merge", "limit", T=INT),
        node("goes_on", "LoopCond", "less"),
        node("switch", "Switch", "merge", "goes_on", T=INT),
        node("exit", "Exit", "switch", T=INT),
        scalar("one", 1, "^switch", dtype=INT),
        node("add", "AddV2", "switch:1", "one", T=INT),
        node("next", "NextIteration", "add", T=INT),
    )


def call() -> pb.GraphDef:
    """Returns a call of a function with a condition, whose nodes name outputs by argument."""
    called = graph(*cond().node[:2], node("call", "PartitionedCall", "x", "p"))
    attributes = called.node[2].attr
    attributes["Tin"].list.type.extend([FLOAT, BOOL])
    attributes["Tout"].list.type.append(FLOAT)
    attributes["f"].func.name = "body"
    body = called.library.function.add()
    body.signature.name = "body"
    body.signature.input_arg.add(name="x", type=FLOAT)
    body.signature.input_arg.add(name="p", type=BOOL)
    body.signature.output_arg.add(name="y", type=FLOAT)
    body.node_def.extend(
        [
            node("switch", "Switch", "x", "p", T=FLOAT),
            node("neg", "Neg", "switch:output_true:0", T=FLOAT),
            node("merge", "Merge", "switch:output_false:0", "neg:y:0", T=FLOAT, N=2),
        ]
    )
    body.ret["y"] = "merge:output:0"
    return called
