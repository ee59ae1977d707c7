"""Limits that the kernel holds a job's process to."""

from __future__ import annotations

import resource

from tfconvert.batch.job import JobLimits

# How many seconds of processor time a second of wall time may take: some libraries have threads.
_CORES = 4


def apply_limits(limits: JobLimits) -> None:
    """Limits this process and those that it starts."""
    _limit(resource.RLIMIT_CORE, 0)
    if limits.seconds:
        _limit(resource.RLIMIT_CPU, int(limits.seconds * _CORES) + 1)
    if limits.memory:
        # What is mapped from files, as weights are, doesn't count; elsewhere than on Linux the limit is only a wish.
        _limit(resource.RLIMIT_DATA, limits.memory)
    if limits.files:
        _limit(resource.RLIMIT_NOFILE, limits.files)
    if limits.output:
        # Writing further is an error of the file then, since Python ignores the signal.
        _limit(resource.RLIMIT_FSIZE, limits.output)


def _limit(what: int, value: int) -> None:
    _, most = resource.getrlimit(what)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(what, (value, value))
