"""Compiles the modules of `native/modules.txt` with mypyc.

    python native/build.py inplace    extension modules beside the sources: `make native`
    python native/build.py wheel      a wheel for this platform in dist/: `make wheel`
    python native/build.py possible   says what this machine lacks for that, with status 2

Run from the repository's root, by a Python that has the `native` extra. Only this file knows of a compiler: `pip
install` and `python -m build` make the wheel without compiled modules.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import chain
from pathlib import Path
from typing import Any

sys.path.insert(0, os.curdir)

from tfconvert.schema.compiled_form import RECORD, state_of

LIST = Path("native/modules.txt")
PACKAGE = Path("tfconvert")
BUILD = Path("build/native")


def main() -> int:
    """Does what the command line says; returns the exit status."""
    (command,) = sys.argv[1:] or ("inplace",)
    missing = what_is_missing()
    if missing:
        print(f"nothing is compiled: {missing}; tfconvert works without, but slower", file=sys.stderr)
        return 2
    if command == "possible":
        return 0
    if command == "wheel":
        run_setup(["bdist_wheel", "--dist-dir", "dist", "--bdist-dir", f"{BUILD}/wheel"], compile_modules())
        return 0
    remove()
    # Until all is built, what there is doesn't count.
    (PACKAGE / RECORD).write_text('{".": []}', encoding="utf-8")
    before = {str(Path(path).relative_to(PACKAGE)): state_of(Path(path)) for path in listed()}
    run_setup(["build_ext", "--inplace"], compile_modules())
    (PACKAGE / RECORD).write_text(json.dumps(before, indent=0), encoding="utf-8")
    return 0


def listed() -> list[str]:
    """Returns the paths of the modules to compile, in the list's order."""
    lines = [line.partition("#")[0].strip() for line in LIST.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line]


def remove() -> None:
    """Removes the extension modules beside the sources, and the record of them."""
    (PACKAGE / RECORD).unlink(missing_ok=True)
    for suffix in EXTENSION_SUFFIXES:
        for path in PACKAGE.rglob(f"*{suffix}"):
            path.unlink()


def what_is_missing() -> str:
    """Returns what this machine lacks to compile; empty if it lacks nothing."""
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists():
        return f"there is no {header} (install Python's headers: python3-dev, python3-devel)"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0] if os.name == "posix" else ""
    if compiler and subprocess.run(["sh", "-c", f"command -v {compiler}"], capture_output=True, check=False).returncode:
        return f"there is no C compiler {compiler!r}"
    return ""


def compile_modules() -> Sequence[Any]:
    """Translates the modules to C; returns setuptools' descriptions of the extension modules."""
    from mypyc.build import mypycify

    options = ["--config-file", "pyproject.toml", "--no-warn-unused-ignores", "--cache-dir", f"{BUILD}/mypy"]
    extensions = mypycify(
        [*options, *listed()],
        opt_level=os.environ.get("OPT", "2"),
        debug_level="0",
        multi_file=True,
        target_dir=str(BUILD / "c"),
        group_name="tfconvert.native",
    )
    for extension in extensions:
        # The headers of a library inside a package are in a folder, which the files that are outside of it don't say.
        extension.include_dirs.append(str(BUILD / "c" / PACKAGE))
    return extensions


def run_setup(arguments: Sequence[str], extensions: Sequence[Any]) -> None:
    """Runs a command of setuptools on the project with extension modules."""
    from setuptools import setup
    from setuptools.command.build_ext import build_ext

    class BuildExtensions(build_ext):
        """Compiles the files of an extension module side by side."""

        def build_extensions(self) -> None:
            compile_one = self.compiler.compile

            headers = max(path.stat().st_mtime for path in BUILD.rglob("*.h"))

            def compile_new(source: str, **settings: Any) -> list[str]:
                # setuptools compiles all files of a module as soon as one has changed.
                objects = self.compiler.object_filenames([source], output_dir=settings["output_dir"])
                made = Path(objects[0]).stat().st_mtime if Path(objects[0]).exists() else 0.0
                if made > max(headers, Path(source).stat().st_mtime):
                    return objects
                return compile_one([source], **settings)

            def compile_all(sources: Sequence[str], **settings: Any) -> list[str]:
                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    return list(chain.from_iterable(pool.map(lambda source: compile_new(source, **settings), sources)))

            self.compiler.compile = compile_all
            super().build_extensions()

    setup(
        script_args=["--quiet", "build", "--build-base", str(BUILD), *arguments],
        ext_modules=list(extensions),
        cmdclass={"build_ext": BuildExtensions},
    )


if __name__ == "__main__":
    sys.exit(main())
