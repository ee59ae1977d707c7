"""Results on the disk: each folder of them appears whole, and nothing in it changes."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from tfconvert.service.folders import LOG, Folders
from tfconvert.service.job_state import JobRecord
from tfconvert.service.storage import storing, sync


def publish(folders: Folders, job: JobRecord, *, is_failed: bool = False) -> None:
    """Moves what an attempt has written to where results are.

    Args:
        folders: The service's folders.
        job: The job.
        is_failed: Whether only its log is worth keeping.
    """
    out = folders.attempt(job.id, job.attempt) / "out"
    result = folders.result(job.id, job.attempt)
    with storing():
        for path in out.iterdir():
            if is_failed and path.name != LOG:
                _remove(path)
            else:
                sync(path)
        sync(out)
        result.parent.mkdir(mode=0o700, exist_ok=True)
        remove(result)
        out.rename(result)
        sync(result.parent)


def link(folders: Folders, source: JobRecord, job: str, attempt: int) -> bool:
    """Gives a job the result of an equal one; returns whether that is there.

    Args:
        folders: The service's folders.
        source: The equal job.
        job: The job's ID.
        attempt: Which attempt of it gets the result.
    """
    result = folders.result(job, attempt)
    part = result.with_name(f"{attempt}.part")
    is_there = False
    try:
        with storing():
            try:
                _copy(folders.result(source.id, source.result_attempt), part)
                is_there = True
            except FileNotFoundError:
                return False
            remove(result)
            part.rename(result)
            sync(result.parent)
    finally:
        if not is_there:
            remove(part)
    return True


def remove(path: Path) -> None:
    """Removes a file or a folder with all in it, as far as that can be done now."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        _remove(path)


def remove_job(folders: Folders, job: str) -> None:
    """Removes all files of a job that is no more, but for the model."""
    for path in (folders.results / job, folders.jobs / job, folders.progress(job)):
        remove(path)


def _copy(result: Path, part: Path) -> None:
    remove(part)
    part.mkdir(mode=0o700, parents=True)
    for path in result.iterdir():
        _link(path, part / path.name)


def _link(path: Path, copy: Path) -> None:
    try:
        copy.hardlink_to(path)
    except OSError as problem:
        if problem.errno not in (errno.EPERM, errno.EMLINK, errno.EXDEV, errno.EOPNOTSUPP):
            raise
        shutil.copyfile(path, copy)
        sync(copy)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return  # The janitor tries again.
