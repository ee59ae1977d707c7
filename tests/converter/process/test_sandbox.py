"""In the sandbox a process does its work, and nothing else, whatever code it runs."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tfconvert.converter.process import landlock, sandbox, seccomp

pytestmark = pytest.mark.skipif(not seccomp.is_available(), reason="this system has no filters of system calls")
needs_landlock = pytest.mark.skipif(not sandbox.is_available(), reason="this system has no Landlock of Linux 6.12")

# Runs expressions in the sandbox, also as another user or as if the system had no Landlock; prints what each has
# returned or raised. Calls of the C library return the error's name.
_PROGRAM = """
import ctypes, errno, json, os, resource, signal, socket, struct, subprocess, sys, tempfile, threading, time
from pathlib import Path
from tfconvert.converter.process import landlock, sandbox, seccomp

readable, writable, user, version = sys.argv[1:5]
parent = os.getppid()
libc = ctypes.CDLL(None, use_errno=True)
calls = seccomp.numbers(os.uname().machine)

def call(name, *arguments):
    return failed(getattr(libc, name)(*arguments))

def number(which, *arguments):
    return failed(libc.syscall(which, *map(ctypes.c_long, arguments)))

def failed(result):
    return errno.errorcode[ctypes.get_errno()] if result == -1 else result

def child(work):
    process = os.fork()
    if not process:
        os._exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

os.setpgid(0, 0)
if int(user):
    os.setgroups([])
    os.setgid(int(user))
    # What root may do is kept for the moment (PR_SET_KEEPCAPS), to read Python in a home directory.
    libc.prctl(8, 1)
    os.setuid(int(user))
    header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
    assert not libc.capset(header, ctypes.create_string_buffer(struct.pack("6I", 4, 4, 0, 0, 0, 0)))
if version:
    landlock.version = lambda: int(version)
sandbox.enter([Path(readable)], [Path(writable)])
for line in sys.argv[5:]:
    try:
        said = eval(line)
    except Exception as problem:
        said = type(problem).__name__
    print(json.dumps(said if isinstance(said, (int, str, list)) else None))
