"""A filter of system calls for processes that run other people's code on models: seccomp(2).

It allows what conversions, Python, TensorFlow, LiteRT, JAX and IREE's compiler need, by name; some calls only with the
arguments that are harmless. All others fail with EPERM, those that are newer than this table and `clone3` with ENOSYS,
so that the C library falls back to older ones. So there are no sockets, no queues and memory between processes, no
namespaces, no changes of owners, modes and times of files, and no priorities or limits of other processes.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator, Sequence
from functools import cache

from tfconvert.converter.process.kernel import checked, libc, prctl

# The number of each machine in filters, in the order of the columns below.
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Calls that are allowed, and their numbers on these machines; `-` where the C library uses another call. From Linux's
# arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
CALLS = """
Files: Landlock decides which ones can be opened.
read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, preadv 295 69, pwritev 296 70
preadv2 327 286, pwritev2 328 287, lseek 8 62, sendfile 40 71, copy_file_range 326 285, close 3 57
close_range 436 436, dup 32 23, dup2 33 -, dup3 292 24, pipe 22 -, pipe2 293 59
stat 4 -, lstat 6 -, fstat 5 80, newfstatat 262 79, statx 332 291, statfs 137 43, fstatfs 138 44, access 21 -
faccessat 269 48, faccessat2 439 439, readlink 89 -, readlinkat 267 78, getdents64 217 61, getcwd 79 17, chdir 80 49
fchdir 81 50, rename 82 -, renameat 264 38, renameat2 316 276, mkdir 83 -, mkdirat 258 34, rmdir 84 -
unlink 87 -, unlinkat 263 35, umask 95 166, truncate 76 45, ftruncate 77 46
fallocate 285 47, fadvise64 221 223, readahead 187 213, fsync 74 82, fdatasync 75 83, flock 73 32
poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, epoll_create1 291 20, epoll_ctl 233 21, epoll_wait 232 -
epoll_pwait 281 22, eventfd2 290 19
Memory.
brk 12 214, munmap 11 215, mremap 25 216, mprotect 10 226, madvise 28 233, msync 26 227, mincore 27 232
Processes and threads of its own.
fork 57 -, vfork 58 -, execve 59 221, exit 60 93, exit_group 231 94, wait4 61 260, waitid 247 95, futex 202 98
set_robust_list 273 99, set_tid_address 218 96, rseq 334 293, membarrier 324 283, arch_prctl 158 -, sched_yield 24 124
restart_syscall 219 128, getrlimit 97 163, setrlimit 160 164
Signals.
rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigpending 127 136, rt_sigtimedwait 128 137
rt_sigsuspend 130 133, sigaltstack 131 132, pause 34 -, alarm 37 -, setitimer 38 103, getitimer 36 102
Clocks.
nanosleep 35 101, clock_nanosleep 230 115, clock_gettime 228 113, clock_getres 229 114, gettimeofday 96 169
time 201 -, times 100 153
Reading what the system is and who runs.
getpid 39 172, getppid 110 173, gettid 186 178, getpgrp 111 -, getpgid 121 155, getsid 124 156, getuid 102 174
geteuid 107 175, getgid 104 176, getegid 108 177, getgroups 115 158, getresuid 118 148, getresgid 120 150
capget 125 90, getpriority 140 141, getrusage 98 165, sysinfo 99 179, uname 63 160, getcpu 309 168
getrandom 318 278, get_mempolicy 239 236, sched_getaffinity 204 123, sched_getparam 143 121
sched_getscheduler 145 120, sched_get_priority_max 146 125, sched_get_priority_min 147 126
Only with some arguments (`_ARGUMENTS`).
open 2 -, openat 257 56, creat 85 -
clone 56 220, mmap 9 222, fcntl 72 25, ioctl 16 29, prctl 157 167, prlimit64 302 261, kill 62 129, tkill 200 130
tgkill 234 131
"""
# A call of which the filter can't read the arguments, and the first one that is newer than the table.
_CLONE3, _FIRST_NEW = 435, 451

_ALL_BITS = 0xFFFFFFFF
# For each of these calls the number of an argument, a mask, and the masked values with which it is allowed.
_ARGUMENTS: dict[str, tuple[int, int, Sequence[int]]] = {
    # No files that run as another user or group: the mode of a new one.
    "open": (2, 0o6000, (0,)),
    "openat": (3, 0o6000, (0,)),
    "creat": (1, 0o6000, (0,)),
    # No namespaces (CLONE_NEW...), and no children for the parent (CLONE_PARENT) or its tracer (CLONE_PTRACE).
    "clone": (0, 0x7E02A000, (0,)),
    # No memory that isn't a file and is shared between processes (MAP_SHARED, MAP_ANONYMOUS), which nobody could count
    # once it isn't mapped, and no huge pages (MAP_HUGETLB).
    "mmap": (3, 0x40021, (0, 1, 0x20)),
    # Copies of descriptors, flags and locks. No signals to owners, leases, and large pipes.
    "fcntl": (1, _ALL_BITS, (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032, 1034)),
    # Whether it is a terminal and how large, bytes to read, waiting, and whether programs inherit it.
    "ioctl": (1, _ALL_BITS, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),
    # The signal when the parent ends, names of threads and memory, whether new privileges are possible; reads.
    "prctl": (0, _ALL_BITS, (1, 2, 3, 15, 16, 21, 23, 38, 39, 51, 64, 0x53564D41)),
    "prlimit64": (0, _ALL_BITS, (0,)),
}
_SIGNALS = ("kill", "tkill", "tgkill")

_PR_SET_SECCOMP, _SECCOMP_FILTER, _GET_ACTION_AVAIL = 22, 2, 2
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
# An instruction: its code, how many are skipped if a test holds and if not, and a number.
_Instruction = tuple[int, int, int, int]


def is_available() -> bool:
    """Returns whether this system has filters for its machine."""
    if platform.machine() not in MACHINES:
        return False
    number = 317 if platform.machine() == "x86_64" else 277
    return bool(libc().syscall(number, _GET_ACTION_AVAIL, 0, ctypes.byref(ctypes.c_uint32(_FAIL))) == 0)


def numbers(machine: str) -> dict[str, int]:
    """Returns the allowed calls, also those that depend on arguments, and their numbers on a machine."""
    column = 1 + [*MACHINES].index(machine)
    rows = (row.split() for line in CALLS.splitlines() if not line.endswith(".") for row in line.split(", "))
    return {row[0]: int(row[column]) for row in rows if row and row[column] != "-"}


def prepare(*, has_own_signals: bool) -> None:
    """Makes the filter, if it is the same for all processes."""
    if has_own_signals and is_available():
        program(platform.machine(), ())


def restrict_calls(*, has_own_signals: bool) -> None:
    """Puts this process, which must have one thread and no way to new privileges, under the filter, for good.

    Args:
        has_own_signals: Whether Landlock already keeps signals from other processes. Otherwise a process can send them
            to its group and itself alone.

    Raises:
        ConversionError: That fails (`internal-error`).
    """
    own = () if has_own_signals else (os.getpid(), -os.getpgrp())
    code = program(platform.machine(), own)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("HP", len(code) // 8, ctypes.addressof(buffer)))
    checked(prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.addressof(header)))


@cache
def program(machine: str, own: Sequence[int]) -> bytes:
    """Returns the filter of a machine, 8 bytes an instruction.

    Args:
        machine: Its name.
        own: What signals may be sent to: a process, and a group as a negative number; empty for all.
    """
    return b"".join(struct.pack("HBBI", *each) for each in _instructions(machine, own))


def _instructions(machine: str, own: Sequence[int]) -> Iterator[_Instruction]:
    calls = numbers(machine)
    arguments = dict(_ARGUMENTS)
    if own:
        arguments |= {name: (0, _ALL_BITS, [0, *(each & _ALL_BITS for each in own)]) for name in _SIGNALS}
    yield _LOAD, 0, 0, _MACHINE
    yield _EQUAL, 1, 0, MACHINES[machine]
    yield _RETURN, 0, 0, _FAIL | errno.EPERM
    yield _LOAD, 0, 0, _NUMBER
    # Also x86_64's other numbering, whose calls begin at 0x40000000.
    yield _AT_LEAST, 1, 0, _FIRST_NEW
    yield _EQUAL, 0, 1, _CLONE3
    yield _RETURN, 0, 0, _FAIL | errno.ENOSYS
    for name, (argument, mask, values) in arguments.items():
        if name not in calls:
            continue
        yield _EQUAL, 0, len(values) + 4, calls.pop(name)
        yield _LOAD, 0, 0, _FIRST_ARGUMENT + 8 * argument
        yield _AND, 0, 0, mask
        yield from ((_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values))
        yield _RETURN, 0, 0, _FAIL | errno.EPERM
        yield _RETURN, 0, 0, _ALLOW
    yield from ((_EQUAL, len(calls) - at, 0, number) for at, number in enumerate(calls.values()))
    yield _RETURN, 0, 0, _FAIL | errno.EPERM
    yield _RETURN, 0, 0, _ALLOW
