"""A sandbox for processes that run other people's code on models: Linux's Landlock and a seccomp filter.

The process, and those that it starts, can read installed software and the given paths, and write below others. It has
no network, no queues or memory in common with other processes, can't signal, trace or reprioritize them, changes no
owners, modes or times of files, and can't leave the sandbox or its process group, by which it is killed. It can still
ask whether a file exists, and its size. A system that lacks a part confines with the others; `missing` names it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import site
import struct
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from tfconvert.converter.process import landlock, seccomp
from tfconvert.converter.process.kernel import checked, libc, prctl

_PR_SET_NO_NEW_PRIVS = 38
# The version of the form in which privileges are set, and those to open files whatever their modes.
_CAPABILITIES, _OPEN_FILES = 0x20080522, 1 << 1 | 1 << 2

# The machines on which the tests of the filter have run.
_TRIED = ("x86_64",)

_READABLE = (
    "/dev/random",
    "/dev/urandom",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/lib",
    "/lib64",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/sys/devices/system",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/bin",
    "/usr/local/lib",
    "/usr/share",
)


@cache
def missing() -> Mapping[str, str]:
    """Returns the parts that are not confined on this system, with the reason; nothing if all is."""
    if sys.platform != "linux":
        return {"jobs": "are not confined: the sandbox needs Linux"}
    found = {}
    if not landlock.version():
        found["files"] = "are not confined: this needs Linux 5.13 with Landlock"
    if not _has_own_signals():
        found["signals"] = "reach only a job's first process: more needs Linux 6.12 with Landlock"
    if not seccomp.is_available():
        found["system calls"] = "are not confined: this needs seccomp on x86_64 or aarch64"
    if not has_proc():
        found["memory and files"] = "are limited for each process alone: a sum needs /proc"
    return found


def parts() -> Mapping[str, str]:
    """Returns by what each part is confined on this system, or why it is not."""
    machine = platform.machine()
    untried = "" if machine in _TRIED else ", checked against the kernel's numbers, but never run there"
    found = {
        "files": f"Landlock {landlock.version()}",
        "signals": f"Landlock {landlock.version()}",
        "system calls": f"a filter for {machine}{untried}",
        "memory and files": "sums over a job's processes, from /proc, that it can exceed between two looks; no cgroup",
    }
    return {name: missing().get(name, means) for name, means in found.items()} if sys.platform == "linux" else missing()


def has_proc() -> bool:
    """Returns whether the system reports what processes use, as Linux does in `/proc`."""
    return sys.platform == "linux" and Path("/proc/self/status").exists()


def problem() -> str:
    """Returns the parts that are not confined on this system, with the reasons; an empty string if all is."""
    return "; ".join(f"{name} {reason}" for name, reason in missing().items())


def is_available() -> bool:
    """Returns whether this system has all that the sandbox needs: Linux 6.12 or later with Landlock and seccomp."""
    return not missing()


def prepare() -> None:
    """Finds out once what `enter` needs, also for processes that are forked later."""
    if sys.platform == "linux":
        _software(tuple(sys.path))
        missing()
        seccomp.prepare(has_own_signals=_has_own_signals())


def enter(readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """Puts this process into the sandbox, for good; it must have one thread.

    Args:
        readable: Files and directories that may be read, beside installed software.
        writable: Directories whose contents may be read and changed.

    Raises:
        ConversionError: That fails (`internal-error`).
    """
    if sys.platform != "linux":
        return
    own = [path.resolve() for path in writable]
    rules = dict.fromkeys((*_installed(own), Path("/proc/self").resolve(), *readable), landlock.READ)
    rules |= dict.fromkeys(own, landlock.CHANGE)
    rules[Path(os.devnull)] = landlock.READ_AND_WRITE
    checked(prctl(_PR_SET_NO_NEW_PRIVS, 1))
    if landlock.version():
        landlock.restrict_files(rules)
    _drop_privileges()
    if seccomp.is_available():
        seccomp.restrict_calls(has_own_signals=_has_own_signals())


def _has_own_signals() -> bool:
    return landlock.version() >= landlock.SIGNALS_VERSION


def _installed(own: Sequence[Path]) -> list[Path]:
    """Returns the files and directories of Python and of the system's libraries.

    One that the data of the process are in is left out, such as a home directory on Python's path.

    Args:
        own: Directories of data.
    """
    found = _software(tuple(sys.path))
    return [path for path in found if not any(each.is_relative_to(path) for each in own)]


@cache
def _software(path: Sequence[str]) -> Sequence[Path]:
    names = {*_READABLE, *sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, *path}
    names.update((site.getusersitepackages(), sys.executable))
    return sorted({Path(name).resolve() for name in names if name} | {Path(__file__).resolve().parents[2]})


def _drop_privileges() -> None:
    """Gives up what root may do, but to open files whatever their modes."""
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITIES, 0))
    data = ctypes.create_string_buffer(24)
    checked(libc().capget(header, data))
    kept = struct.unpack("6I", data.raw)[1] & _OPEN_FILES
    checked(libc().capset(header, ctypes.create_string_buffer(struct.pack("6I", kept, kept, 0, 0, 0, 0))))
