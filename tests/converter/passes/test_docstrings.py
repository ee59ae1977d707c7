"""The examples in the passes' docstrings are what the passes do."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert
from tests.converter.pass_texts import check_results
from tfconvert.converter import passes
from tfconvert.converter.pipeline import pass_registry
from tfconvert.converter.pipeline.runner import run_stages
from tfconvert.converter.pipeline.stage import Instrument, Stage
from tfconvert.converter.targets.iree import passes as iree_passes
from tfconvert.converter.targets.litert import passes as litert_passes
from tfconvert.converter.targets.litert.stages import STAGES
from tfconvert.converter.targets.stablehlo import passes as stablehlo_passes
from tfconvert.ops.verification import verify
from tfconvert.schema.diagnostics import ConversionError, Diagnostic
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Quantize
from tfconvert.settings.targets import LiteRT

FILES = [
    module.name
    for package in (passes, litert_passes, stablehlo_passes, iree_passes)
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
]

NOT_BY_ITSELF = {
    "keep-nan": "only models that were StableHLO are looked through, which the example isn't",
    "share-shapes": "only models with control flow are looked through, which the example has none of",
}
"""Passes that the pipeline leaves out for their own examples, with the reason."""


_INTEGERS = Options(target=LiteRT(quantize=Quantize("int8", io="int8")))

WITH = {
    "sparse-weights": Options(target=LiteRT(sparse_weights=True)),
    "outline-composites": Options(target=LiteRT(composites=["odml"])),
    "unroll-loops": Options(target=LiteRT(recurrent="unrolled")),
    "fit-accelerators": Options(target=LiteRT(accelerator=["gpu"])),
    **dict.fromkeys(
        ("fold-dequantize", "sink-constants", "quantize-weights"), Options(target=LiteRT(quantize=Quantize("dynamic")))
    ),
    **dict.fromkeys(("prepare-quantize", "calibrate", "equalize", "quantize", "quantize-io"), _INTEGERS),
}
"""The settings with which passes run that don't by default."""


ARTIFACT = bytes.fromhex(
    "4d4cef5201537461626c65484c4f5f76302e392e30000117050103010305030707090b0337210701190b13330b0b0b0b0b1313131303"
    "090b0b0b0b0307131707027d050d17010101030b0719091b0b190d1d0f1f050f05110513051505171701030317010323170103791701"
    "03bd030123031d191d1b29030905110301030109043f0501100307030105031111050703050b03011305061503010301070417030306"
    "0301050100ff1d030b1f13151d15051511110f0b116275696c74696e0076686c6f006d6f64756c650066756e635f76310074616e685f"
    "76310072657475726e5f7631002d006172675f61747472730066756e6374696f6e5f74797065007265735f61747472730073796d5f6e"
    "616d650073796d5f7669736962696c697479006d61696e0000"
)
"""A program that computes tanh, for the docstring of `expand-xla-call-modules`."""


def _pass(file: str) -> tuple[ModuleType, Any]:
    """Returns a file's module and the pass in it, with the default options."""
    module = importlib.import_module(file)
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__ == module.__name__ and hasattr(value, "apply")
    ]
    (only,) = (value for value in found if hasattr(value, "name"))
    return module, only()


