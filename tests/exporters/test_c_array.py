"""C arrays: compilers take them, and hold the model's bytes."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfconvert
from tfconvert.exporters.c_array import _Lines, c_array
from tfconvert.schema.diagnostics import ConversionError

PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include "{header}"
int main(void) {{
  if ((uintptr_t){name} % 16) return 2;
  return fwrite({name}, 1, {name}_len, stdout) == {name}_len ? 0 : 3;
}}
"""
# What a program needs of tflite-micro, and a program that counts the operators which the model's header adds.
RESOLVER = """
#pragma once
namespace tflite {{
template <unsigned int Count>
class MicroMutableOpResolver {{
 public:
  unsigned int added = 0;
{methods}
}};
}}  // namespace tflite
"""
ADDING = """
#include "model.h"
#include "micro_mutable_op_resolver.h"
alignas(16) static unsigned char arena[g_model_arena_size];
int main() {
  tflite::MicroMutableOpResolver<g_model_operator_count> resolver;
  g_model_add_operators(resolver);
  arena[0] = 0;
  return resolver.added == g_model_operator_count ? 0 : 1;
}
"""
CC = ["gcc", "-Wall", "-Wextra", "-Werror", "-pedantic"]
CXX = ["g++", "-Wall", "-Wextra", "-Werror", "-pedantic", "-std=c++11"]


@pytest.fixture(scope="module")
def model(digits_model: Path) -> tfconvert.Model:
    return tfconvert.convert(digits_model)


def ran(compiler: Sequence[str], folder: Path, name: str, header: str, program: str, sources: Sequence[str]) -> bytes:
    """Compiles a program that prints the array, and returns what it prints."""
    (folder / program).write_text(PROGRAM.format(name=name, header=header), "utf-8")
    subprocess.run([*compiler, program, *sources, "-o", "program"], check=True, cwd=folder, timeout=120)
    return subprocess.run([folder / "program"], check=True, capture_output=True, timeout=60).stdout


@pytest.mark.parametrize(
    ("output", "compiler", "program", "sources"),
    [
        ("digits.cc", CXX, "main.cpp", ["digits.cc"]),
        ("digits.cpp", CXX, "main.cpp", ["digits.cpp"]),
        ("digits.c", [*CC, "-std=c11"], "main.c", ["digits.c"]),
        ("digits.h", [*CC, "-std=c11"], "main.c", []),
        ("digits.h", CXX, "main.cpp", []),
    ],
)
def test_a_compiler_holds_the_model(
    model: tfconvert.Model, tmp_path: Path, output: str, compiler: Sequence[str], program: str, sources: Sequence[str]
) -> None:
    model.save(tmp_path / output)
    assert {path.name for path in tmp_path.iterdir()} == {output, "digits.h"}
    assert ran(compiler, tmp_path, "g_digits", "digits.h", program, sources) == bytes(model)


def test_c_links_with_cpp(model: tfconvert.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model.c", array_name="weights_of_mine")
    subprocess.run([*CC, "-std=c11", "-c", "model.c"], check=True, cwd=tmp_path, timeout=120)
    assert ran(CXX, tmp_path, "weights_of_mine", "model.h", "main.cpp", ["model.o"]) == bytes(model)


def test_the_command_writes_both_files_and_the_same_again(digits_model: Path, tmp_path: Path) -> None:
    contents = set()
    for _ in range(2):
        subprocess.run(
            [
                sys.executable,
                "-m",
                "tfconvert",
                str(digits_model),
                "-q",
                "-o",
                str(tmp_path / "2-mal.cc"),
                "--array-name",
                "digits",
            ],
            check=True,
            timeout=120,
        )
        contents.add(tuple(sorted(path.read_text("utf-8") for path in tmp_path.iterdir())))
    ((header, source),) = contents
    assert "extern const unsigned char digits[];\nextern const unsigned int digits_len;\n" in header
    assert "#ifndef TFCONVERT_2_MAL_H_\n" in header
    assert source.count("alignas(16) const unsigned char digits[] = {\n  0x") == 1


@pytest.mark.parametrize("name", ["", "2nd", "a-b", "a b", "ä"])
def test_an_invalid_c_name_is_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConversionError, match="can't be the name of a C array"):
        c_array(tmp_path / "model.cc", name)


def test_an_array_name_is_for_arrays(digits_model: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tfconvert", str(digits_model), "-o", str(tmp_path / "a.tflite")]
    run = subprocess.run([*command, "--array-name", "a"], check=False, capture_output=True, text=True, timeout=60)
    assert run.returncode == 2
    assert "--array-name is for C arrays" in run.stderr


def test_files_that_no_array_holds_are_rejected(tmp_path: Path) -> None:
    def write(stream: BinaryIO) -> None:
        raise AssertionError(stream)

    with pytest.raises(ConversionError, match="doesn't fit a C array"):
        c_array(tmp_path / "model.cc").save(2**32, write)
    assert list(tmp_path.iterdir()) == []


@given(st.lists(st.binary(max_size=50), max_size=8))
def test_blocks_of_any_size_make_the_same_lines(blocks: list[bytes]) -> None:
    stream = io.BytesIO()
    lines = _Lines(stream)
    for block in blocks:
        lines.write(memoryview(block))
    lines.finish()
    text = stream.getvalue().decode()
    numbers = [int(number, 16) for number in text.replace("\n", "").split(",") if number]
    assert bytes(numbers) == b"".join(blocks)
    assert all(line.count(",") == 16 for line in text.splitlines()[:-1])


def test_a_program_adds_the_operators(model: tfconvert.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model.cc")
    names = ["Add", "Conv2D", "DepthwiseConv2D", "FullyConnected", "HardSwish", "MaxPool2D", "Mean", "Mul", "Pad"]
    names += ["Reshape", "Softmax"]
    methods = "\n".join(f"  void Add{name}() {{ ++added; }}" for name in names)
    (tmp_path / "micro_mutable_op_resolver.h").write_text(RESOLVER.format(methods=methods), "utf-8")
    (tmp_path / "main.cpp").write_text(ADDING, "utf-8")
    subprocess.run([*CXX, "main.cpp", "model.cc", "-o", "program"], check=True, cwd=tmp_path, timeout=120)
    subprocess.run([tmp_path / "program"], check=True, timeout=60)
