"""Reads artifacts that the tests write byte by byte, whole and damaged; what jaxlib writes is tested in the rings."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tests.importers.stablehlo.encoder import Artifact, isolated, op, region, signed, signeds, varint, varints
from tfconvert.importers.mlir import import_mlir
from tfconvert.importers.stablehlo.artifact import import_artifact, is_artifact
from tfconvert.importers.stablehlo.cursor import Cursor
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.dialects import tensor_data
from tfconvert.schema.dialects.locations import place_of
from tfconvert.schema.dialects.sources import FileSlice
from tfconvert.schema.files import InputFile
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

F32 = varint(4)


def _sum(
    artifact: Artifact, name: str = "add_v1", *, properties: int | None = None, attributes: int | None = None
) -> bytes:
    """Returns the artifact of `main(x, y) = x + y`, or of another op of two operands."""
    number = artifact.type(F32)
    kind = artifact.type(varint(20) + signeds([2, -(1 << 63)]) + varint(number))
    ops = [
        op(artifact.name(name), attributes=attributes, properties=properties, results=[kind], operands=[0, 1]),
        op(artifact.name("return_v1"), operands=[2]),
    ]
    return artifact.module([artifact.function(ops, arguments=[kind, kind], results=[kind], values=3)])


def _read(data: bytes | memoryview) -> ModuleOp:
    return import_artifact(data, "model.mlirbc")


def _refusal(data: bytes) -> ConversionError:
    with pytest.raises(ConversionError) as caught:
        _read(data)
    assert caught.value.diagnostics[0].location == "model.mlirbc"
    return caught.value


def _only(module: ModuleOp, name: str) -> Operation:
    (found,) = (each for each in module.walk() if each.name == name)
    return found


def test_a_function_is_read() -> None:
    data = _sum(Artifact())
    assert is_artifact(data[:4])
    assert not is_artifact(b"ML")
    assert str(_read(data)) == (
        "builtin.module {\n"
        "  func.func @main(%0: tensor<2x?xf32>, %1: tensor<2x?xf32>) -> tensor<2x?xf32> {\n"
        '    %2 = "stablehlo.add"(%0, %1) : (tensor<2x?xf32>, tensor<2x?xf32>) -> tensor<2x?xf32>\n'
        "    func.return %2 : tensor<2x?xf32>\n"
        "  }\n"
        "}"
    )
    assert str(_read(memoryview(bytearray(data)))) == str(_read(data))


def test_a_module_that_is_called_is_read_without_names_and_repeated_sizes() -> None:
    artifact = Artifact()
    kinds = [
        artifact.type(varint(20) + signeds(shape) + varint(artifact.type(element)))
        for element, shape in ((varint(13), []), (varint(13), [1]), (F32, []), (F32, [1]))
    ]
    size, sizes, number, numbers = kinds
    reshape = artifact.name("reshape_v1")
    ops = [
        op(reshape, results=[sizes], operands=[0]),
        op(reshape, results=[sizes], operands=[0]),
        op(reshape, results=[numbers], operands=[1]),
        op(reshape, results=[numbers], operands=[1]),
        op(artifact.name("add_v1"), results=[sizes], operands=[2, 3]),
        op(artifact.name("return_v1"), operands=[6]),
    ]
    named = artifact.attribute(varints(6, 1, artifact.text("jax.result_info"), artifact.text("result")))
    main = artifact.function(ops, arguments=[size, number], results=[sizes], values=7)
    # The attributes of results are the third property.
    (own,) = artifact.properties
    artifact.properties[:] = [own[:2] + varint(artifact.attribute(varints(1, 1, named))) + own[3:]]
    data = artifact.module([main])
    whole = [each.name.partition(".")[2] for each in _read(data).walk()]
    called = import_artifact(data, "model.mlirbc", outermost="main")
    assert whole.count("reshape") == 4
    assert [each.name for each in called.walk()].count("stablehlo.reshape") == 3
    total = _only(called, "stablehlo.add")
    assert total.operands[0] is total.operands[1]
    assert "res_attrs" in _only(_read(data), "func.func").properties
    assert "res_attrs" not in _only(called, "func.func").properties


@pytest.mark.parametrize("name", [0, 127, 128, 1 << 20])
@pytest.mark.parametrize("place", [0, 127, 128, (1 << 14) - 1, 1 << 14, 1 << 60])
def test_the_head_of_an_op_is_two_numbers_and_a_byte(name: int, place: int) -> None:
    data = varint(name) + b"\xa5" + varint(place)
    for rest in (b"", b"\0\0"):
        cursor = Cursor(data + rest)
        assert cursor.head() == (name, 0xA5, place)
        assert cursor.position == len(data)
    for length in range(len(data)):
        with pytest.raises(ConversionError, match="longer"):
            Cursor(data[:length]).head()


def test_every_prefix_is_refused() -> None:
    data = _sum(Artifact())
    for length in range(4, len(data)):
        assert _refusal(data[:length]).code in ("malformed-artifact", "unsupported-artifact")


def test_locations_are_names_with_the_innermost_line_of_the_user() -> None:
    artifact = Artifact()
    line, frame = artifact.string("f.py"), artifact.string("caller")
    text = artifact.attribute(varints(2, line), 0)
    inner = artifact.attribute(varints(22, text, 3, 30, 4, 9), 0)
    package = artifact.attribute(varints(2, artifact.string("lib/site-packages/flax/linear.py")), 0)
    library = artifact.attribute(varints(11, package, 7, 1), 0)
    outer = artifact.attribute(varints(11, text, 7, 1), 0)
    named = artifact.attribute(varints(14, artifact.attribute(varints(2, frame), 0), inner), 0)
    user = artifact.attribute(varints(10, named, outer), 0)
    site = artifact.attribute(varints(10, library, user), 0)
    name = artifact.attribute(varints(2, artifact.string("jit(f)/add")), 0)
    artifact.attributes[0] = (0, varints(14, name, site))
    location = _only(_read(_sum(artifact)), "stablehlo.add").location
    assert str(location) == 'loc("jit(f)/add"("f.py":30:4))'
    assert place_of(location).node == "jit(f)/add"
    assert place_of(location).source == "f.py:30"
    rebuild, parts = location.__reduce__()
    assert str(rebuild(*parts)) == str(location)


def test_damaged_locations_are_left_out() -> None:
    artifact = Artifact()
    artifact.attributes[0] = (0, varints(14, 99, 0))
    assert str(_only(_read(_sum(artifact)), "stablehlo.add").location) == "loc(unknown)"


def _constant(kind: bytes, shape: list[int], data: bytes) -> tensor_data.Constant:
    found = _only(_read(_with_constant(kind, shape, data)), "stablehlo.constant")
    constant = found.properties["value"]
    assert tensor_data.is_constant(constant)
    return constant


def _with_constant(kind: bytes, shape: list[int], data: bytes) -> bytes:
    artifact = Artifact()
    tensor = artifact.type(varint(20) + signeds(shape) + varint(artifact.type(kind)))
    value = artifact.attribute(varints(15, tensor, len(data)) + data)
    ops = [
        op(artifact.name("constant_v1"), properties=artifact.blob(value), results=[tensor]),
        op(artifact.name("return_v1"), operands=[0]),
    ]
    return artifact.module([artifact.function(ops, results=[tensor], values=1)])


BOOL = varint(0)


@pytest.mark.parametrize(
    ("kind", "shape", "data", "expected"),
    [
        (F32, [2], struct.pack("<2f", 1.5, -2), [1.5, -2]),
        (F32, [3], struct.pack("<f", 4), [4, 4, 4]),
        (F32, [0, 3], b"", np.zeros((0, 3))),
        (BOOL, [], b"\xff", True),
        (BOOL, [3], b"\x05", [True, False, True]),
        (BOOL, [3], b"\xff", [True] * 3),
        (BOOL, [3], b"\x01\x00\x01", [True, False, True]),
        (BOOL, [9], b"\x01\x01", [True, *[False] * 7, True]),
        (BOOL, [2, 10], b"\xff", np.ones((2, 10), bool)),
        (BOOL, [2, 10], b"\x00", np.zeros((2, 10), bool)),
        (varint(10), [2], b"\xf8\x07", [-8, 7]),
    ],
)
def test_constants(kind: bytes, shape: list[int], data: bytes, expected: object) -> None:
    np.testing.assert_array_equal(tensor_data.to_array(_constant(kind, shape, data)).astype(float), np.array(expected))


def test_large_constants_are_views_or_one_value() -> None:
    values = np.arange(1000, dtype=np.float32)
    large = _constant(F32, [10, 100], values.tobytes())
    assert isinstance(large, tensor_data.TensorData)
    assert isinstance(large.source, tensor_data.BufferSource)
    assert not large.source.value.flags.owndata
    np.testing.assert_array_equal(large.array(), values.reshape(10, 100))
    splat = _constant(F32, [1 << 20, 1 << 19], struct.pack("<f", 2))
    assert isinstance(splat, tensor_data.TensorData)
    assert isinstance(splat.source, tensor_data.SplatSource)


def test_large_constants_of_a_file_are_read_from_it_when_they_are_used(tmp_path: Path) -> None:
    values = np.arange(1000, dtype=np.float32)
    path = tmp_path / "model.mlirbc"
    data = _with_constant(F32, [10, 100], values.tobytes())
    path.write_bytes(b"before" + data)
    module = import_artifact(data, "model.mlirbc", (InputFile(path), len(b"before")))
    found = _only(module, "stablehlo.constant").properties["value"]
    assert isinstance(found, tensor_data.TensorData)
    assert isinstance(found.source, FileSlice)
    np.testing.assert_array_equal(found.array(), values.reshape(10, 100))


@pytest.mark.parametrize(
    ("kind", "shape", "data"),
    [(F32, [2], b"12345"), (F32, [1 << 30, 1 << 30], b"1234"), (BOOL, [20], b"\1\2"), (varint(33), [2], b"1234")],
)
def test_constants_of_a_wrong_size_are_refused(kind: bytes, shape: list[int], data: bytes) -> None:
    with pytest.raises(ConversionError):
        _constant(kind, shape, data)


def test_defaults_are_left_out_and_groups_are_one_property() -> None:
    artifact = Artifact()
    i64 = artifact.type(varint(14))

    def numbers(*values: int) -> int:
        kind = artifact.type(varint(20) + signeds([len(values)]) + varint(i64))
        data = struct.pack(f"<{len(values)}q", *values)
        return artifact.attribute(varints(15, kind, len(data)) + data)

    none = artifact.attribute(varints(17, artifact.type(varint(33))))
    precision = artifact.attribute(varints(1, 2, *[artifact.attribute(varints(11, 0))] * 2))
    own = artifact.blob(
        none, none, numbers(), none, numbers(1), none, none, precision, numbers(), none, numbers(0), none
    )
    number = artifact.type(F32)
    kinds = [artifact.type(varint(20) + signeds(shape) + varint(number)) for shape in ([2, 3], [3, 4], [2, 4])]
    ops = [
        op(artifact.name("dot_general_v2"), properties=own, results=[kinds[2]], operands=[0, 1]),
        op(artifact.name("return_v1"), operands=[2]),
    ]
    main = artifact.function(ops, arguments=kinds[:2], results=kinds[2:], values=3)
    found = _only(_read(artifact.module([main])), "stablehlo.dot_general")
    assert {name: str(value) for name, value in found.properties.items()} == {
        "dot_dimension_numbers": ("#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>")
    }


def test_nested_regions_number_values_after_all_that_those_around_them_declare() -> None:
    artifact = Artifact()
    kind = artifact.type(varint(20) + signeds([]) + varint(artifact.type(varint(0))))
    end = artifact.name("return_v1")
    # The function declares four values, so those of both branches begin at 4.
    inverted = artifact.name("not_v1")
    branch = region([op(inverted, results=[kind], operands=[0]), op(end, operands=[4])], values=1)
    ops = [
        op(artifact.name("if_v1"), results=[kind], operands=[0], regions=varint(2 << 1) + branch + branch),
        op(end, operands=[1]),
    ]
    module = _read(artifact.module([artifact.function(ops, arguments=[kind], results=[kind], values=4)]))
    assert [each.name for each in _only(module, "stablehlo.if").walk()] == [
        "stablehlo.if",
        *["stablehlo.not", "stablehlo.return"] * 2,
    ]


def test_newer_ops_are_named_with_both_versions() -> None:
    artifact = Artifact()
    artifact.producer = b"StableHLO_v1.99.0"
    told = _refusal(_sum(artifact, "add_v7"))
    assert told.code == "newer-artifact"
    assert "vhlo.add_v7" in str(told)
    assert "1.99.0" in str(told)
    assert "1.20.0" in str(told)
    assert _refusal(_sum(Artifact(), "add_v7")).code == "malformed-artifact"
    assert str(_read(_sum(artifact_of(b"StableHLO_v1.99.0"))))


def artifact_of(producer: bytes, version: int = 6) -> Artifact:
    artifact = Artifact()
    artifact.producer, artifact.version = producer, version
    return artifact


def test_newer_containers_are_read_as_far_as_they_are_the_same() -> None:
    assert list(_read(_sum(artifact_of(b"StableHLO_v1.15.0", 7))).walk())
    assert _refusal(_sum(artifact_of(b"StableHLO_v1.15.0", 7))[:-20]).code == "newer-artifact"


def test_bytecode_that_is_not_portable_is_refused() -> None:
    told = _refusal(_sum(artifact_of(b"MLIR23.0.0git")))
    assert told.code == "unsupported-artifact"
    assert "serialize_portable_artifact" in told.diagnostics[0].hint


def _with_attribute(artifact: Artifact, attribute: int) -> bytes:
    """Returns an artifact with an op that has a property."""
    return _sum(artifact, "reverse_v1", properties=artifact.blob(attribute))


def test_attributes_in_a_circle_are_refused() -> None:
    artifact = Artifact()
    first = len(artifact.attributes)
    artifact.attribute(varints(1, 1, first + 1))
    artifact.attribute(varints(1, 1, first))
    assert "in a circle" in str(_refusal(_with_attribute(artifact, first)))


def test_deep_attributes_are_refused() -> None:
    artifact = Artifact()
    last = artifact.attribute(varints(1, 0))
    for _ in range(100_000):
        last = artifact.attribute(varints(1, 1, last))
    assert "deep" in str(_refusal(_with_attribute(artifact, last)))


@pytest.mark.parametrize("is_type", [False, True])
def test_attributes_that_share_parts_without_end_are_refused(is_type: bool) -> None:
    artifact = Artifact()
    if is_type:
        last = artifact.type(F32)
        for _ in range(60):
            last = artifact.type(varints(23, 2, last, last))
        last = artifact.attribute(varints(17, last))
    else:
        last = artifact.attribute(varints(1, 0))
        for _ in range(60):
            last = artifact.attribute(varints(1, 2, last, last))
    assert "parts" in str(_refusal(_with_attribute(artifact, last)))


def test_ops_that_share_many_attributes_are_refused() -> None:
    artifact = Artifact()
    value = artifact.attribute(varints(7), 0)
    names = [artifact.attribute(varints(2, artifact.string(f"a{number}")), 0) for number in range(3000)]
    pairs = [index for name in names for index in (name, value)]
    shared = artifact.attribute(varints(1, len(names), *pairs), 0)
    token = op(artifact.name("replica_id_v1"), attributes=shared)
    assert "share" in str(_refusal(artifact.module([artifact.function([token] * 10_000)])))


def test_deep_regions_are_refused() -> None:
    artifact = Artifact()
    name = artifact.name("case_v1")
    body = op(name)
    for _ in range(5_000):
        body = op(name, regions=varint(1 << 1) + region([body]))
    assert "deep" in str(_refusal(artifact.module([artifact.function([body])])))


@pytest.mark.parametrize(
    ("operands", "values"), [([0, 2], 3), ([0, 7], 3), ([0, 1 << 60], 3), ([0, 1], 2), ([0, 1], 1)]
)
def test_values_must_be_defined_and_declared(operands: list[int], values: int) -> None:
    artifact = Artifact()
    kind = artifact.type(varint(20) + signeds([]) + varint(artifact.type(F32)))
    ops = [op(artifact.name("add_v1"), results=[kind], operands=operands), op(artifact.name("return_v1"), operands=[2])]
    data = artifact.module([artifact.function(ops, arguments=[kind, kind], results=[kind], values=values)])
    assert _refusal(data).code == "malformed-artifact"


def test_what_is_not_a_module_is_refused() -> None:
    artifact = Artifact()
    assert "one module" in str(_refusal(artifact.of_ops([])))
    artifact = Artifact()
    add = op(artifact.name("create_token_v1"), regions=isolated())
    assert _refusal(artifact.of_ops([add])).code == "malformed-artifact"


def test_broken_rules_are_told_with_the_op() -> None:
    artifact = Artifact()
    number, integer = artifact.type(F32), artifact.type(varint(13))
    kinds = [artifact.type(varint(20) + signeds([2]) + varint(each)) for each in (number, integer)]
    ops = [
        op(artifact.name("add_v1"), results=kinds[:1], operands=[0, 1]),
        op(artifact.name("return_v1"), operands=[2]),
    ]
    with pytest.raises(ConversionError, match="one element type") as caught:
        _read(artifact.module([artifact.function(ops, arguments=kinds, results=kinds[:1], values=3)]))
    assert caught.value.code == "malformed-artifact"


@pytest.mark.parametrize(("dialect", "name"), [(0, "builtin"), (2, "sdy")])
def test_unknown_attributes_are_kept(dialect: int, name: str) -> None:
    artifact = Artifact()
    key = artifact.attribute(varints(2, artifact.string("sdy.sharding_rule")), 0)
    value = artifact.attribute(varints(60), dialect)
    others = artifact.attribute(varints(1, 1, key, value), 0)
    module = _read(_sum(artifact, attributes=others))
    kept = _only(module, "stablehlo.add").attributes["sdy.sharding_rule"]
    assert str(kept) == f'#opaque.{name}<"0x{varints(60).hex().upper()}">'
    assert _only(import_mlir(str(module)), "stablehlo.add").attributes["sdy.sharding_rule"] == kept


@pytest.mark.parametrize(("low", "high", "is_taken"), [(-128, 127, True), (-128, 255, False), (5, 5, False)])
def test_limits_of_quantized_numbers_are_those_of_their_storage(low: int, high: int, *, is_taken: bool) -> None:
    artifact = Artifact()
    storage, number = artifact.type(varint(11)), artifact.type(F32)
    (half,) = struct.unpack("<q", struct.pack("<d", 0.5))
    limits = signed(half) + signed(0) + signed(low) + signed(high)
    quantized = artifact.type(varints(24, 1, storage, number) + limits)
    kind = artifact.type(varint(20) + signeds([2]) + varint(quantized))
    ops = [op(artifact.name("return_v1"), operands=[0])]
    data = artifact.module([artifact.function(ops, arguments=[kind], results=[kind], values=1)])
    if is_taken:
        assert "!quant.uniform<i8:f32, 0.5>" in str(_read(data))
    else:
        assert "have the limits" in str(_refusal(data))


def test_types_of_unknown_dialects_are_refused() -> None:
    artifact = Artifact()
    kind = artifact.type(b"\x01", 2)
    assert _refusal(_with_attribute(artifact, artifact.attribute(varints(17, kind)))).code == "unsupported-artifact"


def test_signed_numbers_of_the_encoder() -> None:
    assert signed(-1) == varint(1)
    assert varint(1 << 63) == b"\0" + (1 << 63).to_bytes(8, "little")
