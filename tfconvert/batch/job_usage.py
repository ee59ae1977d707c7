"""Counts what the processes of a job use together: the kernel's limits hold for each process and each file alone.

A job's processes are those of its process group, which they can't leave in the sandbox. Read from Linux's `/proc`;
elsewhere nothing is counted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tfconvert.batch.task import TaskLimits
from tfconvert.converter.process import sandbox
from tfconvert.schema.diagnostics import error

IS_COUNTED = sandbox.has_proc()
"""Whether this system reports the resources of processes."""

# Threads of a job: runtimes start some for each processor.
_THREADS = 1024 + 64 * (os.cpu_count() or 1)
# Files and directories of a job, and how deep these are.
_MAX_FILES, _MAX_DEPTH = 10_000, 40
# What counts of a process, in kilobytes: its own memory and what it shares with others, in memory and on disk.
_MEMORY = (b"RssAnon:", b"RssShmem:", b"VmSwap:", b"HugetlbPages:")

TOO_MUCH_MEMORY = "it needs more memory than a job may have"
"""The message about a job that exceeds its memory limit."""


class JobUsage(NamedTuple):
    """The resources of a job.

    Attributes:
        memory: Bytes.
        processes: Processes.
        threads: Threads of all processes.
    """

    memory: int
    processes: int
    threads: int


def processes_of(groups: Iterable[int]) -> Mapping[int, Sequence[int]]:
    """Returns the processes of process groups."""
    found: dict[int, list[int]] = {group: [] for group in groups}
    with os.scandir("/proc") as entries:
        processes = [int(entry.name) for entry in entries if entry.name.isdecimal()]
    for process in processes:
        try:
            group = os.getpgid(process)
        except OSError:  # It has ended.
            continue
        if group in found:
            found[group].append(process)
    return found


def usage(processes: Sequence[int]) -> JobUsage:
    """Returns the resources that processes use."""
    memory = threads = 0
    for process in processes:
        for line in _lines(process, "status"):
            name, _, value = line.partition(b"\t")
            if name in _MEMORY:
                memory += int(value.split()[0]) << 10
            elif name == b"Threads:":
                threads += int(value)
    return JobUsage(memory, len(processes), threads)


def stored(directories: Iterable[Path], processes: Sequence[int] = ()) -> int:
    """Returns the bytes of the files in directories, and of those without a name that processes hold.

    Raises:
        ConversionError: There are too many files, or directories that are too deep or can't be listed (`job-output`).
    """
    # By device and inode: a file may have several names and descriptors.
    sizes: dict[tuple[int, int], int] = {}
    own = {file for file, _ in _mapped(os.getpid())} if processes else set()
    for status in chain(*map(_statuses, directories), *map(_unnamed, processes)):
        sizes[status.st_dev, status.st_ino] = max(status.st_size, status.st_blocks * 512)
        if len(sizes) > _MAX_FILES:
            raise error("job-output", f"it has more than {_MAX_FILES} files")
    for file, size in chain(*map(_mapped, processes)):
        if file not in own:
            sizes.setdefault(file, size)
    return sum(sizes.values())


def _statuses(directory: Path) -> Iterator[os.stat_result]:
    """Yields the status of everything in a directory, following no links and waiting for nothing."""
    waiting = [(os.fspath(directory), 0)]
    for path, depth in waiting:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):  # It was removed meanwhile.
            continue
        except OSError:
            raise error("job-output", "it has made a directory that can't be listed") from None
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    yield status
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append((f"{path}/{entry.name}", depth + 1))
        finally:
            os.close(descriptor)
        if depth > _MAX_DEPTH:
            raise error("job-output", f"it has directories of more than {_MAX_DEPTH} levels")


def _unnamed(process: int) -> Iterator[os.stat_result]:
    """Yields the status of files that a process has open, and that have been removed."""
    try:
        opened = [*Path(f"/proc/{process}/fd").iterdir()]
    except OSError:
        return
    for path in opened:
        try:
            status = path.stat()
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and not status.st_nlink:
            yield status


def _mapped(process: int) -> Iterator[tuple[tuple[int, int], int]]:
    """Yields the files that a process has mapped, and that have been removed, with the bytes up to the mapping's end.

    They may be closed. Libraries that were replaced while this process runs look the same.
    """
    for line in _lines(process, "maps"):
        if line.endswith(b" (deleted)"):
            place, _, offset, device, inode = line.split()[:5]
            begin, _, end = place.partition(b"-")
            major, _, minor = device.partition(b":")
            file = os.makedev(int(major, 16), int(minor, 16)), int(inode)
            yield file, int(offset, 16) + int(end, 16) - int(begin, 16)


def _lines(process: int, name: str) -> Sequence[bytes]:
    try:
        return Path(f"/proc/{process}/{name}").read_bytes().splitlines()
    except OSError:  # It has ended.
        return ()


def check(limits: TaskLimits, processes: Sequence[int], directories: Sequence[Path]) -> int:
    """Checks that a job stays within its limits, and returns the bytes of its memory.

    Args:
        limits: The limits.
        processes: Its processes.
        directories: Where it may write; none if it may write anywhere, which is not counted.

    Raises:
        ConversionError: It doesn't (`job-memory`, `job-processes`, `job-output`).
    """
    used = usage(processes)
    if limits.memory and used.memory > limits.memory:
        raise error("job-memory", TOO_MUCH_MEMORY)
    if limits.processes and used.processes > limits.processes:
        raise error("job-processes", f"it runs more than {limits.processes} processes")
    if limits.processes and used.threads > _THREADS:
        raise error("job-processes", f"it runs more than {_THREADS} threads")
    if limits.output and directories and stored(directories, processes) > limits.output:
        raise error("job-output", f"it writes more than {limits.output} bytes")
    return used.memory
