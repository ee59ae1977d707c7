"""Tests of the layers: imports point down, are absolute, at the top of files, and acyclic.

`LAYERS` is the order of the packages, `SUBPACKAGES` the order inside the large ones.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.support.sources import PACKAGES, SourceFile

# The layers from the lowest up; those of one row do not import each other. `api` and `conversion` are modules. Modules
# without a layer (`__init__`, `__main__`, the public modules) are above all layers.
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
SUBPACKAGES = {
    "tfconvert.converter": (
        ("ir", "process"),
        ("composites", "control_flow", "executor", "functionalize", "resource_ops", "rewrite"),
        ("cutting", "from_stablehlo", "shapes"),
        ("lookup_tables", "pipeline", "recurrence", "tensor_lists"),
        ("passes",),
        ("targets",),
        ("validation",),
        ("pipelines",),
    ),
    "tfconvert.converter.targets": (("output_form", "target"), ("litert", "stablehlo"), ("iree",)),
    "tfconvert.importers": (
        ("containment", "pinned_shapes", "renaming", "temporary_model"),
        ("foreign_files", "jax_functions", "tf_originals"),
        ("archive", "checkpoint", "mlir", "tflite"),
        ("stablehlo",),
        ("graph",),
        ("graph_def", "saved_model"),
        ("keras_on_jax", "meta_graph", "traced_model"),
        ("tf_functions",),
        ("keras", "model_files"),
        ("open_model",),
        ("source",),
    ),
}
LAYER_OF = {
    package: {name: layer for layer, names in enumerate(layers) for name in names}
    for package, layers in SUBPACKAGES.items()
}
# Modules whose late imports keep start-up fast: `tfconvert --help` does not need numpy. Those of `keras` depend on the
# Keras that wrote a file. Whoever has a model in memory has already imported Keras and TensorFlow. The late imports of
# `tfconvert` and `__main__` keep `import tfconvert` itself free of imports.
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
    "tfconvert.cli.keras_files",
    "tfconvert.cli.explain",
    "tfconvert.cli.extras",
    "tfconvert.cli.failure",
    "tfconvert.cli.main",
    "tfconvert.cli.ops",
    "tfconvert.cli.bench",
    "tfconvert.cli.diff",
    "tfconvert.cli.opt",
    "tfconvert.cli.output_options",
    "tfconvert.cli.serve",
    "tfconvert.cli.verify",
    "tfconvert.cli.view",
    "tfconvert.conversion",
    "tfconvert.converter.process.guard",
    "tfconvert.converter.from_stablehlo.control_flow",
    "tfconvert.converter.pipeline.pass_result",
    "tfconvert.converter.rewrite.lazy_table",
    "tfconvert.converter.targets.litert.tflite_file",
    "tfconvert.ops.registry",
    "tfconvert.ops.relations",
    "tfconvert.converter.targets.litert.accelerator_verdicts",
    "tfconvert.converter.targets.litert.make_rewrite_index",
    "tfconvert.converter.targets.litert.optimize.fold_constants",
    "tfconvert.converter.targets.litert.passes.calibrate",
    "tfconvert.converter.targets.litert.passes.check_gpu",
    "tfconvert.converter.targets.litert.passes.fast_forms",
    "tfconvert.converter.targets.litert.quantize.channels",
    "tfconvert.converter.targets.litert.passes.fit_kernels",
    "tfconvert.converter.targets.litert.passes.fuse_recurrent_loops",
    "tfconvert.converter.targets.litert.passes.fuse_unrolled_layers",
    "tfconvert.converter.targets.litert.passes.legalize",
    "tfconvert.converter.targets.litert.passes.order_operators",
    "tfconvert.converter.pipeline.pass_registry",
    "tfconvert.report.report",
    "tfconvert.converter.rewrite.op_info",
    "tfconvert.converter.targets.iree.runtime_process",
    "tfconvert.converter.targets.stablehlo.artifact_child",
    "tfconvert.converter.validation.runtimes_check",
    "tfconvert.converter.validation.tensorflow_process",
    "tfconvert.converter.pipelines",
    "tfconvert.schema.versions",
    "tfconvert.importers.graph.signature_order",
    "tfconvert.importers.jax_functions",
    "tfconvert.importers.keras",
    "tfconvert.importers.tflite.buffers",
    "tfconvert.importers.model_files",
    "tfconvert.importers.open_model",
    "tfconvert.importers.source",
    "tfconvert.schema.dialects.tf",
    "tfconvert.schema.dialects.types",
    "tfconvert.settings.data",
    "tfconvert.tools.programs",
    "tfconvert",
    "tfconvert.__main__",
}
# Only Keras' files need TensorFlow (whoever has a model or function in memory has imported it already), the process
# that runs models in it, and the script that lists its ops.
TENSORFLOW = {"tensorflow", "keras", "tf_keras"}
MAY_IMPORT_TENSORFLOW = {
    "tfconvert.converter.validation.tensorflow_process",
    "tfconvert.importers.keras",
    "tfconvert.schema.tensorflow.make_op_defs",
}


LEVELS = {name: level for level, names in enumerate(LAYERS) for name in names} | {"tfconvert": len(LAYERS)}


def _layer(module: str) -> str:
    """Returns the name in `LAYERS` of a module's layer, or `tfconvert` above all layers."""
    name = module.removeprefix("tfconvert.").partition(".")[0]
    name = "compat" if name == "experimental" else name  # names of the same official package
    return name if name in LEVELS else "tfconvert"


