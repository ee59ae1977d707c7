"""In the sandbox a process does its work, and nothing else, whatever code it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tfconvert.converter.process import sandbox

pytestmark = pytest.mark.skipif(not sandbox.is_available(), reason="this system has no Landlock of Linux 6.12")

# Runs expressions in the sandbox; prints what each has returned or raised.
_PROGRAM = """
import ctypes, json, os, signal, socket, subprocess, sys, tempfile
from pathlib import Path
from tfconvert.converter.process import sandbox

sandbox.enter([Path(sys.argv[1])], [Path(sys.argv[2])])
libc = ctypes.CDLL(None, use_errno=True)
for line in sys.argv[3:]:
    try:
        said = eval(line)
    except Exception as problem:
        said = type(problem).__name__
    print(json.dumps(said if isinstance(said, (int, str, list)) else None))
"""


def confined(readable: Path, writable: Path, *lines: str) -> list[object]:
    """Returns what expressions return in the sandbox, or the name of the exception that they raise."""
    command = [sys.executable, "-c", _PROGRAM, os.fspath(readable), os.fspath(writable), *lines]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def readable(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "x").write_text("mine")
    (tmp_path / "others").write_text("theirs")
    return tmp_path / "model"


@pytest.fixture
def writable(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def refused(outcomes: Iterable[object]) -> bool:
    # A link or a move between directories with other rights looks like one between disks.
    return {*outcomes} | {"OSError"} == {"PermissionError", "OSError"}


def test_it_does_its_work(readable: Path, writable: Path) -> None:
    copy = f"print(open({str(readable / 'x')!r}).read())"
    found = confined(
        readable,
        writable,
        f"Path({str(readable)!r}, 'x').read_text()",
        f"Path({str(writable)!r}, 'a').write_text('new')",
        f"Path({str(writable)!r}, 'a').rename(Path({str(writable)!r}, 'b'))",
        "Path('/dev/null').write_text('x')",
        "__import__('numpy').arange(3).tolist()",
        "__import__('ml_dtypes') and 1",
        f"subprocess.run([sys.executable, '-c', {copy!r}], capture_output=True).stdout.decode()",
    )
    assert found == ["mine", 3, None, 1, [0, 1, 2], 1, "mine\n"]
    assert (writable / "b").read_text() == "new"


def test_it_reads_and_writes_no_other_files(readable: Path, writable: Path, tmp_path: Path) -> None:
    others = str(tmp_path / "others")
    assert refused(
        confined(
            readable,
            writable,
            f"Path({others!r}).read_text()",
            f"Path({others!r}).write_text('')",
            f"os.truncate({others!r}, 0)",
            f"os.unlink({others!r})",
            f"os.listdir({str(tmp_path)!r})",
            f"os.link({others!r}, {str(writable / 'a')!r})",
            f"os.rename({others!r}, {str(writable / 'a')!r})",
            f"Path({str(readable)!r}, 'x').write_text('')",
            f"Path({str(readable)!r}, 'y').write_text('')",
            f"Path({str(tmp_path)!r}, 'y').mkdir()",
            f"(os.symlink({others!r}, {str(writable / 'link')!r}), Path({str(writable / 'link')!r}).read_text())",
            "Path('/etc/passwd').read_text()",
            "Path.home().joinpath('.profile').open('a')",
            "os.listdir(Path.home())",
        )
    )
    assert (tmp_path / "others").read_text() == "theirs"


def test_it_has_no_network_and_no_other_processes(readable: Path, writable: Path) -> None:
    assert refused(
        confined(
            readable,
            writable,
            "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
            "socket.socket(socket.AF_UNIX)",
            "os.kill(os.getppid(), 0)",
            "Path(f'/proc/{os.getppid()}/environ').read_bytes()",
            "Path(f'/proc/{os.getppid()}/mem').open('rb')",
        )
    )
    # It doesn't get out by way of a process that it starts, either.
    program = "import socket; socket.socket()"
    (said,) = confined(readable, writable, f"subprocess.run([sys.executable, '-c', {program!r}]).returncode")
    assert said == 1
    # Nor out of its process group, which is killed at the end.
    assert refused(confined(readable, writable, "os.setsid()", "os.setpgid(0, 0)"))
    traced, left = confined(readable, writable, "libc.ptrace(16, os.getppid(), 0, 0)", "libc.unshare(0x10000000)")
    assert (traced, left) == (-1, -1)


def test_a_directory_of_users_on_the_path_is_not_software(readable: Path, writable: Path, tmp_path: Path) -> None:
    program = _PROGRAM.replace("sandbox.enter", f"sys.path.append({str(tmp_path)!r}); sandbox.enter")
    line = f"Path({str(tmp_path / 'others')!r}).read_text()"
    command = [sys.executable, "-c", program, os.fspath(readable), os.fspath(writable), line]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == "PermissionError"
