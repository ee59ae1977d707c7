"""Commands and code in docs/ work as pasted; the site has all pages, and its links resolve."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tfconvert
from benchmarks.page import PARTS, sections
from docs.site_pages import PAGES, adapted, loaded_from_network
from tfconvert.converter.pipeline.pass_registry import pass_names
from tfconvert.converter.validation.runtimes_check import swiftshader

# Pages whose code is run here; others have tests of their own beside what they are about.
RUN = (
    "../README.md",
    "build_systems.md",
    "custom_ops.md",
    "devices/android.md",
    "devices/browser.md",
    "devices/ethos_u.md",
    "devices/index.md",
    "devices/ios.md",
    "devices/microcontrollers.md",
    "devices/raspberry_pi.md",
    "index.md",
    "interface.md",
    "models.md",
    "quantization.md",
    "quick_start.md",
    "tflite_converter.md",
    "tuning.md",
)

# Lines of Python that run only where a package is installed.
NEEDS = {
    "import ai_edge_quantizer": "ai_edge_quantizer",
    "from ai_edge_quantizer": "ai_edge_quantizer",
    "import jax": "jax",
}

_BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A block of code of a page.

    Attributes:
        language: `sh` is run by a shell; of a `console` the commands are run, and print what follows them; `python` is
            run in one namespace for the page, and prints what a block `output` behind it has.
        title: The file that the block is, if any.
        text: The code.
    """

    language: str
    title: str
    text: str


def blocks(page: str) -> list[Block]:
    """Returns a page's blocks that have a language."""
    return [Block(*each) for each in _BLOCK.findall(page)]


@pytest.fixture(scope="module")
def project(tf: ModuleType, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder as the pages take for granted: with a model, samples, labels, and the command."""
    folder = tmp_path_factory.mktemp("project")
    random = np.random.default_rng(0)
    filters = tf.constant(random.normal(size=(3, 3, 3, 4)), tf.float32)
    weights = [tf.constant(random.normal(size=(4, count)), tf.float32) for count in (10, 4)]

    @tf.function(input_signature=[tf.TensorSpec([None, 224, 224, 3], name="image")])  # type: ignore[untyped-decorator]
    def detect(image: Any) -> Any:
        features = tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(image, filters, 8, "SAME")), [1, 2])
        return tuple(tf.matmul(features, each) for each in weights)

    module = tf.Module()
    module.detect = detect
    tf.saved_model.save(module, str(folder / "saved_model"))
    images = random.random((4, 224, 224, 3), np.float32)
    np.save(folder / "images.npy", images)
    np.savez(folder / "samples.npz", image=images)
    with tf.Graph().as_default() as graph:
        image = tf.compat.v1.placeholder(tf.float32, [None, 224, 224, 3], name="image")
        tf.reduce_mean(image, [1, 2], name="scores")
    (folder / "frozen.pb").write_bytes(graph.as_graph_def().SerializeToString())
    for name in ("before", "after"):
        tfconvert.convert(folder / "saved_model").save(folder / f"{name}.tflite")
    (folder / "examples").symlink_to(root / "examples")
    (folder / "bin").mkdir()
    command = folder / "bin" / "tfconvert"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tfconvert "$@"\n')
    command.chmod(0o755)
    return folder


@pytest.fixture
def here(project: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Goes to a copy of the project."""
    shutil.copytree(project, tmp_path, symlinks=True, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(
        "PATH", os.pathsep.join((f"{tmp_path}/bin", f"{Path(sys.executable).parent}", os.environ["PATH"]))
    )
    monkeypatch.setenv("PYTHONPATH", str(root))
    return tmp_path


def _shell(text: str) -> str:
    """Runs commands, each of which must succeed, and returns all that they print."""
    command = ["bash", "-ec", text]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}"
    return done.stdout


def _console(text: str) -> None:
    for each in text.split("$ ")[1:]:
        command, _, expected = each.partition("\n")
        assert expected in _shell(command)


def _python(text: str, scope: dict[str, object], name: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        exec(compile(text, name, "exec"), scope)  # noqa: S102  # our own page
    return stream.getvalue()


def _absent_tools(commands: str) -> list[str]:
    """Returns the build systems that commands call, and the compiler that these call, if they are not installed."""
    tools = re.findall(r"^(make|cmake|ninja)\b", commands, re.MULTILINE)
    return [tool for tool in (*tools, *(["c++"] if tools else [])) if shutil.which(tool) is None]


def _can_run(block: Block) -> bool:
    if block.language == "sh":
        return not _absent_tools(block.text) and (swiftshader() != "" or "--verify gpu" not in block.text)
    return all(importlib.util.find_spec(package) for words, package in NEEDS.items() if words in block.text)


@pytest.mark.parametrize("name", RUN)
def test_code_runs_as_pasted(name: str, root: Path, here: Path) -> None:
    scope: dict[str, object] = {}
    printed, ran = "", 0
    for block in blocks((root / "docs" / name).read_text("utf-8")):
        if block.title:
            file = here / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, "utf-8")
        elif block.language == "output":
            assert printed == block.text
        elif block.language in ("sh", "console", "python") and _can_run(block):
            ran += 1
            if block.language == "sh":
                _shell(block.text)
            elif block.language == "console":
                _console(block.text)
            else:
                printed = _python(block.text, scope, f"docs/{name}")
    assert ran


@pytest.mark.parametrize(
    ("files", "build", "made"),
    [
        (("main.cc", "Makefile"), "make app", "app"),
        (("main.cc", "CMakeLists.txt"), "cmake -S . -B build -G 'Unix Makefiles'\nmake -C build", "build/app"),
        (("main.cc", "CMakeLists.txt"), "cmake -S . -B build -G Ninja\nninja -C build", "build/app"),
        (("build.ninja",), "ninja", "model.tflite"),
    ],
)
def test_builds_convert_again_when_the_model_has_changed(
    files: tuple[str, ...], build: str, made: str, root: Path, here: Path
) -> None:
    if missing := _absent_tools(build):
        pytest.skip(f"not installed: {', '.join(missing)}")
    page = {block.title: block.text for block in blocks((root / "docs" / "build_systems.md").read_text("utf-8"))}
    for name in files:
        (here / name).write_text(page[name], "utf-8")
    times = []
    for change in (False, False, True):
        if change:
            later = (here / made).stat().st_mtime + 2
            os.utime(here / "saved_model" / "saved_model.pb", (later, later))
        _shell(build)
        times.append((here / made).stat().st_mtime_ns)
    assert times[0] == times[1] < times[2]


def _site(root: Path) -> dict[str, str]:
    """Returns the texts of the site's pages by their names."""
    docs = root / "docs"
    pages = [
        path
        for pattern in ("*.md", "contributing/*.md", "devices/*.md", "errors/*.md")
        for path in docs.glob(pattern)
        if path.stem != "pypi"
    ]
    files = {path.relative_to(docs).as_posix(): adapted(path.read_text("utf-8")) for path in pages}
    return {**files, **{name: make() for name, make in PAGES.items()}}


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}