def _part(module: str, package: str) -> str:
    """Returns the part of a package that contains a module; empty for modules outside the package."""
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


def _cycle(edges: Mapping[str, set[str]]) -> list[str]:
    """Returns a cycle among the edges, with its first module repeated at its end; empty without a cycle."""
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


@pytest.mark.parametrize("package", SUBPACKAGES)
def test_every_part_has_a_layer(package: str, source_files: tuple[SourceFile, ...]) -> None:
    assert {_part(file.module, package) for file in source_files} - {""} <= set(LAYER_OF[package])


@pytest.mark.parametrize("package", SUBPACKAGES)
def test_imports_between_subpackages_point_down(package: str, source_files: tuple[SourceFile, ...]) -> None:
    layers = LAYER_OF[package]
    wrong = [
        f"{module} imports {target}"
        for module, targets in _edges(source_files, with_typing=True).items()
        for target in targets
        if (own := _part(module, package)) and (other := _part(target, package)) and own != other
        if layers[other] >= layers[own]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_imports_through_the_links(source_files: tuple[SourceFile, ...], root: Path) -> None:
    """The links at the top would load every module a second time under another name."""
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


def test_imports_by_name_only_where_late_imports_are_allowed(source_files: tuple[SourceFile, ...]) -> None:
    """`importlib.import_module` would bypass every other test here."""
    wrong = [
        f"{file.path}:{node.lineno}"
        for file in source_files
        for node, called in file.calls
        if called in {"__import__", "import_module", "importlib.import_module"}
        and file.module not in LATE_IMPORTS_ALLOWED
    ]
    assert not wrong, "\n".join(wrong)


def test_only_plugins_run_user_code(source_files: tuple[SourceFile, ...]) -> None:
    """Only a Python file that the user names in `patterns` is run."""
    importers = {file.module for file in source_files for each in file.imports if "runpy" in each.targets(set())}
    assert importers == {"tfconvert.converter.pipeline.plugins"}


def test_no_cycles(source_files: tuple[SourceFile, ...]) -> None:
    assert not _cycle(_edges(source_files, with_typing=False))


def test_no_cycles_between_packages_even_for_type_checkers(source_files: tuple[SourceFile, ...]) -> None:
    """Within a package a type may refer back; between packages it would be a hidden dependency."""
    edges: dict[str, set[str]] = {}
    for module, targets in _edges(source_files, with_typing=True).items():
        edges.setdefault(_layer(module), set()).update(map(_layer, targets))
    assert not _cycle(edges)


def test_cycles_are_found() -> None:
    assert _cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert _cycle({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}) == []


def test_only_some_modules_import_tensorflow(source_files: tuple[SourceFile, ...]) -> None:
    wrong = [
        f"{file.path}:{each.statement.lineno}"
        for file in source_files
        if file.module not in MAY_IMPORT_TENSORFLOW
        for each in file.imports
        for target in each.targets(set())
        if target.partition(".")[0] in TENSORFLOW
    ]
    assert not wrong, "\n".join(wrong)
