"""The layers hold: imports point down, are absolute, at the top of files, and acyclic.

`LAYERS` is the order of the packages, `ROOMS` that inside the large ones.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.support.sources import PACKAGES, SourceFile

# The layers from the lowest up; those of one row stand side by side and do not import each other. `api` and
# `conversion` are modules. What is not named here (`__init__`, `__main__`, the public modules) is above all.
LAYERS = (
    ("schema",),
    ("settings",),
    ("ops",),
    ("importers", "exporters"),
    ("converter",),
    ("report",),
    ("conversion",),
    ("tools",),
    ("api",),
    ("compat", "batch"),
    ("service",),
    ("client",),
    ("cli",),
)
# The layers inside a package, from the lowest up.
ROOMS = {
    "tfconvert.converter": (
        ("ir", "process"),
        ("composites", "control_flow", "executor", "functionalize", "resource_ops", "rewrite"),
        ("cutting", "shapes"),
        ("lookup_tables", "pipeline", "recurrence", "tensor_lists"),
        ("passes",),
        ("targets",),
        ("validation",),
        ("pipelines",),
    ),
    "tfconvert.converter.targets": (("output_form", "target"), ("litert", "stablehlo"), ("iree",)),
    "tfconvert.importers": (
        ("containment", "temporary_model"),
        ("checkpoint", "mlir", "tflite"),
        ("graph",),
        ("graph_def", "saved_model"),
        ("keras", "meta_graph"),
        ("model_files",),
        ("open_model",),
        ("source",),
    ),
}
FLOORS = {
    package: {room: floor for floor, rooms in enumerate(floors) for room in rooms} for package, floors in ROOMS.items()
}
# Where a late import keeps start-up lean: `tfconvert --help` does not need numpy. Those of `keras` depend on which
# Keras wrote a file; models in memory bring theirs, and TensorFlow, along. The two of the front door are how `import
# tfconvert` itself stays free of imports.
LATE_IMPORTS_ALLOWED = {
    "tfconvert.api",
    "tfconvert.batch.cache_key",
    "tfconvert.batch.models_file",
    "tfconvert.batch.places",
    "tfconvert.batch.preload",
    "tfconvert.batch.result_cache",
    "tfconvert.batch.engines",
    "tfconvert.batch.zygote",
    "tfconvert.client.client",
    "tfconvert.cli.batch",
    "tfconvert.cli.build",
    "tfconvert.cli.convert_job",
    "tfconvert.cli.completion",
    "tfconvert.cli.inspect",
    "tfconvert.cli.explain",
    "tfconvert.cli.failure",
    "tfconvert.cli.main",
    "tfconvert.cli.ops",
    "tfconvert.cli.bench",
    "tfconvert.cli.diff",
    "tfconvert.cli.opt",
    "tfconvert.cli.serve",
    "tfconvert.cli.verbs",
    "tfconvert.cli.verify",
    "tfconvert.conversion",
    "tfconvert.converter.process.guard",
    "tfconvert.converter.rewrite.lazy_table",
    "tfconvert.ops.registry",
    "tfconvert.converter.targets.litert.optimize.fold_constants",
    "tfconvert.converter.targets.litert.passes.calibrate",
    "tfconvert.converter.targets.litert.passes.fit_kernels",
    "tfconvert.converter.targets.litert.passes.legalize",
    "tfconvert.converter.pipeline.pass_registry",
    "tfconvert.report.report",
    "tfconvert.converter.rewrite.op_info",
    "tfconvert.converter.targets.iree.runtime_process",
    "tfconvert.converter.targets.stablehlo.artifact_child",
    "tfconvert.converter.pipelines",
    "tfconvert.schema.versions",
    "tfconvert.importers.graph.signature_order",
    "tfconvert.importers.keras",
    "tfconvert.importers.model_files",
    "tfconvert.importers.open_model",
    "tfconvert.schema.dialects.types",
    "tfconvert.settings.data",
    "tfconvert",
    "tfconvert.__main__",
}
# Only Keras' files need TensorFlow (whoever has a model or function in memory has imported it already), and the script
# that lists its ops.
TENSORFLOW = {"tensorflow", "keras", "tf_keras"}
MAY_IMPORT_TENSORFLOW = {"tfconvert.importers.keras", "tfconvert.schema.tensorflow.make_op_defs"}


LEVELS = {name: level for level, names in enumerate(LAYERS) for name in names} | {"tfconvert": len(LAYERS)}


def _layer(module: str) -> str:
    """Returns which of `LAYERS` a module is in, or `tfconvert` for what is above them."""
    name = module.removeprefix("tfconvert.").partition(".")[0]
    name = "compat" if name == "experimental" else name  # names of the same official package
    return name if name in LEVELS else "tfconvert"


def _room(module: str, package: str) -> str:
    """Returns the part of a package that a module is in; empty if it is in none."""
    return module.removeprefix(f"{package}.").partition(".")[0] if module.startswith(f"{package}.") else ""


@cache
def _edges(files: tuple[SourceFile, ...], *, with_typing: bool) -> Mapping[str, set[str]]:
    """Returns, for each of our modules, which of our modules it imports."""
    modules = {file.module for file in files}
    edges: dict[str, set[str]] = {module: set() for module in modules}
    for file in files:
        for each in file.imports:
            if with_typing or not each.is_for_types:
                edges[file.module] |= each.targets(modules) & modules
    return edges


def _circle(edges: Mapping[str, set[str]]) -> list[str]:
    """Returns a circle among the edges, its first module repeated at its end; empty if there is none."""
    done: set[str] = set()
    for start in sorted(edges):
        path: list[str] = []
        pending = [(start, 0)]
        while pending:
            module, depth = pending.pop()
            if depth < len(path):
                done.update(path[depth:])
                del path[depth:]
            if module in path:
                return [*path[path.index(module) :], module]
            if module not in done:
                path.append(module)
                pending.extend((target, depth + 1) for target in sorted(edges[module] - {module}))
        done.update(path)
    return []


def test_there_is_something_to_check(source_files: tuple[SourceFile, ...]) -> None:
    assert {_layer(file.module) for file in source_files} == set(LEVELS)
    assert {name for names in LAYERS for name in names} - {"api", "conversion"} == set(PACKAGES)


def test_imports_point_down(source_files: tuple[SourceFile, ...]) -> None:
    wrong = []
    modules = {file.module for file in source_files}
    for file in source_files:
        layer = _layer(file.module)
        for each in file.imports:
            for target in each.targets(modules):
                other = _layer(target)
                if target.partition(".")[0] == "tfconvert" and layer != other and LEVELS[other] >= LEVELS[layer]:
                    wrong.append(f"{file.path}:{each.statement.lineno}: {layer} imports {other}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", ROOMS)
def test_every_room_has_its_floor(package: str, source_files: tuple[SourceFile, ...]) -> None:
    assert {_room(file.module, package) for file in source_files} - {""} <= set(FLOORS[package])


@pytest.mark.parametrize("package", ROOMS)
def test_imports_between_rooms_go_down(package: str, source_files: tuple[SourceFile, ...]) -> None:
    floors = FLOORS[package]
    wrong = [
        f"{module} imports {target}"
        for module, targets in _edges(source_files, with_typing=True).items()
        for target in targets
        if (room := _room(module, package)) and (other := _room(target, package)) and room != other
        if floors[other] >= floors[room]
    ]
    assert not wrong, "\n".join(wrong)


def test_nobody_imports_through_the_links(source_files: tuple[SourceFile, ...], root: Path) -> None:
    """The links at the top would give every module a second name, and a second life."""
    folders = ("tests", "benchmarks", "examples")
    suspect = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(PACKAGES)})\b", re.MULTILINE)
    paths = (path for folder in folders for path in (root / folder).rglob("*.py"))
    others = (SourceFile(path) for path in paths if suspect.search(path.read_text("utf-8")))
    wrong = [
        f"{file.path}:{each.statement.lineno}"
        for file in (*source_files, *others)
        for each in file.imports
        for target in each.targets(set())
        if target.partition(".")[0] in PACKAGES
    ]
    assert not wrong, "\n".join(wrong)


def test_imports_are_absolute(source_files: tuple[SourceFile, ...]) -> None:
    wrong = [
        f"{file.path}:{each.statement.lineno}"
        for file in source_files
        for each in file.imports
        if isinstance(each.statement, ast.ImportFrom) and each.statement.level
    ]
    assert not wrong, "\n".join(wrong)


def test_late_imports_only_where_start_up_needs_them(source_files: tuple[SourceFile, ...]) -> None:
    wrong = [
        f"{file.path}:{each.statement.lineno}: {ast.unparse(each.statement)}"
        for file in source_files
        for each in file.imports
        if each.is_late and not each.is_for_types and file.module not in LATE_IMPORTS_ALLOWED
    ]
    assert not wrong, "\n".join(wrong)


def test_imports_by_name_only_at_the_front_door(source_files: tuple[SourceFile, ...]) -> None:
    """`importlib.import_module` would get round every other test here."""
    wrong = [
        f"{file.path}:{node.lineno}"
        for file in source_files
        for node, called in file.calls
        if called in {"__import__", "import_module", "importlib.import_module"}
        and file.module not in LATE_IMPORTS_ALLOWED
    ]
    assert not wrong, "\n".join(wrong)


def test_only_one_place_runs_code_of_others(source_files: tuple[SourceFile, ...]) -> None:
    """A user's Python file is run where `patterns` names it, and nothing else is run anywhere."""
    importers = {file.module for file in source_files for each in file.imports if "runpy" in each.targets(set())}
    assert importers == {"tfconvert.converter.pipeline.plugins"}


def test_no_circles(source_files: tuple[SourceFile, ...]) -> None:
    assert not _circle(_edges(source_files, with_typing=False))


def test_no_circles_even_for_type_checkers_between_packages(source_files: tuple[SourceFile, ...]) -> None:
    """Within a package a type may refer back; between packages it would be a hidden dependency."""
    edges: dict[str, set[str]] = {}
    for module, targets in _edges(source_files, with_typing=True).items():
        edges.setdefault(_layer(module), set()).update(map(_layer, targets))
    assert not _circle(edges)


def test_circles_are_found() -> None:
    assert _circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert _circle({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}) == []


def test_tensorflow_stays_outside(source_files: tuple[SourceFile, ...]) -> None:
    wrong = [
        f"{file.path}:{each.statement.lineno}"
        for file in source_files
        if file.module not in MAY_IMPORT_TENSORFLOW
        for each in file.imports
        for target in each.targets(set())
        if target.partition(".")[0] in TENSORFLOW
    ]
    assert not wrong, "\n".join(wrong)
