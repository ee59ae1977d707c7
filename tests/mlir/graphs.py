"""The corpus of the interop ring: graphs whose import TensorFlow's MLIR and ours must agree on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.support.control_flow import control_flow_v1
from tfconvert.schema.tensorflow.generated import tensorflow_pb2 as pb

# Builds nodes in the default graph and returns the fetches; its argument is TensorFlow.
Build = Callable[[Any], Sequence[Any]]


@dataclass(frozen=True)
class Case:
    """A graph, by its nodes.

    Attributes:
        graph: The GraphDef, TensorFlow's class.
        inputs: Placeholders, with `DataType` names and shapes, -1 for an unknown dimension.
        outputs: The fetches.
    """

    graph: Any
    inputs: tuple[tuple[str, str, tuple[int, ...]], ...]
    outputs: tuple[str, ...]

    def save(self, path: Path) -> Path:
        """Writes the graph and returns where."""
        path.write_bytes(self.graph.SerializeToString())
        return path


def build(tf: ModuleType, case: Build) -> Case:
    """Returns the graph that a function builds."""
    graph = tf.compat.v1.Graph()
    with graph.as_default(), control_flow_v1(tf):
        tf.compat.v1.set_random_seed(1)
        outputs = case(tf)
    placeholders = [op for op in graph.get_operations() if op.type == "Placeholder"]
    inputs = tuple(
        (op.name, pb.DataType.Name(op.outputs[0].dtype.as_datatype_enum), _dims(op.outputs[0].shape))
        for op in placeholders
    )
    return Case(graph.as_graph_def(), inputs, tuple(_output(value) for value in outputs))


def _dims(shape: Any) -> tuple[int, ...]:
    return tuple(-1 if dim is None else dim for dim in shape)


def _output(value: Any) -> str:
    return str(value.name.removesuffix(":0"))


def _x(tf: Any, name: str = "x", shape: Sequence[int | None] = (2,), dtype: str = "float32") -> Any:
    return tf.compat.v1.placeholder(dtype, shape, name)


def _cond(tf: Any) -> Sequence[Any]:
    x, p = _x(tf), _x(tf, "p", (), "bool")
    outer = tf.cond(p, lambda: x + 1.0, lambda: tf.cond(x[0] > 0.0, lambda: x * 2.0, lambda: -x))
    return [tf.identity(outer, "y")]


def _loop(tf: Any) -> Sequence[Any]:
    x, n = _x(tf, shape=(None, 2)), _x(tf, "n", (), "int32")

    def body(i: Any, a: Any) -> Any:
        inner = tf.while_loop(lambda j, _: j < i, lambda j, b: (j + 1, b * x), [0, a])
        return i + 1, tf.cond(inner[1][0, 0] > 9.0, lambda: inner[1], lambda: a)

    return list(tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), tf.ones([3, 2])], parallel_iterations=4))


def _tensor_array(tf: Any) -> Sequence[Any]:
    x = _x(tf, shape=(3, 2))
    array = tf.TensorArray(tf.float32, 3).unstack(x)
    out = tf.TensorArray(tf.float32, 3)
    _, out = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a.write(i, array.read(i))), [0, out])
    return [out.stack()]


def _switches(tf: Any) -> Sequence[Any]:
    x, i, p = _x(tf), _x(tf, "i", (), "int32"), _x(tf, "p", (), "bool")
    graph = tf.compat.v1.get_default_graph()
    many = graph.create_op(
        "_SwitchN",
        [x, i],
        [tf.float32] * 3,
        name="many",
        attrs={"num_outs": tf.compat.v1.AttrValue(i=3), "T": tf.compat.v1.AttrValue(type=1)},
    )
    merged = tf.raw_ops.Merge(inputs=list(many.outputs))
    dead, alive = tf.raw_ops.Switch(data=x, pred=p)
    with tf.control_dependencies([dead, merged.output]):
        trigger = tf.raw_ops.ControlTrigger()
    with tf.control_dependencies([trigger]):
        after = tf.identity(x)
    return [merged.output, merged.value_index, dead, alive, after]


def _references(tf: Any) -> Sequence[Any]:
    p = _x(tf, "p", (), "bool")
    variable = tf.raw_ops.VariableV2(shape=[2], dtype=tf.float32)
    assigned = tf.raw_ops.Assign(ref=variable, value=_x(tf))
    switched = tf.raw_ops.RefSwitch(data=assigned, pred=p)
    merged = tf.raw_ops.RefMerge(inputs=list(switched))
    return [tf.identity(merged.output), tf.raw_ops.Switch(data=variable, pred=p)[1]]


def _resources(tf: Any) -> Sequence[Any]:
    x = _x(tf)
    variable = tf.compat.v1.get_variable("v", initializer=np.ones(2, np.float32), use_resource=True)
    with tf.control_dependencies([variable.assign_add(x)]):
        read = variable.read_value()
    loop = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a + variable), [0, read])
    return [read, loop[1]]


def _effects(tf: Any) -> Sequence[Any]:
    x = _x(tf)
    with tf.control_dependencies([tf.print("x", x), tf.compat.v1.assert_positive(x)]):
        return [tf.identity(x, "y"), tf.random.uniform([2], seed=3)]


def _constants(tf: Any) -> Sequence[Any]:
    dtypes = ("float16", "bfloat16", "float64", "int8", "uint8", "int16", "uint16", "int64", "uint32", "uint64")
    values = [tf.constant([[0, 1], [1, 1]], dtype) for dtype in dtypes]
    values += [
        tf.constant([True, False]),
        tf.constant([1 + 2j, -0.0], "complex64"),
        tf.constant([1.5 - 2j], "complex128"),
        tf.constant([np.nan, np.inf, -np.inf, -0.0, 1e-45]),
        tf.constant([b"plain", b'\xff\x00"\\', "ü".encode()]),
        tf.constant("one string"),
        tf.constant([], "float32"),
        tf.constant(np.arange(400, dtype=np.float32).reshape(20, 20)),
        tf.constant(np.arange(600) % 3 == 0),
        tf.fill([3], tf.constant(7, "int32")),
        tf.raw_ops.QuantizeV2(input=_x(tf), min_range=0.0, max_range=1.0, T=tf.quint8)[0],
    ]
    return values


def _functions(tf: Any) -> Sequence[Any]:
    x, i = _x(tf, shape=(None,)), _x(tf, "i", (), "int32")
    doubled = tf.function(lambda value: value * 2.0, experimental_implements="doubled", autograph=False)

    def outer(value: Any) -> Any:
        with tf.control_dependencies([tf.print(value)]):
            return doubled(value), doubled(doubled(value))

    def chosen(index: Any, value: Any) -> Any:
        return tf.switch_case(index, [lambda: doubled(value), lambda: -value, lambda: value + 1.0])

    return [*tf.function(outer)(x), doubled(x), tf.function(chosen)(i, x)]


def _functional_control_flow(tf: Any) -> Sequence[Any]:
    def body(value: Any) -> Any:
        parts = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for index in tf.range(3):
            if value[0] > 0.0:
                value = value + tf.cast(index, tf.float32)
            parts = parts.write(index, value)
        return parts.stack(), tf.map_fn(tf.abs, value)

    return list(tf.function(body)(_x(tf)))


def _tables(tf: Any) -> Sequence[Any]:
    keys, values = tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)
    with tf.control_dependencies([table._initializer.initialize(table)]):
        return [table.lookup(_x(tf, "k", (None,), "string")), table.size()]


def _strings(tf: Any) -> Sequence[Any]:
    x = _x(tf, "s", (None,), "string")
    parsed = tf.io.parse_example(x, {"a": tf.io.FixedLenFeature([2], tf.float32), "b": tf.io.VarLenFeature(tf.int64)})
    split = tf.strings.split(x)
    return [parsed["a"], parsed["b"].values, split.values, tf.strings.join([x, "!"]), tf.strings.length(x)]


def _ops(tf: Any) -> Sequence[Any]:
    """One of many kinds of op: attributes of each kind, lists, several results, optional inputs."""
    x, image, i = _x(tf, shape=(2, 4)), _x(tf, "image", (None, 8, 8, 3)), _x(tf, "i", (4,), "int32")
    kernel = tf.constant(np.ones((3, 3, 3, 2), np.float32))
    raw = tf.raw_ops
    return [
        tf.nn.conv2d(image, kernel, (1, 2, 2, 1), [[0, 0], [1, 1], [1, 0], [0, 0]]),
        tf.nn.depthwise_conv2d(image, kernel, (1, 1, 1, 1), "SAME"),
        tf.nn.max_pool2d(image, 2, 2, "VALID"),
        *tf.compat.v1.nn.fused_batch_norm(image, [1.0] * 3, [0.0] * 3, is_training=True)[:3],
        tf.image.resize(image, (4, 4)),
        tf.matmul(x, x, transpose_b=True),
        tf.einsum("ab,cb->ac", x, x),
        *tf.split(x, [1, 3], axis=1),
        *tf.unstack(x, axis=1),
        tf.stack([x, x], axis=-1),
        tf.concat([x, x], 0),
        x[:, 1:3, tf.newaxis, ...],
        tf.gather(x, i, axis=1),
        tf.gather_nd(x, [[0, 1]]),
        tf.reduce_sum(x, -1, keepdims=True),
        tf.argmax(x, 1, tf.int32),
        *tf.nn.top_k(x, 2),
        *tf.unique_with_counts(i),
        tf.where(x > 0.0),
        tf.where(x > 0.0, x, 0.0),
        tf.cast(x, tf.bfloat16),
        tf.clip_by_value(x, 0.0, 6.0),
        tf.nn.leaky_relu(x, 0.3),
        tf.nn.softmax(x),
        tf.pad(x, [[1, 1], [0, 2]], "REFLECT"),
        tf.one_hot(i, 5),
        tf.cumsum(x, 1, exclusive=True),
        tf.bitcast(i, tf.float32),
        tf.signal.rfft(x),
        tf.random.stateless_normal([2], [1, 2]),
        tf.quantization.fake_quant_with_min_max_args(x),
        raw.Bucketize(input=x, boundaries=[0.5, 1.5]),
        raw.Shape(input=image, out_type=tf.int64),
        *raw.IdentityN(input=[x, i]),
        raw.EmptyTensorList(element_shape=[2, -1], max_num_elements=3, element_dtype=tf.float32),
        raw.TensorListReserve(element_shape=[2], num_elements=3, element_dtype=tf.float32),
        raw.DynamicStitch(indices=[i, i], data=[tf.transpose(x)] * 2),
        raw.SparseConcat(concat_dim=0, indices=[[[0]]] * 2, values=[[1.0]] * 2, shapes=[[1]] * 2)[1],
        raw.NonMaxSuppressionV4(boxes=x, scores=x[:, 0], max_output_size=1, iou_threshold=0.5, score_threshold=0.0)[0],
    ]


CASES: dict[str, Build] = {
    "cond": _cond,
    "loop": _loop,
    "tensor_array": _tensor_array,
    "switches": _switches,
    "references": _references,
    "resources": _resources,
    "effects": _effects,
    "constants": _constants,
    "functions": _functions,
    "functional_control_flow": _functional_control_flow,
    "tables": _tables,
    "strings": _strings,
    "ops": _ops,
}
