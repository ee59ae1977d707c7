"""Generates the modules in `generated/` and their stubs from the `.proto` files here.

Run as `python -m tfconvert.schema.tensorflow.generate [--check]`. The compiler is an older `grpcio-tools` on purpose:
its output runs on every protobuf from 5 on, where newer ones tie the generated code to their own version. Since
that version requires an older protobuf than we run on, it goes to a separate directory and not into the environment.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

COMPILER = "grpcio-tools==1.62.3"

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SCHEMAS = ("tensorflow", "xla")
GENERATED = tuple(f"{name}_pb2.{ending}" for name in SCHEMAS for ending in ("py", "pyi"))


def _compiler() -> Path:
    """Returns the directory that holds the compiler, installed there if it is not yet."""
    folder = ROOT / "build" / "schema" / COMPILER
    if not (folder / "grpc_tools").is_dir():
        install = ["pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--target", str(folder), COMPILER]
        subprocess.run([sys.executable, "-m", *install], check=True)
    return folder


def generate(target: Path) -> dict[str, bytes]:
    """Compiles the schemas.

    Args:
        target: An empty directory for the compiler to write to.

    Returns:
        The generated files' contents by name.
    """
    compiler = _compiler()
    package = HERE.relative_to(ROOT) / "generated"
    options = [
        # The path before the equals sign is the name in protobuf's pool of files, which must be unique.
        f"--proto_path={package}={HERE}",
        f"--proto_path={compiler / 'grpc_tools' / '_proto'}",
        f"--python_out={target}",
        f"--pyi_out={target}",
        *(str(package / f"{name}.proto") for name in SCHEMAS),
    ]
    run = f"import sys; sys.path.insert(0, {str(compiler)!r}); from grpc_tools import _protoc_compiler as compiler; "
    run += f"sys.exit(compiler.run_main([b'protoc', *map(str.encode, {options!r})]))"
    subprocess.run([sys.executable, "-c", run], check=True)
    return {name: (target / package / name).read_bytes() for name in GENERATED}


def main() -> int:
    """Writes the generated files; with `--check` only reports whether they are current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    check: bool = parser.parse_args().check
    with tempfile.TemporaryDirectory() as scratch:
        files = generate(Path(scratch))
    stale = [name for name, content in files.items() if _read(HERE / "generated" / name) != content]
    for name in stale:
        if check:
            print(f"{name} is out of date; run `make schema`", file=sys.stderr)
        else:
            (HERE / "generated").mkdir(exist_ok=True)
            (HERE / "generated" / name).write_bytes(files[name])
    return int(check and bool(stale))


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


if __name__ == "__main__":
    sys.exit(main())
