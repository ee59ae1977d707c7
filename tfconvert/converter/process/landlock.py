"""Restricting which files a process can open, and which processes it can send signals to: landlock(7)."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tfconvert.converter.process.kernel import checked, libc

# System calls with the same numbers on all architectures.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_GET_VERSION = 1
_PATH_BENEATH = 1

SIGNALS_VERSION = 6
"""The first version that restricts signals, in Linux 6.12."""

# Access rights: to run and read files, to list directories, and all of the others but making devices, sockets, pipes
# and symbolic links: whoever reads a result finds nothing but files and directories.
_RUN, _WRITE_FILE, _READ_FILE, _READ_DIRECTORY = (1 << bit for bit in range(4))
_SPECIAL = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12
_TRUNCATE = 1 << 14
# How many rights there are from a version on, in bits: moves between directories, truncation, device files.
_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
# The versions from which on it knows networks and scopes, and all of them.
_NETWORK_VERSION, _ALL_NETWORK, _ALL_SCOPES = 4, 3, 3

READ = _RUN | _READ_FILE | _READ_DIRECTORY
READ_AND_WRITE = _READ_FILE | _WRITE_FILE
CHANGE = (1 << 16) - 1 & ~_SPECIAL


@cache
def version() -> int:
    """Returns the version of Landlock in this kernel, 0 for none."""
    if sys.platform != "linux":
        return 0
    return max(int(libc().syscall(_CREATE_RULESET, None, 0, _GET_VERSION)), 0)


def restrict_files(rules: Mapping[Path, int]) -> None:
    """Restricts this process, and those that it starts, for good; it must have no way to new privileges.

    Args:
        rules: The rights to files, and to what is below directories; paths that don't exist are skipped.

    Raises:
        ConversionError: That fails (`internal-error`).
    """
    known = (1 << max(bits for first, bits in _RIGHTS.items() if first <= version())) - 1
    attributes = struct.pack("Q", known)
    if version() >= _NETWORK_VERSION:
        attributes += struct.pack("Q", _ALL_NETWORK)
    if version() >= SIGNALS_VERSION:
        attributes += struct.pack("Q", _ALL_SCOPES)
    size = ctypes.c_size_t(len(attributes))
    ruleset = checked(libc().syscall(_CREATE_RULESET, ctypes.c_char_p(attributes), size, 0))
    try:
        for path, rights in rules.items():
            _allow(ruleset, path, rights & known)
        checked(libc().syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    """Adds the rights to a file, or to what is below a directory; nothing if it doesn't exist."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _RUN | _READ_FILE | _WRITE_FILE | _TRUNCATE
        rule = ctypes.c_char_p(struct.pack("=Qi", rights, descriptor))
        checked(libc().syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
    finally:
        os.close(descriptor)
