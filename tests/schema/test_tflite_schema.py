"""Our schema of the model format against the official one, table by table."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as official
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.lite.python import conversion_metadata_schema_py_generated as official_metadata

from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tflite.reader import View, read, read_model
from tfconvert.schema.tflite.tables import CONVERSION_METADATA, SCALARS, TFLITE, Field, Schema
from tfconvert.schema.tflite.writer import Later, Vectors, encode

ROOT = Path(__file__).resolve().parents[2]
PAIRS = [(TFLITE, official), (CONVERSION_METADATA, official_metadata)]
TABLES = [(schema, module, table) for schema, module in PAIRS for table in schema.tables]
ENUMS = [(schema, module, enum) for schema, module in PAIRS for enum in schema.enums]

INTEGERS: Mapping[str, tuple[int, int]] = {
    "byte": (-128, 127),
    "ubyte": (0, 255),
    "ushort": (0, 2**16 - 1),
    "int": (-(2**31), 2**31 - 1),
    "uint": (0, 2**32 - 1),
    "long": (-(2**63), 2**63 - 1),
    "ulong": (0, 2**64 - 1),
}


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def rooted(schema: Schema, table: str) -> Schema:
    """Returns a schema with another root table."""
    result = copy.copy(schema)
    result.root = table
    return result


def scalars(kind: str) -> st.SearchStrategy[Any]:
    if kind == "bool":
        return st.booleans()
    if kind in ("float", "double"):
        return st.floats(allow_nan=False, width=32)
    return st.integers(*INTEGERS[kind])


def values(schema: Schema, field: Field, depth: int) -> st.SearchStrategy[Any]:
    kind = field.kind
    if kind == "string":
        return st.text(st.characters(codec="utf-8"), max_size=5)
    if kind == "table":
        return trees(schema, field.refers, depth + 1)
    if kind == "union":
        names = [name for name in schema.enums[field.refers] if name != "NONE"]
        return st.sampled_from(names).flatmap(lambda name: st.tuples(st.just(name), trees(schema, name, depth + 1)))
    if kind == "[table]":
        return st.lists(trees(schema, field.refers, depth + 1), max_size=2 if depth < 2 else 0)
    if kind[0] == "[":
        return st.lists(scalars(kind[1:-1]), max_size=3).map(tuple)
    return scalars(kind)


def trees(schema: Schema, table: str, depth: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    """Yields tables as the writer takes them."""
    fields = {name: field for name, field in schema.fields(table).items() if field.kind != "utype"}
    if not fields:
        return st.just({})
    return st.fixed_dictionaries({}, optional={name: values(schema, field, depth) for name, field in fields.items()})


def unpacked(module: Any, table: str, data: bytes) -> Any:
    return getattr(module, f"{table}T").InitFromPackedBuf(data)


class Recorder:
    """Mocks a builder, and records the slot that the official code stores a field in."""

    slot = -1

    def __getattr__(self, name: str) -> Any:
        return self._record

    def _record(self, slot: int, value: object, default: object) -> None:
        self.slot = slot


def check(schema: Schema, table: str, tree: Mapping[str, Any], their: Any) -> None:
    """Compares every field of a table with the official object."""
    for name, field in schema.fields(table).items():
        got = getattr(their, camel(name))
        if field.kind == "utype":
            pair = tree.get(name.removesuffix("_type"))
            assert got == (schema.enums[field.refers][pair[0]] if pair else 0)
        elif name not in tree:
            # The official classes have 0 for some vectors that are not there.
            assert got == field.default if field.kind in SCALARS else got is None or got == 0
        elif field.kind == "table":
            check(schema, field.refers, tree[name], got)
        elif field.kind == "union":
            kind, content = tree[name]
            check(schema, kind, content, got)
        elif field.kind == "[table]":
            assert len(got or ()) == len(tree[name])
            for ours, item in zip(tree[name], got or (), strict=True):
                check(schema, field.refers, ours, item)
        elif field.kind == "string":
            assert got == tree[name].encode()
        elif field.kind[0] == "[":
            np.testing.assert_array_equal(got, tree[name])
        else:
            assert got == tree[name]


@pytest.mark.parametrize(("schema", "module", "enum"), ENUMS, ids=lambda value: value if isinstance(value, str) else "")
def test_enums_have_the_official_values(schema: Schema, module: Any, enum: str) -> None:
    theirs = {name: value for name, value in vars(getattr(module, enum)).items() if name[0] != "_"}
    assert schema.enums[enum] == theirs


def test_no_official_table_or_enum_is_missing() -> None:
    for schema, module in PAIRS:
        classes = {name: value for name, value in vars(module).items() if isinstance(value, type)}
        tables = {name for name in classes if f"{name}T" in classes}
        assert tables == set(schema.tables)
        enums = {name for name in classes if name not in tables and name.removesuffix("T") not in tables}
        assert enums == set(schema.enums)


@pytest.mark.parametrize(
    ("schema", "module", "table"), TABLES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_slots_and_defaults_are_the_official_ones(schema: Schema, module: Any, table: str) -> None:
    fields = schema.fields(table)
    their = getattr(module, f"{table}T")()
    assert {camel(name) for name in fields} == set(vars(their))
    check(schema, table, {}, unpacked(module, table, bytes(encode(rooted(schema, table), {}).data)))
    recorder = Recorder()
    for name, field in fields.items():
        upper = camel(name)[0].upper() + camel(name)[1:]
        getattr(module, f"{table}Add{upper}")(recorder, name if field.kind in SCALARS else field.slot)
        assert recorder.slot == field.slot


@settings(max_examples=15)
@given(st.data())
@pytest.mark.parametrize(
    ("schema", "module", "table"), TABLES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_official_classes_read_what_we_write(schema: Schema, module: Any, table: str, data: st.DataObject) -> None:
    tree = data.draw(trees(schema, table))
    content = bytes(encode(rooted(schema, table), tree).data)
    check(schema, table, tree, unpacked(module, table, content))
    assert read(rooted(schema, table), content).tree() == tree


@settings(max_examples=50)
@given(trees(TFLITE, "Model"))
def test_we_read_what_the_official_classes_write(tree: dict[str, Any]) -> None:
    their = unpacked(official, "Model", bytes(encode(TFLITE, tree, b"TFL3").data))
    builder = flatbuffers.Builder(0)
    builder.Finish(their.Pack(builder), b"TFL3")
    check(TFLITE, "Model", read_model(bytes(builder.Output())).tree(), their)


@settings(max_examples=200)
@given(trees(TFLITE, "Model"), st.data())
def test_a_damaged_file_never_raises_anything_but_our_error(tree: dict[str, Any], data: st.DataObject) -> None:
    content = encode(TFLITE, tree, b"TFL3").data
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ConversionError):
        walk(read(TFLITE, bytes(content)))


@pytest.mark.parametrize(
    "content", [b"", b"TFL3", b"\x10\0\0\0TFL3", b"\xff\xff\xff\x7fTFL3" + bytes(40), b"PK\3\4" * 9]
)
def test_invalid_models_are_reported(content: bytes) -> None:
    with pytest.raises(ConversionError) as caught:
        read_model(content)
    assert caught.value.code == "malformed-tflite"


def walk(view: View, depth: int = 0) -> None:
    """Reads everything, no deeper than a sane file is."""
    for name in view.stored():
        value = view[name]
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, View) and depth < 5:
                walk(item, depth + 1)


def test_equal_strings_and_options_are_stored_once() -> None:
    operator = {"opcode_index": 0, "builtin_options": ("Conv2DOptions", {"stride_w": 2, "stride_h": 2})}
    sizes = [len(encode(rooted(TFLITE, "SubGraph"), {"operators": [operator] * count}).data) for count in (1, 2, 3)]
    # A table of its own and an offset to it; the options and the vtable are shared.
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] <= 24


def test_equal_vectors_are_stored_once() -> None:
    """Zero points of channels take eight bytes each, and nearly always are zeros."""
    tensors = [{"quantization": {"zero_point": (0,) * 500, "scale": (each,) * 500}} for each in (1.0, 2.0, 3.0)]
    parts = [{"tensors": tensors[:count]} for count in (1, 2, 3)]
    sizes = [len(encode(rooted(TFLITE, "SubGraph"), part).data) for part in parts]
    assert sizes[0] > 500 * 12
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] < 500 * 4 + 40


def test_many_tables_with_a_later_vector_are_written_at_once() -> None:
    keys = range(5)
    one_by_one = encode(TFLITE, {"buffers": [{}, *({"data": Later(key)} for key in keys)], "description": "x"})
    at_once = encode(TFLITE, {"buffers": Vectors("data", keys, [{}]), "description": "x"})
    assert at_once == one_by_one
    assert encode(TFLITE, {"buffers": Vectors("data", (), [{}])}) == encode(TFLITE, {"buffers": [{}]})


def test_equal_vectors_of_different_types_are_apart() -> None:
    """Even if one object is passed for both."""
    numbers, nothing = (1, 2), ()
    tensors = [
        {"shape": numbers, "quantization": {"zero_point": numbers, "scale": nothing}, "shape_signature": nothing}
        for _ in range(3)
    ]
    view = read_model(bytes(encode(TFLITE, {"subgraphs": [{"tensors": tensors}]}, b"TFL3").data))
    for tensor in view["subgraphs"][0]["tensors"]:
        assert [*tensor["shape"], *tensor["quantization"]["zero_point"]] == [1, 2, 1, 2]
        assert len(tensor["shape_signature"]) == len(tensor["quantization"]["scale"]) == 0


def test_an_enum_may_be_given_by_name() -> None:
    content = bytes(encode(rooted(TFLITE, "Conv2DOptions"), {"padding": "VALID"}).data)
    view = read(rooted(TFLITE, "Conv2DOptions"), content)
    assert (view["padding"], view.name("padding"), view.name("fused_activation_function")) == (1, "VALID", "NONE")


def test_generated_tables_are_current() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tfconvert.schema.tflite.generate", "--check"], cwd=ROOT, check=False
    )
    assert result.returncode == 0