"""

_ORDINARY = 65534


class Sandbox:
    """Runs expressions in a sandbox.

    Args:
        folder: A new directory.
        user: The user's ID; 0 for the one that runs the tests.
        version: The version of Landlock that the system is made to have; empty for its own.
    """

    def __init__(self, folder: Path, user: int, version: str) -> None:
        self.folder = folder
        self.readable, self.writable = folder / "model", folder / "out"
        self.others = folder / "others"
        self._settings = (str(user), version)
        for path in (self.readable, self.writable):
            path.mkdir()
        (self.readable / "x").write_text("mine")
        self.others.write_text("theirs")
        if user:
            folder.chmod(0o755)
            for path in folder.rglob("*"):
                os.chown(path, user, user)

    def run(self, *lines: str, program: str = _PROGRAM) -> list[object]:
        """Returns what expressions return, or the name of the exception that they raise."""
        places = (os.fspath(self.readable), os.fspath(self.writable))
        command = [sys.executable, "-c", program, *places, *self._settings, *lines]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def outcomes(self, *lines: str) -> Mapping[str, object]:
        """Returns the same by expression."""
        return dict(zip(lines, self.run(*lines), strict=True))


# With all of Landlock, without what restricts signals, and without any; as the user of the tests, and as another.
_SYSTEMS = [
    pytest.param((user, version), id=f"{'ordinary' if user else 'own'}-{version or 'all'}")
    for user in (0, _ORDINARY)
    for version in ("", "5", "0")
]


@pytest.fixture(params=_SYSTEMS)
def box(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    user, version = request.param
    if user and os.geteuid():
        pytest.skip("only root can become another user")
    if version == "" and not sandbox.is_available():
        pytest.skip("this system has no Landlock of Linux 6.12")
    if version == "5" and landlock.version() < 5:
        pytest.skip("this system has no Landlock of Linux 6.10")
    # Not in a directory of pytest, which only one user can read.
    with TemporaryDirectory(prefix="sandbox-") as folder:
        yield Sandbox(Path(folder), user, version)


@pytest.fixture
def whole(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path, 0, "")


def refused(outcomes: Mapping[str, object], *names: str) -> None:
    """Checks that all have failed, and why."""
    allowed = {"PermissionError", "EPERM", *names}
    assert {line: said for line, said in outcomes.items() if said not in allowed} == {}


def test_it_does_its_work(box: Sandbox) -> None:
    path, new = str(box.writable / "a"), str(box.writable / "b")
    lines = {
        f"Path({str(box.readable)!r}, 'x').read_text()": "mine",
        f"Path({path!r}).write_text('new')": 3,
        f"Path({path!r}).rename({new!r})": None,
        f"[os.truncate({new!r}, 2), os.stat({new!r}).st_size][1]": 2,
        "Path('/dev/null').write_text('x')": 1,
        "__import__('numpy').arange(3).tolist()": [0, 1, 2],
        "__import__('ml_dtypes') and 1": 1,
        f"subprocess.run(['cat', {str(box.readable / 'x')!r}], capture_output=True).stdout.decode()": "mine",
        "[thread := threading.Thread(target=time.sleep, args=(0,)), thread.start(), thread.join()][1:]": [None, None],
        "child(lambda: 7)": 7,
        "os.kill(os.getpid(), 0)": None,
        "os.killpg(0, 0)": None,
        "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))": None,
        "os.get_inheritable(1)": True,
        "len(os.sched_getaffinity(0)) > 0": True,
        f"tempfile.TemporaryFile(dir={str(box.writable)!r}).write(b'12')": 2,
        f"[folder := tempfile.mkdtemp(dir={str(box.writable)!r}), __import__('shutil').rmtree(folder)][1]": None,
    }
    assert box.outcomes(*lines) == lines
    assert (box.writable / "b").read_text() == "ne"


# A function that calls another in a process, as LiteRT's kernels are called.
_CALLED = """
from tfconvert.converter.process.child_process import Child

def called():
    with Child() as process:
        return process.call(os.path.basename, "a/b")

