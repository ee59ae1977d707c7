"""The pages of the documentation site that are generated from the code.

`site_hooks.py` passes them to MkDocs. They aren't committed, so they can't be out of date.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from markdown.extensions.toc import slugify

import tfconvert
from tfconvert.converter.pipeline.pass_options import options_of, summary_of
from tfconvert.converter.pipeline.pass_registry import pass_class, pass_names
from tfconvert.converter.pipeline.stages import names_of
from tfconvert.converter.pipelines import PIPELINES

ROOT = Path(__file__).parent.parent

_EXAMPLE = re.compile(r"^((?: {4}.*\n|\n)*(?: {4}.*\n))", re.MULTILINE)
_LOADS = re.compile(r"<(?:[a-z]+ [^>]*\bsrc|link [^>]*\bhref)=[\"']?((?:https?:)?//[^\s\"'>]+)")
_FROM_ROOT = re.compile(r"\]\(docs/([^)]+)\)")

_PASSES = """# Passes

A conversion is a sequence of passes over the IR. The descriptions come from docstrings. The tests run the examples,
which show the IR before and after a pass. `tfconvert opt MODEL -p NAME,...` runs passes of your choice, and `tfconvert
opt --list-passes` lists them.

"""
# The groups of passes with their titles.
_GROUPS = {"common": "Of every target", "litert": "LiteRT", "stablehlo": "StableHLO", "iree": "IREE"}
_REFERENCE = """# Python

Everything that `import tfconvert` provides. Each name is loaded at its first use.

"""
_REPORT = """## Reports

The class of `Model.report`.

::: tfconvert.report.report.Report
"""
_INDEX = """# Index

Commands' flags, settings, ops, error codes and passes, from A to Z. The search of this site finds words in the text.
"""
# The pages whose names are in the index: the first column of their tables, and the headings of error codes.
_INDEXED = (
    "command_line.md",
    "settings.md",
    "support.md",
    "support_stablehlo.md",
    "stablehlo_input.md",
    *sorted(f"errors/{each.name}" for each in (ROOT / "docs" / "errors").glob("*.md")),
)
_HEADING = re.compile(r"##? (.+)")
_NAMED = re.compile(r"\| `([^`]*\w[^`]*)` ")
# The types of objects that have a docstring of their own.
_KINDS = (type, FunctionType, type(cache(len)))


def passes_page() -> str:
    """Returns the page with the pipelines, and all passes with their pages."""
    pipelines = [f"| `{name}` | {', '.join(map(_link, names_of(stages)))} |\n" for name, stages in PIPELINES.items()]
    parts = [_PASSES, "| pipeline | passes |\n| --- | --- |\n", *pipelines]
    for group, title in _GROUPS.items():
        parts.append(f"\n## {title}\n\n")
        parts += [f"- {_link(name)}: {summary_of(pass_class(name))}\n" for name in _passes_of(group)]
    return "".join(parts)


def _group_page(group: str) -> Callable[[], str]:
    """Returns a function that makes the page of a group: the description, options and examples of each pass."""

    def make() -> str:
        parts = [f"# Passes: {_GROUPS[group]}\n"]
        for name in _passes_of(group):
            kind = pass_class(name)
            options = [f"- `{each.name}`: {each.kind}, `{each.default}` by default\n" for each in options_of(kind)]
            parts += [f"\n## {name}\n\n", summary_of(kind), "\n\n", *options, "\n", _told(kind)]
        return "".join(parts)

    return make


def _passes_of(group: str) -> list[str]:
    return [name for name in pass_names() if _group_of(name) == group]


def _group_of(name: str) -> str:
    """Returns the group of a pass: the target in whose package it is."""
    parts = pass_class(name).__module__.split(".")
    return parts[parts.index("targets") + 1] if "targets" in parts else "common"


def _link(name: str) -> str:
    return f"[{name}](passes/{_group_of(name)}.md#{name})"


def _told(kind: type) -> str:
    """Returns the docstring of a pass's file without its first line, with examples as MLIR blocks."""
    text = inspect.getdoc(inspect.getmodule(kind)) or ""
    return _EXAMPLE.sub(lambda match: f"\n```mlir\n{inspect.cleandoc(match[1])}\n```\n", f"{_body(text)}\n")


def _body(text: str) -> str:
    first, _, rest = text.partition("\n\n")
    return rest if first.startswith("Pass `") else text


def reference_page() -> str:
    """Returns the page of the public names, for mkdocstrings to fill in."""
    return _REFERENCE + "\n".join([*_sections("tfconvert", tfconvert, set()), _REPORT])


def _sections(name: str, module: ModuleType, told: set[str]) -> Iterator[str]:
    """Yields the section of a module: its classes and functions, followed by the sections of its submodules.

    Args:
        name: The module's name.
        module: The module.
        told: The full names of the classes and functions that are already on the page; extended.
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


def index_page() -> str:
    """Returns the page that lists all names from A to Z: commands, flags, settings, ops, error codes and passes."""
    found: dict[str, list[str]] = {}
    for page in _INDEXED:
        title, section = "", ""
        for line in (ROOT / "docs" / page).read_text("utf-8").splitlines():
            if match := _HEADING.match(line):
                title, section = title or match[1], match[1]
                if page.startswith("errors/") and section != title:
                    found.setdefault(section, []).append(_place(page, section, "error code"))
            elif match := _NAMED.match(line):
                label = section if page == "command_line.md" else title
                for name in match[1].split(", "):
                    found.setdefault(name.partition(" ")[0], []).append(_place(page, section, label))
    for name in pass_names():
        found.setdefault(name, []).append(f"[pass](passes/{_group_of(name)}.md#{name})")
    parts, letter = [_INDEX], ""
    for name in sorted(found, key=_sorted_by):
        if _sorted_by(name)[0][0] != letter:
            letter = _sorted_by(name)[0][0]
            parts.append(f"\n## {letter.upper()}\n\n")
        parts.append(f"- `{name}`: {', '.join(dict.fromkeys(found[name]))}\n")
    return "".join(parts)


def _place(page: str, section: str, label: str) -> str:
    return f"[{label}]({page}#{slugify(section, '-')})"


def _sorted_by(name: str) -> tuple[str, str]:
    return name.lstrip("-@_").lower(), name


def _from_root(name: str) -> Callable[[], str]:
    """Returns a function that makes a page from a file in the root of the repository."""
    return lambda: _FROM_ROOT.sub(r"](\1)", (ROOT / name).read_text("utf-8"))


# The functions that make the pages, by name.
PAGES: Mapping[str, Callable[[], str]] = {
    "index_of_names.md": index_page,
    "passes.md": passes_page,
    **{f"passes/{group}.md": _group_page(group) for group in _GROUPS},
    "reference.md": reference_page,
    "contributing.md": _from_root("CONTRIBUTING.md"),
    "changelog.md": _from_root("CHANGELOG.md"),
}


def adapted(text: str) -> str:
    """Adapts a page of this directory to the site: links to the pages of files that are not in it."""
    return text.replace("](../CONTRIBUTING.md)", "](contributing.md)")


def loaded_from_network(html: str) -> list[str]:
    """Returns the URLs from which a page would load scripts, styles or pictures. Links are not included."""
    return _LOADS.findall(html)
