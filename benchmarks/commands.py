"""Command lines of the benchmarks, and the programs that they run."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def parser_of(module: str, documentation: str | None) -> argparse.ArgumentParser:
    """Returns the parser of a benchmark's command line.

    Args:
        module: Its name in this package.
        documentation: Its docstring, for `--help`.
    """
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{module}",
        description=documentation,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a program in the directory of the repository; returns what it printed.

    Args:
        command: Program and arguments.
        environment: Its variables, by default those of this process.

    Raises:
        RuntimeError: It failed; the message is the last line of its complaint, or the signal that it died of.
    """
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        raise RuntimeError(f"died of signal {-done.returncode}")
    if done.returncode:
        raise RuntimeError(last_line(done.stderr))
    return done


def last_line(text: str) -> str:
    """Returns the last line that is not empty."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no message")