for line in"""


@pytest.mark.parametrize("box", [(0, version) for version in ("", "5", "0")], indirect=True)
def test_it_calls_functions_in_processes(box: Sandbox) -> None:
    """Also where a process may send signals to itself alone."""
    assert box.run("called()", program=_PROGRAM.replace("\nfor line in", _CALLED)) == ["b"]


@needs_landlock
def test_it_reads_and_writes_no_other_files(whole: Sandbox) -> None:
    others, readable, writable = (str(path) for path in (whole.others, whole.readable, whole.writable))
    outcomes = whole.outcomes(
        f"Path({others!r}).read_text()",
        f"Path({others!r}).write_text('')",
        f"os.truncate({others!r}, 0)",
        f"os.unlink({others!r})",
        f"os.listdir({str(whole.folder)!r})",
        f"os.rename({others!r}, {writable + '/a'!r})",
        f"Path({readable!r}, 'x').write_text('')",
        f"Path({readable!r}, 'y').write_text('')",
        f"Path({str(whole.folder)!r}, 'y').mkdir()",
        "Path('/etc/passwd').read_text()",
        "Path.home().joinpath('.profile').open('a')",
        "os.listdir(Path.home())",
        "Path(f'/proc/{parent}/environ').read_bytes()",
        "Path(f'/proc/{parent}/mem').open('rb')",
        "Path('/dev/shm/x').write_text('')",
    )
    # A link or a move between directories with other rights looks like one between disks.
    refused(outcomes, "OSError")
    assert whole.others.read_text() == "theirs"


def test_it_changes_no_metadata(box: Sandbox) -> None:
    for path in (box.others, box.readable / "x"):
        before = path.stat()
        refused(
            box.outcomes(
                f"os.chmod({str(path)!r}, 0)",
                f"os.chown({str(path)!r}, -1, -1)",
                f"os.lchown({str(path)!r}, -1, -1)",
                f"os.utime({str(path)!r}, (0, 0))",
                f"os.setxattr({str(path)!r}, 'user.x', b'1')",
                f"os.removexattr({str(path)!r}, 'user.x')",
            )
        )
        after = path.stat()
        assert (after.st_mode, after.st_uid, after.st_mtime) == (before.st_mode, before.st_uid, before.st_mtime)
    own = f"os.open({str(box.readable / 'x')!r}, 0)"
    refused(box.outcomes(f"os.fchmod({own}, 0)", f"os.fchown({own}, -1, -1)", f"os.utime({own}, (0, 0))"))


def test_it_has_no_network(box: Sandbox) -> None:
    kinds = ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK")
    outcomes = box.outcomes(
        *(f"socket.socket(socket.{kind}, socket.SOCK_DGRAM)" for kind in kinds),
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
        "socket.socketpair()",
    )
    refused(outcomes)
    # It doesn't get out by way of a process that it starts, either.
    assert box.run("child(lambda: call('socket', 2, 1, 0) == 'EPERM')") == [1]


def test_it_reaches_no_other_processes(box: Sandbox) -> None:
    outcomes = box.outcomes(
        "os.kill(parent, 0)",
        "number(200 if os.uname().machine == 'x86_64' else 130, parent, 0)",
        "signal.pidfd_send_signal(os.pidfd_open(parent), 0)",
        "call('sigqueue', parent, 0, None)",
        "call('ptrace', 16, parent, 0, 0)",
        "call('process_vm_readv', parent, None, 0, None, 0, 0)",
        "resource.prlimit(parent, resource.RLIMIT_CORE)",
        "resource.prlimit(parent, resource.RLIMIT_CORE, (0, 0))",
        "os.sched_setaffinity(parent, os.sched_getaffinity(0))",
        "os.sched_setscheduler(parent, os.SCHED_OTHER, os.sched_param(0))",
        "os.sched_setparam(parent, os.sched_param(0))",
        "os.setpriority(os.PRIO_PROCESS, parent, 0)",
        "os.setpriority(os.PRIO_USER, 0, 0)",
        "os.nice(1)",
        "number(251 if os.uname().machine == 'x86_64' else 30, 1, parent, 0)",  # ioprio_set
        "number(256 if os.uname().machine == 'x86_64' else 238, parent, 0, 0, 0)",  # migrate_pages
        "call('fcntl', 0, 8, parent)",  # F_SETOWN
    )
    refused(outcomes)


def test_it_does_not_leave_its_group(box: Sandbox) -> None:
    refused(box.outcomes("os.setsid()", "os.setpgid(0, 0)"))
    assert box.run("child(lambda: call('setsid') == 'EPERM')") == [1]


def test_it_has_nothing_in_common_with_others(box: Sandbox) -> None:
    outcomes = box.outcomes(
        "call('shmget', 0, 4096, 0o1600)",
        "call('semget', 0, 1, 0o1600)",
        "call('msgget', 0, 0o1600)",
        "call('memfd_create', b'x', 0)",
        "__import__('mmap').mmap(-1, 4096)",  # It is shared with children.
        "call('inotify_init1', 0)",
        "call('fcntl', 0, 1031, 1 << 20)",  # F_SETPIPE_SZ
    )
    refused(outcomes)


def test_it_makes_no_namespaces(box: Sandbox) -> None:
    clone, clone3 = ("56", "435") if platform.machine() == "x86_64" else ("220", "435")
    spaces = {"user": 0x10000000, "mount": 0x20000, "process": 0x20000000, "network": 0x40000000, "ipc": 0x8000000}
    outcomes = box.outcomes(
        *(f"number({clone}, {flag | 17}, 0, 0, 0, 0)" for flag in spaces.values()),
        f"number({clone}, {0x8000 | 17}, 0, 0, 0, 0)",  # A child of the parent.
        *(f"call('unshare', {flag})" for flag in spaces.values()),
        f"number({clone3}, 0, 0)",
        "call('setns', 0, 0)",
        "call('mount', b'none', b'/tmp', b'tmpfs', 0, None)",
        "call('chroot', b'/tmp')",
        "call('umount2', b'/tmp', 0)",
    )
    refused(outcomes, "ENOSYS")


def test_it_has_no_privileges(box: Sandbox) -> None:
    outcomes = box.outcomes(
        "os.setuid(1)",
        "os.setgroups([])",
        "call('prctl', 4, 0, 0, 0, 0)",  # PR_SET_DUMPABLE
        "call('prctl', 36, 1, 0, 0, 0)",  # PR_SET_CHILD_SUBREAPER
        "call('ioctl', 0, 0x5412, b'x')",  # TIOCSTI
        f"os.symlink({str(box.others)!r}, {str(box.writable / 'link')!r})",
        f"os.link({str(box.readable / 'x')!r}, {str(box.writable / 'link')!r})",
        f"os.mknod({str(box.writable / 'node')!r})",
        f"os.open({str(box.writable / 'program')!r}, os.O_CREAT, 0o4755)",
        f"call('creat', {os.fsencode(box.writable / 'program')!r}, 0o2755)",
        f"os.mkfifo({str(box.writable / 'fifo')!r})",
        "call('personality', 0)",
        "call('sethostname', b'x', 1)",
        "call('acct', None)",
        "number(425, 1, 0)",  # io_uring_setup
        "call('mlockall', 1)",
    )
    refused(outcomes)
    assert box.run("resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))")[0] in ("ValueError", "OSError")
    # The newest calls are missing, so that the C library uses older ones.
    assert box.run("number(451)", "number(600)", "number(0x40000000)") == ["ENOSYS"] * 3


def test_it_has_no_other_calls(box: Sandbox) -> None:
    allowed = {*seccomp.numbers(platform.machine()).values(), 435}
    # The kernel answers the returns of its own probes, which x86_64 has there, whatever a filter says.
    others = [number for number in range(451) if number not in allowed | {335, 336}]
    # The filter is there, so that none of these does anything.
    assert box.run("libc.prctl(21, 0, 0, 0, 0)", f"sorted(map(number, {others}), key=str)[:: {len(others) - 1}]") == [
        2,
        ["EPERM", "EPERM"],
    ]


@needs_landlock
def test_a_directory_of_users_on_the_path_is_not_software(whole: Sandbox) -> None:
    program = _PROGRAM.replace("sandbox.enter", f"sys.path.append({str(whole.folder)!r}); sandbox.enter")
    assert whole.run(f"Path({str(whole.others)!r}).read_text()", program=program) == ["PermissionError"]


@pytest.mark.parametrize(
    ("version", "has_filter", "has_proc", "missing"),
    [
        (6, True, True, set()),
        (5, True, True, {"signals"}),
        (0, True, True, {"files", "signals"}),
        (6, False, True, {"system calls"}),
        (6, True, False, {"memory and files"}),
        (0, False, False, {"files", "signals", "system calls", "memory and files"}),
    ],
)
def test_what_is_not_confined_is_told(
    version: int, has_filter: bool, has_proc: bool, missing: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "has_proc", lambda: has_proc)
    monkeypatch.setattr(landlock, "version", lambda: version)
    monkeypatch.setattr(seccomp, "is_available", lambda: has_filter)
    sandbox.missing.cache_clear()
    try:
        assert sandbox.missing().keys() == missing
        assert sandbox.is_available() is (not missing)
        assert all(f"{name} {reason}" in sandbox.problem() for name, reason in sandbox.missing().items())
        parts = sandbox.parts()
        assert {name for name in parts if parts[name] == sandbox.missing().get(name)} == missing
        assert has_proc != ("no cgroup" not in parts["memory and files"])
    finally:
        sandbox.missing.cache_clear()


def test_a_filter_that_has_not_run_on_its_machine_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "missing", dict)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "never run there" in sandbox.parts()["system calls"]
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert sandbox.parts()["system calls"] == "a filter for x86_64"


# The kernel's own numbers: those of x86_64, and those of all newer architectures, such as aarch64.
_HEADERS = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "/usr/include/asm-generic/unistd.h"}


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_numbers_are_those_of_the_kernel(machine: str) -> None:
    header = Path(_HEADERS[machine])
    if not header.exists():
        pytest.skip("the kernel's headers are not installed")
    found = re.findall(r"^#define __NR(?:3264)?_(\w+) (\d+)$", header.read_text(), re.MULTILINE)
    kernel = {name: int(number) for name, number in found}
    kernel.setdefault("newfstatat", kernel.get("fstatat", 0))
    ours = seccomp.numbers(machine)
    assert len(ours) > 100
    assert {name: number for name, number in ours.items() if kernel[name] != number} == {}
    assert len({*ours.values()}) == len(ours)


def run_filter(program: Sequence[tuple[int, int, int, int]], machine: int, number: int, *arguments: int) -> int:
    """Returns what a filter answers to a call, as the kernel's virtual machine runs it: by these few instructions."""
    data = struct.pack("<IIQ6Q", number, machine, 0, *(each & (1 << 64) - 1 for each in (*arguments, *[0] * 6)[:6]))
    accumulator = at = 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        if code == 0x20:  # BPF_LD | BPF_W | BPF_ABS
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == 0x54:  # BPF_ALU | BPF_AND | BPF_K
            accumulator &= operand
        elif code == 0x15:  # BPF_JMP | BPF_JEQ | BPF_K
            at += if_true if accumulator == operand else if_false
        elif code == 0x35:  # BPF_JMP | BPF_JGE | BPF_K
            at += if_true if accumulator >= operand else if_false
        else:
            assert code == 0x06  # BPF_RET | BPF_K
            return operand


