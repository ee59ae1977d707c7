"""MediaPipe's text tasks run our files by their metadata: tokenizers, labels, calibrated scores."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tfconvert

pytest.importorskip("mediapipe")

LENGTH = 16
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "film", "a", "the", "##s"]
WORDS = ["<PAD>", "<START>", "<UNKNOWN>", "good", "bad", "film"]
BERT = {"type": "bert", "vocabulary": TOKENS}
REGEX = {"type": "regex", "delimiters": r"[^\w']+", "vocabulary": [f"{word} {at}" for at, word in enumerate(WORDS)]}

# In a process of its own: MediaPipe brings a runtime of its own.
CLASSIFY = """
import sys
from mediapipe.tasks.python import text
with text.TextClassifier.create_from_model_path(sys.argv[1]) as classifier:
    for line in sys.argv[2:]:
        found = classifier.classify(line).classifications[0].categories
        print("SCORES", {each.category_name: each.score for each in found})
"""


def _model(tf: ModuleType, words: list[str], names: list[str]) -> Any:
    """Returns a model that adds up how good the words of a text are; the mask, if there is one, counts."""
    values = np.zeros([len(words)], np.float32)
    values[words.index("good")], values[words.index("bad")] = 3, -3
    module = tf.Module()

    def score(*inputs: Any) -> Any:
        goodness = tf.gather(values, inputs[0])
        if len(inputs) == 3:
            goodness *= tf.cast(inputs[1] * (1 - inputs[2]), tf.float32)
        total = tf.reduce_sum(goodness, 1)
        return {"probability": tf.sigmoid(tf.stack([-total, total], -1))}

    specs = [tf.TensorSpec([None, LENGTH], tf.int32, name) for name in names]
    module.score = tf.function(score, input_signature=specs)
    return module


def _scores(model: Any, path: Path, metadata: dict[str, Any], *lines: str) -> list[dict[str, float]]:
    path.write_bytes(bytes(tfconvert.convert(model, target=tfconvert.LiteRT(metadata=metadata))))
    done = subprocess.run(
        [sys.executable, "-c", CLASSIFY, str(path), *lines], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = [line.removeprefix("SCORES ") for line in done.stdout.splitlines() if line.startswith("SCORES ")]
    return [json.loads(each.replace("'", '"')) for each in found]


@pytest.mark.parametrize(
    ("tokenizer", "words", "names"),
    [
        (BERT, TOKENS, ["input_word_ids", "input_mask", "input_type_ids"]),
        (BERT, TOKENS, ["input_ids", "attention_mask", "token_type_ids"]),
        (REGEX, WORDS, ["text"]),
    ],
)
def test_texts_are_classified(
    tf: ModuleType, tmp_path: Path, tokenizer: Any, words: list[str], names: list[str]
) -> None:
    metadata = {"tokenizer": tokenizer, "outputs": {"probability": {"labels": ["negative", "positive"]}}}
    lines = {"a good film": 3, "the bad film, bad": -6, "nothing known": 0}
    found = _scores(_model(tf, words, names), tmp_path / "text.tflite", metadata, *lines)
    for scores, total in zip(found, lines.values(), strict=True):
        expected = {"positive": 1 / (1 + math.exp(-total)), "negative": 1 / (1 + math.exp(total))}
        assert scores == pytest.approx(expected, abs=1e-5)


def test_scores_are_calibrated(tf: ModuleType, tmp_path: Path) -> None:
    output = {
        "labels": ["negative", "positive"],
        "calibration": ["0.9,2,-1,0.2", ""],
        "transformation": "log",
        "default_score": 0.125,
    }
    model = _model(tf, WORDS, ["text"])
    metadata = {"tokenizer": REGEX, "outputs": {"probability": output}}
    good, bad = _scores(model, tmp_path / "text.tflite", metadata, "good", "bad")
    assert good == pytest.approx({"negative": 0.125, "positive": 0.125})
    score = math.log(1 / (1 + math.exp(-3)))
    assert bad == pytest.approx({"negative": 0.9 / (1 + math.exp(-(2 * score - 1))), "positive": 0.125}, abs=1e-5)
    metadata = {"tokenizer": REGEX, "outputs": {"probability": {**output, "threshold": 0.2}}}
    (only,) = _scores(model, tmp_path / "text.tflite", metadata, "bad")
    assert only.keys() == {"negative"}


def test_the_page_is_true(tf: ModuleType, tmp_path: Path, root: Path) -> None:
    text = (root / "docs" / "metadata.md").read_text("utf-8").split("## Text\n")[1]
    metadata, program = (re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)[1] for language in ("json", "python"))  # type: ignore[index]
    (tmp_path / "vocab.txt").write_text("".join(f"{each}\n" for each in TOKENS), "utf-8")
    (tmp_path / "labels.txt").write_text("negative\npositive\n", "utf-8")
    (tmp_path / "metadata.json").write_text(metadata, "utf-8")
    model = _model(tf, TOKENS, ["input_word_ids", "input_mask", "input_type_ids"])
    target = tfconvert.LiteRT(metadata=tmp_path / "metadata.json")
    tfconvert.convert(model, target=target).save(tmp_path / "sentiment.tflite")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines() if line][-2:] == ["positive", "negative"]
