"""Writes docs/errors_compared.md: our errors about the corpus beside those of the official converter, by criteria.

    python -m tests.errors.compare_official

The official's message is the text of the exception that it raises, without the traceback and what it logs.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow

from tests.errors.corpus import CORPUS, GOLDENS
from tests.support.flat_settings import converted
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.settings.selection import Selection
from tfconvert.settings.setting import settings_of
from tfconvert.settings.targets import LiteRT

PAGE = Path(__file__).parents[2] / "docs" / "errors_compared.md"

# The most bytes of a message that a reader takes in at a glance.
_SHORT = 500

_NEXT = re.compile(
    r"hint: |TF Select|[Ff]lex|custom op|did you mean|[Pp]lease |Valid key|available|[Ss]pecify|[Tt]ry |must be|"
    r"should be|has to be|consider "
)
# Lines with an advice that is the same for every op.
_GENERAL = re.compile(r"^.*(TF Select|[Ff]lex|custom op|if the model can't do without it).*$", re.MULTILINE)

# What a message advises that can be tried: settings of ours, and the official converter's operators of TensorFlow.
_SETTING = re.compile(r"(\w+)=(True|\[[^\]]*\])")
_FLEX = re.compile(r"TF Select|[Ff]lex")

# What has to be named where no op is to blame.
_WHAT: Mapping[str, str] = {
    "no-such-path": "nowhere",
    "empty-folder": "saved_model.pb",
    "truncated-model": "saved_model.pb",
    "no-shard": "data-00000-of-00001",
    "no-index": "variables.index",
    "short-shard": "data-00000-of-00001",
    "short-index": "variables.index",
    "wrong-signature": "predict",
    "wrong-tags": "train",
    "text-as-graph": "graph.pb",
    "damaged-keras-file": "model.keras",
    "wrong-output": "score",
    "unfed": "Placeholder",
    "missing-node": "logits",
    "unknown-op": "MyCompanysSoftmax",
    "cycle": "cycle|depends on itself|itself|loop",
    "not-frozen": "weights|VarHandleOp",
    "queue": "QueueDequeueV2",
    "checkpoint-only": "ckpt-1",
    "directory-of-versions": "MODEL/1|model/1",
    "git-lfs-pointer": "LFS",
    "onnx-model": "ONNX",
    "pytorch-model": "PyTorch",
    "tensorflow-js": "TensorFlow.js",
    "unpacked-keras-file": "Keras file",
    "web-page": "web page|HTML",
}
_WITHOUT_RIVAL = {"damaged-mlir", "unknown-ending", "wrong-shape", "wrong-input-shape-name"}


class Rated(NamedTuple):
    """One message, rated.

    Attributes:
        text: The message; empty if the model is converted.
        what: Whether it names what is to blame: the op, or the file, node or name.
        where: Whether it names the node, or `None` without a node.
        line: Whether it names the line of source; `None` if the model doesn't hold it.
        types: Whether it tells the types of the op's operands; `None` if no op is to blame.
        step: Whether it tells a next step.
        own: Whether it tells one that is about this op or file, rather than the same for all.
        works: Whether the model converts as it advises; `None` if no op is to blame.
        short: Whether it is short.
    """

    text: str
    what: bool = False
    where: bool | None = None
    line: bool | None = None
    types: bool | None = None
    step: bool = False
    own: bool = False
    works: bool | None = None
    short: bool = False

    @property
    def stars(self) -> float:
        """From 1 to 5, by the share of criteria that hold."""
        answers = [answer for answer in self[1:] if answer is not None]
        return 1 + 4 * sum(answers) / len(answers)


def rate(name: str, text: str, problem: ConversionError, works: bool) -> Rated:
    """Rates a message by what our error, which has everything in fields, says about the model."""
    first = problem.diagnostics[0]
    what = _WHAT.get(name) or re.escape(first.op.removeprefix("tf."))
    source = first.location.rpartition("/")[2].partition(",")[0]
    file, _, number = source.rpartition(":")
    return Rated(
        text,
        re.search(what, text) is not None,
        first.node in text if first.node and first.op else None,
        re.search(rf"{re.escape(file)}\"?:{number}\b", text) is not None if file else None,
        "tensor<" in text if first.signature else None,
        _NEXT.search(text) is not None,
        _NEXT.search(_GENERAL.sub("", text)) is not None,
        works if first.signature else None,
        len(text.encode()) <= _SHORT,
    )


def _ours_works(text: str, model: Path, options: Mapping[str, Any]) -> bool:
    """Returns whether a model converts with one of the settings that our message names."""
    for name, value in _SETTING.findall(text):
        if name not in settings_of(Selection).keys() | settings_of(LiteRT).keys():
            continue
        try:
            converted(model, **options, **{name: ast.literal_eval(value)})
        except ConversionError:
            continue
        return True
    return False


def official(tf: ModuleType, model: Path, options: Mapping[str, Any], *, flex: bool = False) -> str:
    """Returns the official converter's message about a model; empty if it converts the model.

    Args:
        tf: TensorFlow.
        model: The model.
        options: Our settings for it.
        flex: Whether operators of TensorFlow are allowed.
    """
    try:
        _convert(tf, model, options, flex=flex)
    except Exception as problem:  # noqa: BLE001  # whatever it raises is its message
        return f"{type(problem).__name__}: {problem}"
    return ""


def _convert(tf: ModuleType, model: Path, options: Mapping[str, Any], *, flex: bool) -> None:
    converter = _converter(tf, model, options)
    if flex:
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    converter.convert()


def _converter(tf: ModuleType, model: Path, options: Mapping[str, Any]) -> Any:
    if model.suffix == ".keras":
        return tf.lite.TFLiteConverter.from_keras_model(tf.keras.models.load_model(model))
    if model.suffix == ".pb":
        graph = tf.compat.v1.lite.TFLiteConverter
        shapes = {"x": [2, 4]} if b"Placeholder" in model.read_bytes() else {}
        inputs, outputs = list(options.get("inputs", shapes)), list(options.get("outputs", ["scores"]))
        return graph.from_frozen_graph(str(model), inputs, outputs, {name: [2, 4] for name in inputs})
    keys, tags = options.get("signatures"), options.get("tags")
    make = tf.lite.TFLiteConverter.from_saved_model
    return make(str(model), signature_keys=keys, tags=set(tags) if tags else None)


def compared(tf: ModuleType, names: Iterable[str]) -> Iterable[tuple[str, Rated, Rated]]:
    """Yields each model of the corpus with our message and the official's, rated."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            model, options = CORPUS[name](tf, Path(folder) / "model")
            try:
                converted(model, **options)
            except ConversionError as problem:
                text = (GOLDENS / f"{name}.txt").read_text("utf-8")
                theirs = official(tf, model, options)
                works = _FLEX.search(theirs) is not None and not official(tf, model, options, flex=True)
                ours = rate(name, text, problem, _ours_works(text, model, options))
                yield name, ours, rate(name, theirs, problem, works) if theirs else Rated("")
        print(name, file=sys.stderr)


