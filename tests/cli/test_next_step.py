"""The command that runs a program of IREE, and the last line on a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfconvert.cli.next_step import next_step, run_command
from tfconvert.cli.output_options import Output
from tfconvert.converter.ir.interface import Interface, Tensor
from tfconvert.report.report import Report
from tfconvert.settings.options import Options
from tfconvert.settings.targets import Iree, LiteRT, StableHLO
from tfconvert.settings.verify_options import Verify

pty = pytest.importorskip("pty")


def test_every_kind_of_input_is_in_the_command() -> None:
    inputs = (
        Tensor("x", "f32[?,4]", "float32", (None, 4)),
        Tensor("k", "i32[]", "int32", ()),
        Tensor("b", "i1[]", "bool", ()),
    )
    report = Report("m", interfaces=(Interface("serve", (), inputs, ()),), beside=(".safetensors", ".mlir"))
    assert run_command(Output("out/a.vmfb"), Iree(backend="vulkan-spirv"), report) == (
        "  run it: iree-run-module --module=out/a.vmfb --parameters=model=out/a.safetensors --device=vulkan "
        "--function=serve --input=1x4xf32 --input=i32=0 --input=i1=00"
    )
    complex_one = Interface("main", (), (Tensor("c", "complex<f32>[2]", "complex64", (2,)),), ())
    assert run_command(Output("a.vmfb"), Iree(), Report("m", interfaces=(complex_one,))) == ""


def test_the_last_line_depends_on_the_result() -> None:
    assert "--verify" in next_step(Output("a.tflite"), Options())
    assert next_step(Output("a b.tflite"), Options(verify=Verify())) == "next: tfconvert bench 'a b.tflite' measures it"
    assert next_step(Output("a.cc"), Options()) == next_step(Output("/dev/stdout"), Options()) == ""
    assert next_step(Output("a.mlir"), Options(target=StableHLO())) == ""
    assert isinstance(Options().target, LiteRT)


@pytest.mark.parametrize(("flags", "is_there"), [([], True), (["-q"], False)])
def test_only_terminals_get_it(flags: list[str], is_there: bool, digits_model: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tfconvert", str(digits_model), "-o", str(tmp_path / "a.tflite"), *flags]
    assert b"next: " not in subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    master, slave = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | {"TERM": "xterm"}
    with subprocess.Popen(command, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        read = b""
        while block := _read(master):
            read += block
        os.close(master)
    assert process.returncode == 0
    assert (b"next: " in read) == is_there
    assert (b"\x1b[1m  note:" in read) == is_there


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # The other end is closed.
        return b""