def _examples(docstring: str) -> list[tuple[str, str]]:
    """Returns the texts before and after, of each example of a docstring."""
    blocks = re.findall(r"^(Before|After):\n\n((?:    .*\n|\n)+)", docstring + "\n", re.MULTILINE)
    texts = [(kind, textwrap.dedent(text)) for kind, text in blocks]
    assert [kind for kind, _ in texts] == ["Before", "After"] * (len(texts) // 2)
    return [(before, after) for (_, before), (_, after) in zip(texts[::2], texts[1::2], strict=True)]


def _refused(docstring: str) -> list[str]:
    """Returns the texts that a docstring shows as errors."""
    blocks = re.findall(r"^Refused:\n\n((?:    .*\n|\n)+)", docstring + "\n", re.MULTILINE)
    return [textwrap.dedent(text) for text in blocks]


def _noted(docstring: str) -> list[tuple[str, str]]:
    """Returns the codes of the notes that a docstring shows, and the texts that they are about."""
    blocks = re.findall(r"^Noted with `(.*)`.*:\n\n((?:    .*\n|\n)+)", docstring + "\n", re.MULTILINE)
    return [(code, textwrap.dedent(text)) for code, text in blocks]


def _weight(found: re.Match[str]) -> str:
    """Returns the text of a weight of two dimensions."""
    count = int(found[1]) * int(found[2])
    return f'dense<"0x{np.arange(count, dtype=np.float32).tobytes().hex()}"> : tensor<{found[1]}x{found[2]}xf32>'


def _parsed(text: str, *, is_right: bool = True) -> ModuleOp:
    """Returns the module of a text; weights that are too long for a docstring are put in."""
    text = re.sub(r"dense_resource<__elided__> : tensor<(\d+)x(\d+)xf32>", _weight, text)
    text = text.replace("ML...", "".join([f"\\{byte:02X}" for byte in ARTIFACT]))
    module = IRParser(text).parse_module()
    verify(module, with_relations=is_right)
    return module


def _anonymous(module: ModuleOp) -> str:
    """Returns a module's text with its values numbered instead of named, and attributes in alphabetical order."""
    for op in module.walk():
        op.properties = dict(sorted(op.properties.items()))
        for value in (*op.results, *(argument for region in op.regions for argument in _arguments(region))):
            value.name_hint = None
    return str(module)


def _arguments(region: Any) -> list[Any]:
    return [argument for block in region.blocks for argument in block.args]


@pytest.mark.parametrize("file", FILES)
def test_what_a_docstring_shows_is_what_the_pass_does(file: str) -> None:
    module, rewrite = _pass(file)
    assert module.__doc__ is not None
    examples, refused, noted = _examples(module.__doc__), _refused(module.__doc__), _noted(module.__doc__)
    assert examples or refused or noted, "a pass shows what it does"
    for code, text in noted:
        original = _parsed(text)
        assert [note.code for note in rewrite.apply(original).notes] == [code]
        assert _anonymous(original) == _anonymous(_parsed(text))
    for text in refused:
        with pytest.raises(ConversionError) as caught:
            rewrite.apply(_parsed(text, is_right=False))
        assert f"`{caught.value.code}`" in module.__doc__
    for before, after in examples:
        rewritten = _parsed(before)
        assert _anonymous(rewritten) != _anonymous(_parsed(after)), "an example shows a change"
        original = rewritten.clone()
        rewrite.apply(rewritten)
        verify(rewritten)
        check_results(original, rewritten, rewrite.name)
        assert _anonymous(rewritten) == _anonymous(_parsed(after))


class _Effects(Instrument):
    """Notes which passes are run, and which of them change the module.

    Attributes:
        ran: The passes that were run.
        changed: Those that changed it.
    """

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.changed: set[str] = set()
        self._before = ""

    def before(self, stage: Stage, module: ModuleOp) -> None:
        self.ran.append(stage.run)
        self._before = str(module)

    def after(self, stage: Stage, module: ModuleOp) -> Sequence[Diagnostic]:
        if str(module) != self._before:
            self.changed.add(stage.run)
        return ()


@pytest.mark.parametrize("name", [name for name in pass_registry.pass_names() if name in {s.run for s in STAGES}])
def test_what_a_docstring_shows_is_done_by_the_whole_pipeline(name: str) -> None:
    """No stage is left out, and none before takes the work away; what comes behind may refuse the example."""
    rewrite = pass_registry.pass_class(name)
    for before, _ in _examples(importlib.import_module(rewrite.__module__).__doc__ or ""):
        module, effects = _parsed(before), _Effects()
        try:
            options = WITH.get(name, Options())
            stages = [done.name for done in run_stages(module, STAGES, options, [effects])]
        except ConversionError:
            stages = effects.ran[:-1]
        assert (name in stages) is (name not in NOT_BY_ITSELF)
        assert (name in effects.changed) is (name not in NOT_BY_ITSELF)


@pytest.mark.parametrize("activation", ["Tanh", "Relu", "Relu6"])
def test_unrolled_layers_are_fused_whatever_their_activation(activation: str, tmp_path: Path) -> None:
    file, _ = _pass("tfconvert.converter.targets.litert.passes.fuse_unrolled_layers")
    ((before, _),) = _examples(file.__doc__ or "")
    path = tmp_path / "layer.mlir"
    path.write_text(before.replace("tf.Tanh", f"tf.{activation}"))
    report = tfconvert.convert(path).report
    assert report.operators["UNIDIRECTIONAL_SEQUENCE_RNN"] == 1
    assert not report.operators["FULLY_CONNECTED"]


@pytest.mark.parametrize("file", FILES)
def test_what_a_pass_returns_depends_on_the_module_only(file: str) -> None:
    module, rewrite = _pass(file)
    assert not hasattr(rewrite, "__dict__")
    options = inspect.signature(type(rewrite)).parameters
    assert all(isinstance(hash(getattr(rewrite, option)), int) for option in options)
    for before, _ in _examples(module.__doc__ or ""):
        results = [rewrite.apply(_parsed(before)) for _ in range(3)]
        assert results[0] == results[1] == results[2]
        assert 0 not in results[0].counts.values()


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_named_as_its_pass_which_the_table_has(file: str) -> None:
    module, rewrite = _pass(file)
    assert pass_registry.pass_class(rewrite.name) is type(rewrite)
    assert rewrite.name == file.rpartition(".")[2].replace("_", "-")
    assert (module.__doc__ or "").startswith(f"Pass `{rewrite.name}`: ")