_HEAD = """# Error messages, side by side

This page compares error messages for {models} models that can't be converted, typical cases from the corpus in
`tests/errors`. In each pair, the left value is for tfconvert's message as the command prints it (stored in
`tests/errors/goldens`), the right value for the text of the exception that `tf.lite.TFLiteConverter` of TensorFlow
{version} raises, without its traceback and its log. `python -m tests.errors.compare_official` writes this page.

The criteria, checked by a search in the text, and **works** by trying:

- **what**: names the op that causes the error, or the file or name that is wrong;
- **where**: names the node;
- **line**: names the right line of the user's source, if the model records it;
- **types**: gives the types of the op's operands;
- **step**: suggests a next step;
- **own**: suggests one that is specific to this op or file;
- **works**: the model converts with a setting that the text names, such as operators of TensorFlow's runtime (TF
  Select), which make an app some megabytes larger;
- **short**: at most {short} bytes.

The rating ranges from 1 (none of the applicable criteria) to 5 (all of them); a dash means not applicable. The criteria
are ours, and a search can't judge whether advice is good: read the texts.

| model | bytes | what | where | line | types | step | own | works | short | rating |
|---|---:|---|---|---|---|---|---|---|---|---:|
"""


def page(rows: Sequence[tuple[str, Rated, Rated]], version: str) -> str:
    """Returns the page."""
    head = _HEAD.format(models=len(rows), version=version, short=_SHORT)
    both = [(ours, theirs) for _, ours, theirs in rows if theirs.text]
    means = " and ".join(f"{sum(each.stars for each in side) / len(both):.1f}" for side in zip(*both, strict=True))
    sizes = " and ".join(str(_median([len(each.text.encode()) for each in side])) for side in zip(*both, strict=True))
    converts = [name for name, _, theirs in rows if not theirs.text]
    tail = (
        f"\nFor the {len(both)} models that neither converts, the mean rating is {means}, the median size {sizes} "
        "bytes.\n"
        f"The official converter converts: {', '.join(converts) or 'none of them'}.\n"
    )
    return head + "".join(_row(*row) for row in rows) + tail


def _row(name: str, ours: Rated, theirs: Rated) -> str:
    if not theirs.text:
        return f"| {name} | {len(ours.text.encode())} / - | | | | | | | | | {ours.stars:.1f} / converts |\n"
    marks = [f"{_mark(mine)} {_mark(other)}" for mine, other in zip(ours[1:], theirs[1:], strict=True)]
    sizes = f"{len(ours.text.encode())} / {len(theirs.text.encode())}"
    return f"| {name} | {sizes} | {' | '.join(marks)} | {ours.stars:.1f} / {theirs.stars:.1f} |\n"


def _mark(answer: object) -> str:
    return "-" if answer is None else "yes" if answer else "no"


def _median(numbers: Sequence[int]) -> int:
    return sorted(numbers)[len(numbers) // 2]


def main(names: Sequence[str], write: Callable[[str], object]) -> None:
    """Compares and writes the page."""
    tensorflow.get_logger().setLevel("ERROR")
    chosen = names or [name for name in CORPUS if name not in _WITHOUT_RIVAL]
    write(page(list(compared(tensorflow, chosen)), tensorflow.__version__))


if __name__ == "__main__":
    main(sys.argv[1:], PAGE.write_text if len(sys.argv) == 1 else print)
