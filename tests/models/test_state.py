"""Models with state, in LiteRT against TensorFlow: variables that are written, and tables."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.models.state_programs import PROGRAMS, state
from tests.support.stateful import compare_calls, runners, same
from tfconvert.schema.diagnostics import ConversionError

# The ops on state that models here have.
OPS = (
    "AssignVariableOp",
    "HashTableV2",
    "LookupTableFindV2",
    "LookupTableImportV2",
    "ReadVariableOp",
    "VarHandleOp",
    "VarIsInitializedOp",
)


def strings(*values: bytes) -> np.ndarray:
    return np.array(values, object)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_leaves_the_same_state_after_each_of_ten_calls(tf: ModuleType, name: str, tmp_path: Path) -> None:
    module = state(tf)
    names = {id(value): key for key, value in vars(module).items()}

    @tf.function(input_signature=[tf.TensorSpec([3], name="x"), tf.TensorSpec([], tf.int32, name="row")])  # type: ignore[untyped-decorator]
    def run(x: Any, row: Any) -> Any:
        PROGRAMS[name](tf, module, x, row)
        return {names[id(each)]: each.read_value() for each in module.variables}

    calls = [
        ("run", {"x": np.array([call + 0.5, 1.5, -1], np.float32), "row": np.array(call % 3, np.int32)})
        for call in range(10)
    ]
    compare_calls(tf, tmp_path, module, {"run": run}, calls)


TYPES = (
    "float32",
    "float64",
    "float16",
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "complex64",
    "complex128",
)


def test_variables_of_every_type_keep_what_they_are_given(tf: ModuleType, tmp_path: Path) -> None:
    module = tf.Module()
    module.kept = {name: tf.Variable(np.array([1, 0, 2]).astype(name)) for name in TYPES}

    def swap(**values: Any) -> Any:
        before = {name: variable.read_value() for name, variable in module.kept.items()}
        for name, variable in module.kept.items():
            variable.assign(values[name])
        return before

    specs = {name: tf.TensorSpec([3], name, name=name) for name in TYPES}
    signature = tf.function(swap).get_concrete_function(**specs)
    calls = [("swap", {name: np.array([call, 1, 0]).astype(name) for name in TYPES}) for call in range(3)]
    compare_calls(tf, tmp_path, module, {"swap": signature}, calls, 0)


@pytest.fixture
def counter(tf: ModuleType) -> Any:
    """Returns a module whose functions share variables, one of which nothing writes."""

    class Counter(tf.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.total = tf.Variable([1.0, 2.0, 0.5])
            self.step = tf.Variable([3.0, 4.0, 5.0])
            self.calls = tf.Variable(0)
            self.table = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3))

        @tf.function(input_signature=[tf.TensorSpec([3])])  # type: ignore[untyped-decorator]
        def add(self, x: Any) -> Any:
            before = self.total.read_value()
            self.total.assign_add(x * self.step)
            self.calls.assign_add(1)
            if tf.raw_ops.VarIsInitializedOp(resource=self.total.handle) and self.calls > 3:
                self.total.assign_sub(self.step)
            return {"before": before, "after": self.total.read_value(), "calls": self.calls + 0}

        @tf.function(input_signature=[tf.TensorSpec([2], tf.int32), tf.TensorSpec([2])])  # type: ignore[untyped-decorator]
        def scatter(self, rows: Any, x: Any) -> Any:
            self.table.scatter_add(tf.IndexedSlices(tf.stack([x[0] * self.step, x[1] * self.total]), rows))
            self.table.scatter_nd_update(rows[:1, None] * [[1, 0]] + [[0, 1]], x[:1])
            for row in tf.range(rows[0]):
                self.total.assign_add(self.table[row])
            return {"rows": tf.gather(self.table, rows), "item": tf.gather_nd(self.table, [[2, 1]])}

    return Counter()


def test_ten_calls_of_two_signatures_give_the_same_sequence(tf: ModuleType, counter: Any, tmp_path: Path) -> None:
    tf.saved_model.save(counter, str(tmp_path), signatures={"add": counter.add, "scatter": counter.scatter})
    model = tfconvert.convert(tmp_path)
    runner = runners(model)
    for call in range(10):
        x = np.array([call, 1.5, -1], np.float32)
        same(runner("add")(x=x), counter.add(tf.constant(x)))
        rows = np.array([call % 4, (call + 1) % 4], np.int32)
        same(runner("scatter")(rows=rows, x=x[:2]), counter.scatter(tf.constant(rows), tf.constant(x[:2])))
    rewrites = model.report.rewrites
    assert rewrites["freeze-variables"]["frozen"] == 1
    assert rewrites["initialize-state"]["kept mutable"] == 3


TABLES = {
    "string-int64": (strings(b"a", b"c"), np.array([7, -2], np.int64), np.int64(-1), strings(b"c", b"x", b"a")),
    "string-string": (strings(b"a", b""), strings(b"u", b"v"), b"none", strings(b"c", b"", b"a")),
    "string-float": (strings(b"a", b"c"), np.array([0.5, 2], np.float32), np.float32(9), strings(b"c", b"x", b"a")),
    "string-bool": (strings(b"a", b"c"), np.array([True, True]), np.False_, strings(b"c", b"x", b"a")),
    "int64-string": (np.array([5, -6], np.int64), strings(b"u", b"v"), b"none", np.array([-6, 0, 5], np.int64)),
    "int64-int64": (
        np.array([5, -6], np.int64),
        np.array([1, 2], np.int64),
        np.int64(3),
        np.array([-6, 0, 5], np.int64),
    ),
    "int32-int32": (
        np.array([5, -6], np.int32),
        np.array([1, 2], np.int32),
        np.int32(3),
        np.array([-6, 0, 5], np.int32),
    ),
    "int32-string": (np.array([5, -6], np.int32), strings(b"u", b"v"), b"none", np.array([-6, 0, 5], np.int32)),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_answers_as_tensorflow_does(kind: str, tf: ModuleType, tmp_path: Path) -> None:
    keys, values, default, wanted = TABLES[kind]
    dtype = tf.string if wanted.dtype == object else wanted.dtype

    class Lookup(tf.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.table = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(tf.constant(keys), tf.constant(values)), default
            )

        @tf.function(input_signature=[tf.TensorSpec([None], dtype)])  # type: ignore[untyped-decorator]
        def find(self, x: Any) -> Any:
            found = self.table.lookup(x) if tf.size(x) > 1 else self.table.lookup(x[:1])
            return {"found": found, "size": self.table.size()}

    module = Lookup()
    tf.saved_model.save(module, str(tmp_path), signatures=module.find)
    run = runners(tfconvert.convert(tmp_path))("serving_default")
    for x in (wanted, wanted[:1], wanted[1:]):
        same(run(x=x), module.find(tf.constant(x)))


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    file = tmp_path / "words.txt"
    file.write_bytes(b"a,3\r\nb,4\n,7\nlast,5")
    return file


def test_vocabulary_files_come_along(tf: ModuleType, tmp_path: Path, vocabulary: Path) -> None:
    def table(key: Any, value: Any) -> Any:
        initializer = tf.lookup.TextFileInitializer(
            str(vocabulary), tf.string, key, tf.int64, value, delimiter=",", vocab_size=4
        )
        return tf.lookup.StaticHashTable(initializer, -1)

    class Lookup(tf.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.lines = table(tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER)
            self.columns = table(0, 1)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])  # type: ignore[untyped-decorator]
        def find(self, x: Any) -> Any:
            return {"line": self.lines.lookup(x), "column": self.columns.lookup(x)}

    module = Lookup()
    folder = tmp_path / "model"
    tf.saved_model.save(module, str(folder), signatures=module.find)
    x = strings(b"a", b"a,3", b"", b"last,5", b"last", b"zz")
    same(runners(tfconvert.convert(folder))("serving_default")(x=x), module.find(tf.constant(x)))
    (folder / "assets" / "words.txt").unlink()
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(folder)
    assert caught.value.diagnostics[0].code == "unreadable-file"


@pytest.mark.parametrize("kind", ["StringLookup", "IntegerLookup"])
def test_keras_lookup_layers(kind: str, tf: ModuleType, tmp_path: Path) -> None:
    words = ["q", "w"] if kind == "StringLookup" else [5, 9]
    dtype = "string" if kind == "StringLookup" else "int64"
    x = strings(b"w", b"?", b"q")[None] if kind == "StringLookup" else np.array([[9, 0, 5]], np.int64)
    inputs = tf.keras.Input((None,), dtype=dtype)
    network = tf.keras.Model(inputs, getattr(tf.keras.layers, kind)(vocabulary=words)(inputs))
    network.export(str(tmp_path), verbose=False)
    run = runners(tfconvert.convert(tmp_path))("serving_default")
    (got,) = run(**{next(iter(run.get_input_details())): x}).values()  # type: ignore[attr-defined]
    np.testing.assert_array_equal(got, network(tf.constant(x)).numpy())


def test_tables_of_tensorflow_1(tf: ModuleType, tmp_path: Path, vocabulary: Path) -> None:
    v1 = tf.compat.v1
    x = strings(b"b,4", b"zz")
    with v1.Graph().as_default(), v1.Session() as session:
        given = v1.placeholder(tf.string, [None], "x")
        initializer = tf.lookup.TextFileInitializer(
            str(vocabulary),
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        )
        found = tf.lookup.StaticHashTable(initializer, -1).lookup(given)
        scale = v1.get_variable("scale", initializer=tf.constant(3, tf.int64))
        session.run([v1.tables_initializer(), v1.global_variables_initializer()])
        folder = tmp_path / "model"
        v1.saved_model.simple_save(
            session, str(folder), {"x": given}, {"y": found * scale}, legacy_init_op=v1.tables_initializer()
        )
    np.testing.assert_array_equal(runners(tfconvert.convert(folder))("serving_default")(x=x)["y"], [3, -3])
