"""A sandbox for processes that run other people's code on models: Linux's Landlock and a seccomp filter.

The process, and those that it starts, can read installed software and the given paths, and write below others. It has
no network, can't signal or trace processes outside, and can't leave the sandbox or its process group, by which it is
killed. See landlock(7) and seccomp(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import site
import struct
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from tfconvert.schema.diagnostics import error

# System calls with the same numbers on all architectures.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
# The first version of Landlock that restricts signals, in Linux 6.12.
_MIN_VERSION = 6
_GET_VERSION = 1
_PATH_BENEATH = 1

# Access rights: to run and read files, to list directories, and all of the others but making devices and sockets.
_RUN, _WRITE_FILE, _READ_FILE, _READ_DIRECTORY = (1 << bit for bit in range(4))
_ALL = (1 << 16) - 1
_DEVICES = 1 << 6 | 1 << 9 | 1 << 11
_TRUNCATE = 1 << 14
_ALL_NETWORK = 3
_ALL_SCOPES = 3

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_SECCOMP_FILTER = 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06

# The number of each machine in filters.
_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# The system calls that are refused, with their numbers on these machines in turn: networks, of which Landlock restricts
# only TCP; what is about other processes; and ways into the kernel that no conversion needs.
_REFUSED = {
    "socket": (41, 198),
    "io_uring_setup": (425, 425),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "bpf": (321, 280),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "setsid": (112, 157),
    "setpgid": (109, 154),
}
# The first system call of x86_64's other numbering.
_X32 = 0x40000000

_READABLE = (
    "/dev/random",
    "/dev/urandom",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/lib",
    "/lib64",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/self",
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
def is_available() -> bool:
    """Returns whether this system has what the sandbox needs: Linux 6.12 or later with Landlock."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return False
    return bool(_libc().syscall(_CREATE_RULESET, None, 0, _GET_VERSION) >= _MIN_VERSION)


def enter(readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """Puts this process into the sandbox, for good; it must have one thread.

    Args:
        readable: Files and directories that may be read, beside installed software.
        writable: Directories whose contents may be read and changed.

    Raises:
        ConversionError: That fails (`internal-error`).
    """
    own = [path.resolve() for path in writable]
    rules = dict.fromkeys((*_installed(own), *readable), _RUN | _READ_FILE | _READ_DIRECTORY)
    rules |= dict.fromkeys(own, _ALL & ~_DEVICES)
    rules[Path(os.devnull)] = _READ_FILE | _WRITE_FILE
    attributes = struct.pack("QQQ", _ALL, _ALL_NETWORK, _ALL_SCOPES)
    size = ctypes.c_size_t(len(attributes))
    ruleset = _checked(_libc().syscall(_CREATE_RULESET, ctypes.c_char_p(attributes), size, 0))
    try:
        for path, rights in rules.items():
            _allow(ruleset, path, rights)
        _checked(_libc().prctl(_PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0))))
        _checked(_libc().syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)
    _filter_calls()


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        raise error("internal-error", f"the sandbox fails: {os.strerror(ctypes.get_errno())}")
    return result


def _installed(own: Sequence[Path]) -> list[Path]:
    """Returns the files and directories of Python and of the system's libraries.

    One that the data of the process are in is left out, such as a home directory on Python's path.

    Args:
        own: Directories of data.
    """
    names = {*_READABLE, *sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, *sys.path}
    names.update((site.getusersitepackages(), sys.executable))
    found = {Path(name).resolve() for name in names if name} | {Path(__file__).resolve().parents[2]}
    return [path for path in sorted(found) if not any(each.is_relative_to(path) for each in own)]


def _allow(ruleset: int, path: Path, rights: int) -> None:
    """Adds the rights to a file, or to what is below a directory; nothing if it doesn't exist."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not path.is_dir():
            rights &= _RUN | _READ_FILE | _WRITE_FILE | _TRUNCATE
        rule = ctypes.c_char_p(struct.pack("=Qi", rights, descriptor))
        _checked(_libc().syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        os.close(descriptor)


def _filter_calls() -> None:
    name = platform.machine()
    machine, calls = _MACHINES[name], [numbers[[*_MACHINES].index(name)] for numbers in _REFUSED.values()]
    # Each test jumps to the last instruction if it holds, else goes on; the first one does the opposite.
    tests = [(_AT_LEAST, _X32), *((_EQUAL, call) for call in calls)]
    skipped = len(tests) + 1
    program = [(_LOAD, 0, 0, 4), (_EQUAL, 0, skipped + 1, machine), (_LOAD, 0, 0, 0)]
    program += [(kind, skipped - at, 0, value) for at, (kind, value) in enumerate(tests, start=1)]
    program += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    content = b"".join(struct.pack("HBBI", *each) for each in program)
    buffer = ctypes.create_string_buffer(content, len(content))
    header = struct.pack("HP", len(program), ctypes.addressof(buffer))
    _checked(_libc().prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_FILTER), ctypes.c_char_p(header), 0, 0))
