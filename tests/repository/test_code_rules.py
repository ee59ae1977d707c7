"""Project rules that no linter checks: sizes, docstrings, narrow error handling, and portable text."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import tfconvert
from tests.support.sources import SourceFile, committed_files

MAX_FILE_LINES = 700
MAX_FUNCTION_LINES = 60
UNSLOTTED_BASES = {"Exception", "Enum", "IntEnum", "StrEnum", "Protocol", "TypedDict", "NamedTuple"}
# Paths of one particular machine, joined from pieces so that this file does not match itself.
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:" + "|".join(("work", "tmp", "home", "root", "Users")) + r")/\w")


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Returns the number of lines of a function without its docstring."""
    assert node.end_lineno is not None
    first = node.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0
    return node.end_lineno - node.lineno + 1 - docstring


def test_files_are_short(source_files: Sequence[SourceFile], root: Path) -> None:
    sizes = {file.path: file.text.count("\n") for file in source_files}
    for name in ("tests", "benchmarks", "examples"):
        sizes |= {path: path.read_text("utf-8").count("\n") for path in (root / name).rglob("*.py")}
    assert not {str(path): lines for path, lines in sizes.items() if lines > MAX_FILE_LINES}


def test_functions_are_short(source_files: Sequence[SourceFile]) -> None:
    long = {
        f"{file.path}:{function.lineno} {function.name}": _length(function)
        for file in source_files
        for function in _functions(file.tree)
        if _length(function) > MAX_FUNCTION_LINES
    }
    assert not long


def test_modules_have_docstrings(source_files: Sequence[SourceFile]) -> None:
    assert not [str(file.path) for file in source_files if not ast.get_docstring(file.tree)]


def test_every_package_has_an_init_file(root: Path) -> None:
    """A directory without `__init__.py` is a package too, but without a docstring."""
    directories = {path.parent for path in (root / "tfconvert").rglob("*.py") if path.parent.name != "generated"}
    assert not [str(path.relative_to(root)) for path in directories if not (path / "__init__.py").is_file()]


def _undocumented(module: ModuleType) -> Iterator[str]:
    """Yields the public names of a module, and the methods of its classes, that have no docstring."""
    for name in module.__all__:
        thing = getattr(module, name)
        if isinstance(thing, ModuleType):
            yield from _undocumented(thing) if "__all__" in vars(thing) else ()
        elif isinstance(thing, type | FunctionType) and thing.__module__.startswith("tfconvert"):
            methods = vars(thing).items() if isinstance(thing, type) else ()
            public = [(f"{name}.{key}", each) for key, each in methods if not key.startswith("_")]
            for label, each in [(name, thing), *public]:
                if isinstance(each, type | FunctionType | property) and not inspect.getdoc(each):
                    yield f"{module.__name__}: {label}"


def test_the_public_interface_is_documented() -> None:
    assert not list(_undocumented(tfconvert))


def test_no_error_is_swallowed(source_files: Sequence[SourceFile]) -> None:
    wrong = []
    for file in source_files:
        for node in file.nodes:
            if isinstance(node, ast.ExceptHandler):
                caught = "" if node.type is None else ast.unparse(node.type)
                blind = not caught or re.search(r"\b(Base)?Exception\b", caught)
                silent = all(isinstance(statement, ast.Pass) for statement in node.body)
                if blind or silent:
                    wrong.append(f"{file.path}:{node.lineno}: except {caught}")
    assert not wrong, "\n".join(wrong)


def test_dataclasses_have_slots(source_files: Sequence[SourceFile]) -> None:
    """Without slots every instance has a dictionary, and there are instances for every node of a graph."""
    wrong = []
    for file in source_files:
        for node in file.nodes:
            if isinstance(node, ast.ClassDef) and not UNSLOTTED_BASES & {ast.unparse(base) for base in node.bases}:
                decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
                if any(text.partition("(")[0] == "dataclass" and "slots=True" not in text for text in decorators):
                    wrong.append(f"{file.path}:{node.lineno} {node.name}")
    assert not wrong, "\n".join(wrong)


def test_files_are_named_after_their_subject(source_files: Sequence[SourceFile]) -> None:
    """These names say nothing about the contents."""
    vague = {"utils", "util", "common", "helpers", "misc", "tools"}
    assert not [str(file.path) for file in source_files if file.path.stem in vague]


def test_text_travels(root: Path) -> None:
    """No file knows the machine on which it was written; binaries that TensorFlow wrote included."""
    files = committed_files(root)
    assert len(files) > 20
    wrong = []
    for path in files:
        for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), start=1):
            if MACHINE_PATHS.search(line):
                wrong.append(f"{path.relative_to(root)}:{number}: {line.strip()[:100]!r}")
    assert not wrong, "\n".join(wrong)


def test_text_points_to_nothing_that_readers_do_not_have(root: Path) -> None:
    """Sections of documents that are not in the repository can't be looked up."""
    section = re.compile(rb"\xc2\xa7\s*\d")
    assert not [str(path.relative_to(root)) for path in committed_files(root) if section.search(path.read_bytes())]


@pytest.mark.parametrize(
    ("line", "expected"),
    [("see {}/main/x", True), ('"{}/x"', True), ("https://example.org{}/x", False), ("a{}/x", False)],
)
def test_machine_paths_are_found(line: str, expected: bool) -> None:
    assert bool(MACHINE_PATHS.search(line.format("/" + "work"))) is expected


def test_every_top_level_folder_has_its_place(root: Path) -> None:
    """Only these names belong in the repository's root."""
    expected = {"tfconvert", "tests", "benchmarks", "deploy", "examples", "docs", "findings", ".ci"}
    folders = {path.relative_to(root).parts[0] for path in committed_files(root) if path.parent != root}
    assert folders <= expected


@pytest.mark.parametrize("package", ["converter", "exporters", "importers", "schema"])
def test_links_lead_to_the_packages(package: str, root: Path) -> None:
    assert (root / package).readlink() == Path("tfconvert") / package


def test_the_example_is_small(digits_model: Path) -> None:
    assert sum(path.stat().st_size for path in digits_model.rglob("*") if path.is_file()) < 300_000


def test_version_is_stated_once(root: Path) -> None:
    """The changelog's newest heading names the version that the package has."""
    with (root / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)
    assert "version" not in settings["project"]
    assert settings["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "tfconvert.__version__"}
    headings = re.findall(r"^## \[?([\w.]+)\]?", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert tfconvert.__version__ in headings[:2]


def test_targets_of_the_makefile_are_documented(root: Path) -> None:
    text = (root / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", text, re.MULTILINE))
    assert {"run", "test", "lint", "schema", "bench", "clean"} <= targets
    assert targets == set(re.findall(r"^([a-z]+):.*## \S", text, re.MULTILINE))
