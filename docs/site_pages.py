"""What the site of the documentation has beside the files of this folder: pages that are made from the code.

`site_hooks.py` hands them to MkDocs. They aren't committed, so that they can't be out of date.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import tfconvert
from tfconvert.converter.pipeline.pass_options import options_of, summary_of
from tfconvert.converter.pipeline.registry import pass_class, pass_names
from tfconvert.converter.pipeline.stages import names_of
from tfconvert.converter.pipelines import PIPELINES

ROOT = Path(__file__).parent.parent

_FIGURES = "<!-- benchmark -->"
_EXAMPLE = re.compile(r"^((?: {4}.*\n|\n)*(?: {4}.*\n))", re.MULTILINE)
_LOADS = re.compile(r"<(?:[a-z]+ [^>]*\bsrc|link [^>]*\bhref)=[\"']?((?:https?:)?//[^\s\"'>]+)")
_FROM_ROOT = re.compile(r"\]\(docs/([^)]+)\)")

_PASSES = """# Passes

A conversion is a sequence of passes over the IR. The docstring of its file describes each; the examples before and
after are what it does: the tests run them. `tfconvert opt MODEL -p NAME,...` runs passes of your choice, and
`tfconvert opt --list-passes` lists them.

"""
_REFERENCE = """# Python

Everything that `import tfconvert` provides. All of it is loaded when it is first used.

"""
_REPORT = """## Reports

What `Model.report` is.

::: tfconvert.report.report.Report
"""
_KINDS = (type, FunctionType, type(cache(len)))
"""What its docstring describes: classes and functions."""


def passes_page() -> str:
    """Returns the page of passes: what each does, its options, and its examples."""
    pipelines = [f"| `{name}` | {', '.join(map(_link, names_of(stages)))} |\n" for name, stages in PIPELINES.items()]
    parts = [_PASSES, "| pipeline | passes |\n| --- | --- |\n", *pipelines]
    for name in pass_names():
        kind = pass_class(name)
        options = [f"- `{each.name}`: {each.kind}, `{each.default}` by default\n" for each in options_of(kind)]
        parts += [f"\n## {name}\n\n", summary_of(kind), "\n\n", *options, "\n", _told(kind)]
    return "".join(parts)


def _link(name: str) -> str:
    return f"[{name}](#{name})"


def _told(kind: type) -> str:
    """Returns the docstring of a pass's file without its first line, examples as blocks of MLIR."""
    text = inspect.getdoc(inspect.getmodule(kind)) or ""
    return _EXAMPLE.sub(lambda match: f"\n```mlir\n{inspect.cleandoc(match[1])}\n```\n", f"{_body(text)}\n")


def _body(text: str) -> str:
    first, _, rest = text.partition("\n\n")
    return rest if first.startswith("Pass `") else text


def reference_page() -> str:
    """Returns the page of the public names, for mkdocstrings to fill in."""
    return _REFERENCE + "\n".join([*_sections("tfconvert", tfconvert, set()), _REPORT])


def _sections(name: str, module: ModuleType, told: set[str]) -> Iterator[str]:
    """Yields the section of a module: its classes and functions, and then the sections of the modules in it.

    Args:
        name: The module's name.
        module: The module.
        told: Where the classes and functions are defined that are on the page already; grows.
    """
    found = {each: getattr(module, each) for each in sorted(module.__all__) if not each.startswith("_")}
    ours = [(isinstance(value, type), each) for each, value in found.items() if _is_ours(value)]
    homes = {each: _home(found[each]) for _, each in sorted(ours)}  # Functions first.
    submodules = {each: value for each, value in found.items() if _is_module(value, f"{name}.{each}")}
    new = [home for home in dict.fromkeys(homes.values()) if home not in told]  # A class may have two names.
    others = [f"`{each}`" for each in found if homes.get(each) not in new and each not in submodules]
    told.update(new)
    yield f"## {name}\n"
    if module is not tfconvert:
        yield f"{inspect.getdoc(module)}\n"
    if others:
        yield f"Also there: {', '.join(others)}.\n"
    yield from (f"::: {home}\n" for home in new)
    for each, value in submodules.items():
        yield from _sections(f"{name}.{each}", value, told)


def _is_module(value: object, name: str) -> bool:
    return inspect.ismodule(value) and value.__name__ == name


def _home(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _is_ours(value: object) -> bool:
    return (
        isinstance(value, _KINDS)
        and value.__module__.startswith("tfconvert.")
        and not _home(value).rpartition(".")[2].startswith("_")
    )


def _from_root(name: str) -> Callable[[], str]:
    """Returns what makes a page of a file that lies in the repository's root."""
    return lambda: _FROM_ROOT.sub(r"](\1)", (ROOT / name).read_text("utf-8"))


PAGES: Mapping[str, Callable[[], str]] = {
    "passes.md": passes_page,
    "reference.md": reference_page,
    "contributing.md": _from_root("CONTRIBUTING.md"),
    "changelog.md": _from_root("CHANGELOG.md"),
}
"""The pages by name, and what makes each."""


def figures() -> str:
    """Returns the figures of the benchmark, as the README has them."""
    readme = (ROOT / "README.md").read_text("utf-8")
    section = readme.partition("<!-- benchmark:begin")[2].partition("-->\n")[2].partition("<!-- benchmark:end -->")[0]
    return _FROM_ROOT.sub(r"](\1)", section)


def adapted(text: str) -> str:
    """Returns a page of this folder as the site has it: with figures, and links to other files' pages."""
    return text.replace(_FIGURES, figures()).replace("](../CONTRIBUTING.md)", "](contributing.md)")


def loaded_from_network(html: str) -> list[str]:
    """Returns the addresses from which a page would load scripts, styles or pictures; what people follow may be."""
    return _LOADS.findall(html)
