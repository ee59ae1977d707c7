"""Broken and hostile files: an explanation, never a traceback, and never a long wait."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest

import tfconvert
from tests.importers.tflite.written_files import File
from tests.support.work import calls
from tfconvert.exporters.tflite.model import export
from tfconvert.importers.tflite.model import import_tflite
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.tflite.reader import TFLITE_IDENTIFIER
from tfconvert.schema.tflite.tables import TFLITE
from tfconvert.schema.tflite.writer import encode

CALL = {"opcode_index": 0, "inputs": (0,), "outputs": (1,)}
GOOD: dict[str, Any] = {"tensors": [{}, {}], "operators": [CALL], "codes": ["ABS"]}
SELF = ("IfOptions", {"then_subgraph_index": 0, "else_subgraph_index": 0})

HOSTILE: dict[str, dict[str, Any]] = {
    "there is no tensor 9": {"operators": [{**CALL, "inputs": (9,)}]},
    "there is no tensor -2": {"operators": [{**CALL, "inputs": (-2,)}]},
    "there is no tensor -1": {"outputs": (-1,)},
    "there is no operator code 5": {"operators": [{**CALL, "opcode_index": 5}]},
    "there is no buffer 3": {"tensors": [{"buffer": 3}, {}]},
    "already has a value": {"inputs": (0, 0)},
    "t1 has two values": {"operators": [CALL, CALL]},
    "read before it is computed": {"inputs": ()},
    "tensor 't0' of 2 float has a buffer of 3 bytes": {
        "tensors": [{"buffer": 1}, {}],
        "buffers": [b"abc"],
        "inputs": (),
    },
    "the strings of tensor 't0' are outside of its buffer": {
        "tensors": [{"type": "STRING", "buffer": 1}, {}],
        "buffers": [struct.pack("<4i", 2, 16, 9, 99)],
        "inputs": (),
    },
    "tensor 't0' of 2 strings has a buffer that does not hold 2": {
        "tensors": [{"type": "STRING", "buffer": 1}, {}],
        "buffers": [b"\1"],
        "inputs": (),
    },
    "tensor 't0' of shape [2147483647": {
        "tensors": [{"shape": (2**31 - 1,) * 8, "is_variable": True}, {}],
        "inputs": (),
    },
    "tensor 't0' has 5000 dimensions, more than the limit of 64": {"tensors": [{"shape": (1,) * 5000}, {}]},
    "has the shape": {"tensors": [{"shape": (-7,)}, {}]},
    "a shape of rank 2 and one of rank 1": {"tensors": [{"shape": (1, 2), "shape_signature": (-1,)}, {}]},
    "type number 99": {"tensors": [{"type": 99}, {}]},
    "operator number 4000": {"codes": [{"builtin_code": 4000}]},
    "has no name": {"codes": ["CUSTOM"]},
    "call each other in a cycle": {
        "tensors": [{"shape": ()}, {}],
        "codes": ["IF"],
        "operators": [{**CALL, "builtin_options": SELF}],
    },
    "the called subgraph 8 does not exist": {
        "codes": ["CALL"],
        "operators": [{**CALL, "builtin_options": ("CallOptions", {"subgraph": 8})}],
    },
    "'padding' has the value 77": {
        "codes": ["CONV_2D"],
        "operators": [{**CALL, "builtin_options": ("Conv2DOptions", {"padding": 77})}],
    },
    "signature 'f' refers to subgraph 3": {"signature_defs": [{"signature_key": "f", "subgraph_index": 3}]},
    "not one of its subgraph's inputs": {
        "signature_defs": [{"signature_key": "f", "inputs": [{"name": "x", "tensor_index": 1}]}]
    },
    "longer than the file": {"subgraphs": None, "buffers_": [{"offset": 64, "size": 10**9}]},
    "has 1 scales, but 2 zero points": {
        "tensors": [{"type": "INT8", "quantization": {"scale": (1.0,), "zero_point": (1, 2)}}, {}]
    },
    "has no subgraph": {"subgraphs": []},
    "version 2": {"version": 2},
}


# Operators that can be read, but not run.
CONTRADICTIONS: dict[str, dict[str, Any]] = {
    "'input' must have rank 4": {"codes": ["MAX_POOL_2D"]},
    "'stride_h' must be positive": {
        "tensors": [{"shape": (1, 4, 4, 1)}, {"shape": (1, 2, 2, 1)}],
        "codes": ["MAX_POOL_2D"],
        "operators": [{**CALL, "builtin_options": ("Pool2DOptions", {"stride_h": -1})}],
    },
    "must be the number of results, 1": {
        "codes": ["UNPACK"],
        "operators": [{**CALL, "builtin_options": ("UnpackOptions", {"num": 2})}],
    },
    "must map strings to 64 bit integers": {
        "codes": ["HASHTABLE"],
        "operators": [{**CALL, "inputs": (), "builtin_options": ("HashtableOptions", {"key_dtype": 6})}],
    },
    "ABS has version 77": {"codes": [{"builtin_code": 101, "version": 77}]},
}


@pytest.mark.parametrize("message", CONTRADICTIONS)
def test_operators_that_contradict_themselves_are_not_converted(file: File, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(file(**{**GOOD, **CONTRADICTIONS[message]}))
    assert len(tuple(import_tflite(path).walk())) > 1
    with pytest.raises(ConversionError) as caught:
        tfconvert.convert(path)
    assert caught.value.code == "malformed-tflite"
    assert message in str(caught.value)


@pytest.mark.parametrize("message", HOSTILE)
def test_hostile_files_are_explained(file: File, message: str) -> None:
    fields = {**GOOD, **HOSTILE[message]}
    if fields.pop("subgraphs", ()) is None:
        tensors = [{"shape": (2,), "type": "FLOAT32", "buffer": 0}]
        fields["subgraphs"] = [{"tensors": tensors, "inputs": (), "outputs": (0,)}]
        fields["buffers"], buffers = (), fields.pop("buffers_")
        tree = {"version": 3, "subgraphs": fields["subgraphs"], "buffers": buffers}
        content = bytes(encode(TFLITE, tree, TFLITE_IDENTIFIER).data)
    else:
        content = file(**fields, **({"subgraphs": []} if message == "has no subgraph" else {}))
    with pytest.raises(ConversionError) as caught:
        import_tflite(content)
    assert caught.value.code == "malformed-tflite"
    assert message in str(caught.value).replace("'t1'", "t1")


def test_options_of_a_newer_version(file: File) -> None:
    content = bytearray(file([{}, {}], [{**CALL, "builtin_options": ("AbsOptions", {})}], ["ABS"]))
    kinds = [place for place, byte in enumerate(content) if byte == TFLITE.enums["BuiltinOptions"]["AbsOptions"]]
    messages = []
    for place in kinds:
        broken = content.copy()
        broken[place] = 250
        try:
            import_tflite(broken)
        except ConversionError as problem:
            messages.append(str(problem))
    assert any("options number 250 are unknown" in message for message in messages)


def test_shared_tables_do_not_multiply() -> None:
    """A few kilobytes of offsets to one subgraph, whose operators are one table, represent millions of operators."""
    count = 3000
    call = {"opcode_index": 0, "inputs": (0,) * 60, "outputs": (0,)}
    operators = [call] + [{}] * (count - 1)
    subgraphs = [{"tensors": [{}], "operators": operators}] + [{}] * (count - 1)
    tree = {"version": 3, "operator_codes": [{}], "subgraphs": subgraphs, "buffers": [{}]}
    content = encode(TFLITE, tree, TFLITE_IDENTIFIER).data
    vectors = _vectors_of(content, count)
    assert len(vectors) == 2
    for vector in vectors:
        first = vector + 4 + struct.unpack_from("<I", content, vector + 4)[0]
        for place in range(vector + 4, vector + 4 + 4 * count, 4):
            struct.pack_into("<I", content, place, first - place)

    def read() -> None:
        with pytest.raises(ConversionError) as caught:
            import_tflite(content)
        assert caught.value.code == "malformed-tflite"

    assert calls(read) < 100 * count


def _vectors_of(content: bytearray, count: int) -> list[int]:
    """Returns the offsets of the vectors of `count` tables; a table comes after the vector that refers to it."""
    numbers = struct.unpack_from(f"<{len(content) // 4}I", content)
    return [
        4 * index
        for index, number in enumerate(numbers[:-1])
        if number == count and 4 * count <= numbers[index + 1] < len(content)
    ]


@pytest.mark.parametrize(
    "content", [b"", b"TFL3", b"\0" * 64, b"\x10\0\0\0TFL3", b"\xff\xff\xff\xffTFL3" + b"\xff" * 64]
)
def test_invalid_models(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    for source in (content, path):
        with pytest.raises(ConversionError) as caught:
            import_tflite(source)
        # That a file is empty is recognized.
        assert caught.value.code == ("malformed-tflite" if content or source == content else "foreign-format")


def test_no_file(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "none.tflite", "model-not-found"), (tmp_path, "malformed-tflite")):
        with pytest.raises(ConversionError) as caught:
            import_tflite(path)
        assert caught.value.code == code


def test_damaged_files(file: File) -> None:
    quantised = {"type": "INT8", "quantization": {"scale": (0.5, 0.25), "zero_point": (0, 1)}}
    calls = [CALL, {**CALL, "opcode_index": 1, "inputs": (1, 2), "outputs": (3,)}]
    conv = {**calls[1], "builtin_options": ("Conv2DOptions", {"padding": "VALID", "stride_w": 2})}
    names = {"inputs": [{"name": "x", "tensor_index": 0}], "outputs": [{"name": "y", "tensor_index": 3}]}
    content = file(
        [{}, {"shape_signature": (-1,)}, {"buffer": 1}, quantised, {"type": "STRING", "buffer": 2}],
        [calls[0], conv],
        ["ABS", {"builtin_code": "CONV_2D", "version": 3}],
        outputs=(3, 4),
        buffers=[b"\0\0\x80?\0\0\0@", struct.pack("<4i", 2, 16, 17, 18) + b"ab"],
        metadata=[{"name": "n", "buffer": 2}],
        signature_defs=[{"signature_key": "f", **names}],
    )
    generator = random.Random(5)
    imported = 0
    for _ in range(3000):
        damaged = bytearray(content)
        for _ in range(generator.choice((1, 1, 3, 9))):
            place = 4 * generator.randrange(len(content) // 4)
            number = generator.choice((0, 1, 2, 4, 2**31 - 1, 2**31, 2**32 - 1, generator.randrange(len(content))))
            struct.pack_into("<I", damaged, place, number)
        if generator.random() < 0.2:
            del damaged[generator.randrange(len(damaged)) :]
        try:
            export(import_tflite(damaged)).to_bytes()
            imported += 1
        except ConversionError as problem:
            assert problem.diagnostics[0].message  # noqa: PT017
    assert 0 < imported < 3000