def test_links_lead_somewhere(root: Path) -> None:
    site = _site(root)
    wrong = []
    for name, text in site.items():
        for target, anchor in _LINK.findall(_CODE.sub("", text)):
            if "://" not in target:
                goal = posixpath.normpath(posixpath.join(posixpath.dirname(name), target)) if target else name
                found = goal in site or (root / "docs" / goal).is_file()
                if not found or (anchor and anchor not in _anchors(site[goal])):
                    wrong.append(f"{name}: {target}#{anchor}")
    assert not wrong


def test_every_page_can_be_reached(root: Path) -> None:
    menu = (root / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    assert sorted(re.findall(r"([\w/]+\.md)\n", menu)) == sorted(_site(root))


def test_the_pages_of_passes_have_all_of_them_with_examples() -> None:
    text = "".join(make() for name, make in PAGES.items() if name.startswith("passes/"))
    told = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |^# |\Z)", text, re.DOTALL | re.MULTILINE))
    assert sorted(told) == sorted(pass_names())
    assert [name for name, section in told.items() if not re.search(r"```mlir\n(func\.func|module)", section)] == []
    assert all(f"[{name}](" in PAGES["passes.md"]() for name in told)


def test_the_reference_has_every_public_name() -> None:
    text = PAGES["reference.md"]()
    for name in tfconvert.__all__:
        value = getattr(tfconvert, name)
        if inspect.ismodule(value):
            assert f"## {value.__name__}\n" in text
        elif not name.startswith("_"):
            assert re.search(rf"^::: tfconvert\.\S+\.{name}$|`{name}`", text, re.MULTILINE)
    paths = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert len(paths) == len(set(paths)) > 30


def test_the_readme_has_the_figures_of_the_page(root: Path) -> None:
    page = sections((root / "docs" / "benchmarks.md").read_text("utf-8"))
    readme = " ".join((root / "README.md").read_text("utf-8").split())
    means = re.search(r"\| geometric mean \|.*?\*\*([\d.]+)x.*?\*\*([\d.]+)x", page["Conversion"])
    assert means is not None
    faster, lighter = (round(float(each)) for each in means.groups())
    assert f"{faster} times faster than `tf.lite.TFLiteConverter`, with {lighter} times less memory" in readme
    assert set(page) == {part.title for part in PARTS}


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<script defer src="https://example.org/x.js">', ["https://example.org/x.js"]),
        ('<img alt="" src=//example.org/x.png>', ["//example.org/x.png"]),
        ('<link rel="stylesheet" href="https://example.org/x.css">', ["https://example.org/x.css"]),
        ('<a href="https://example.org">', []),
        ('<script src="assets/x.js"></script><link href="assets/x.css">', []),
    ],
)
def test_network_resources_of_a_page_are_found(html: str, expected: list[str]) -> None:
    assert loaded_from_network(html) == expected