_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS

# Calls with arguments that are allowed, and with ones that are not.
_WITH_ARGUMENTS: Mapping[str, tuple[Sequence[int], Sequence[int]]] = {
    "open": ((0, 0, 0o600), (0, 0, 0o4755)),
    "openat": ((0, 0, 0, 0o600), (0, 0, 0, 0o4755)),
    "creat": ((0, 0o600), (0, 0o2755)),
    "clone": ((17,), (0x10000000 | 17,)),
    "mmap": ((0, 4096, 3, 0x22), (0, 4096, 3, 0x21)),
    "fcntl": ((0, 3), (0, 8)),
    "ioctl": ((0, 0x5401), (0, 0x5412)),
    "prctl": ((15,), (4,)),
    "prlimit64": ((0,), (1,)),
    "kill": ((7, 9), (8, 9)),
    "tkill": ((7, 9), (8, 9)),
    "tgkill": ((-5, 9), (8, 9)),
}


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_the_filter_of_each_machine_answers_as_it_should(machine: str) -> None:
    """Also where the tests don't run: its instructions are those that the kernel is given."""
    program = [*struct.iter_unpack("HBBI", seccomp.program(machine, (7, -5)))]
    known, kernel = seccomp.MACHINES[machine], seccomp.numbers(machine)
    for number in range(451):
        names = [name for name, each in kernel.items() if each == number]
        wanted = (_ALLOW if names else _ENOSYS if number == 435 else _EPERM,)
        if _WITH_ARGUMENTS.keys().isdisjoint(names):
            assert (run_filter(program, known, number),) == wanted, (number, names)
    for name in _WITH_ARGUMENTS.keys() & kernel.keys():
        allowed, refused_ = _WITH_ARGUMENTS[name]
        assert run_filter(program, known, kernel[name], *allowed) == _ALLOW, name
        assert run_filter(program, known, kernel[name], *refused_) == _EPERM, name
    assert run_filter(program, known, 451) == run_filter(program, known, 0x40000000) == _ENOSYS
    for other in {*seccomp.MACHINES.values(), 0} - {known}:
        assert run_filter(program, other, kernel["read"]) == _EPERM
