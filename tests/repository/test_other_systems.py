"""Nothing that only Linux has is needed: a conversion where Python offers no more than on Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tfconvert
from tfconvert.exporters import output_file

# Libraries are imported before anything is hidden: they know what system they are on.
_SCRIPT = """
import mmap, os, signal, sys, types
import asyncio, ctypes, subprocess, tempfile, zipfile
import click, google.protobuf, google_crc32c, ml_dtypes, numpy, numpy.random

class WindowsMap:
    "A map that can't be advised: mmap.mmap itself can't lose an attribute."
    def __new__(cls, *arguments, **named):
        return memoryview(real(*arguments, **named))

real = mmap.mmap
mmap.mmap = WindowsMap
hidden = {
    mmap: [name for name in dir(mmap) if name.startswith(("MADV_", "MAP_", "PROT_"))],
    os: "O_CLOEXEC O_DIRECTORY O_DSYNC O_NOFOLLOW O_NONBLOCK O_SYNC O_TMPFILE chown chroot copy_file_range ctermid"
        " fchmod fchown fork forkpty getegid geteuid getgid getloadavg getpgid getuid killpg lchown memfd_create mkfifo"
        " mknod nice openpty posix_fadvise posix_fallocate posix_spawn pread preadv pwrite pwritev readv"
        " sched_getaffinity sched_yield sendfile setsid splice statvfs sync sysconf uname wait wait3 wait4"
        " writev".split(),
    signal: "SIGALRM SIGBUS SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGUSR1 SIGUSR2 alarm pause pthread_kill"
        " pthread_sigmask setitimer sigwait".split(),
}
for module, names in hidden.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
for name in ("fcntl", "grp", "posix", "pwd", "resource", "termios"):
    sys.modules[name] = None  # so that it can't be imported
assert not hasattr(mmap, "MADV_DONTNEED") and not hasattr(mmap.mmap, "madvise")

from tfconvert.__main__ import main
sys.argv[1:] = [sys.argv[1], "-o", sys.argv[2]]
main()
"""


def test_a_conversion_with_what_windows_has(digits_model: Path, tmp_path: Path, root: Path) -> None:
    output = tmp_path / "digits.tflite"
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(digits_model), str(output)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert output.read_bytes() == bytes(tfconvert.convert(digits_model))
    assert list(tmp_path.iterdir()) == [output]


def test_files_are_opened_as_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows would end lines in its own way otherwise."""
    binary = 1 << 30
    flags: list[int] = []
    real = os.open

    def opened(path: Path, wanted: int, mode: int) -> int:
        flags.append(wanted)
        return real(path, wanted & ~binary, mode)

    monkeypatch.setattr(os, "O_BINARY", binary, raising=False)
    monkeypatch.setattr(os, "open", opened)
    output_file.write_whole(tmp_path / "model.tflite", lambda stream: stream.writelines([b"a\nb"]))
    assert [flag & binary for flag in flags] == [binary]
    assert (tmp_path / "model.tflite").read_bytes() == b"a\nb"


_MEASURE = """
import sys
import ai_edge_litert.interpreter, numpy.random, asyncio, ctypes, subprocess, tempfile
sys.modules["resource"] = None
sys.platform = "win32"
from pathlib import Path
from tfconvert.tools import litert_child
litert_child._STATM = Path("nowhere")
image = numpy.zeros((1, 8, 8, 1), numpy.float32)
times = litert_child.measured(sys.argv[1], [image], 2, 1)
assert (len(times.runs), times.memory) == (2, 0), times
"""


def test_a_measurement_with_what_windows_has(digits_model: Path, tmp_path: Path, root: Path) -> None:
    output = tmp_path / "digits.tflite"
    tfconvert.convert(digits_model, batch=1).save(output)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(output)], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
