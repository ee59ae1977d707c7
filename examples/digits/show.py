"""Shows the converted example's predictions for held-out digits.

Run as `python examples/digits/show.py out/digits.tflite`. Needs numpy and LiteRT only (the `verify` extra); with
`--picture FILE.png`, which draws the same answers, matplotlib too.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter

HERE = Path(__file__).parent
SHADES = " ░▒▓█"
SHOWN = 6
GRID = (4, 9)


@dataclass(frozen=True, slots=True)
class Answers:
    """The held-out digits with the model's predictions.

    Attributes:
        pixels: Grey values, 0 to 16, as `[digit, row, column]`.
        labels: The class of each digit.
        probabilities: The model's ten probabilities for each.
    """

    pixels: np.ndarray
    labels: np.ndarray
    probabilities: np.ndarray

    @property
    def guesses(self) -> np.ndarray:
        """The most probable digit of each image."""
        guesses: np.ndarray = np.argmax(self.probabilities, axis=1)
        return guesses

    @property
    def accuracy(self) -> float:
        """The share of correct guesses."""
        return float(np.mean(self.guesses == self.labels))

    def mixed(self, count: int) -> list[int]:
        """Returns indices to show: first every wrong answer, at most a third, then right ones in order."""
        right = self.guesses == self.labels
        wrong = np.flatnonzero(~right)[: count // 3]
        return [*wrong.tolist(), *np.flatnonzero(right)[: count - len(wrong)].tolist()]


def ask(model: Path) -> Answers:
    """Runs the model on all held-out digits at once."""
    with np.load(HERE / "held_out.npz") as held_out:
        pixels, labels = held_out["pixels"], held_out["labels"]
    interpreter = Interpreter(model_path=str(model), num_threads=1)
    (image,) = interpreter.get_input_details()
    (digit,) = interpreter.get_output_details()
    interpreter.resize_tensor_input(image["index"], [len(pixels), 8, 8, 1])
    interpreter.allocate_tensors()
    interpreter.set_tensor(image["index"], (pixels / 16).astype(np.float32)[..., np.newaxis])
    interpreter.invoke()
    return Answers(pixels, labels, interpreter.get_tensor(digit["index"]))


def as_text(answers: Answers) -> str:
    """Returns a few digits as grey-scale text, side by side, with the answer below each."""
    chosen = answers.mixed(SHOWN)
    lines = []
    for row in range(8):
        shades = [answers.pixels[index, row].astype(int) * (len(SHADES) - 1) // 16 for index in chosen]
        lines.append("   ".join("".join(SHADES[shade] * 2 for shade in shade_row) for shade_row in shades))
    captions = []
    for index in chosen:
        guess, label = int(answers.guesses[index]), int(answers.labels[index])
        caption = f"{guess} ({answers.probabilities[index, guess]:.0%})"
        captions.append((caption if guess == label else f"{caption}, is {label}").ljust(16))
    lines.append("   ".join(captions).rstrip())
    right = round(answers.accuracy * len(answers.labels))
    lines.append(f"\n{right} of {len(answers.labels)} held-out digits right: {answers.accuracy:.1%}")
    return "\n".join(lines)


def draw(answers: Answers, picture: Path) -> None:
    """Draws a grid of digits with the probability of each answer as a bar; wrong ones are red."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows, columns = GRID
    figure, grid = pyplot.subplots(rows, columns, figsize=(columns * 1.05, rows * 1.4), dpi=110)
    for axis, index in zip(grid.flat, answers.mixed(rows * columns), strict=True):
        guess, label = int(answers.guesses[index]), int(answers.labels[index])
        color = "#1a7f5a" if guess == label else "#c0392b"
        certainty = float(answers.probabilities[index, guess])
        axis.imshow(answers.pixels[index], cmap="gray_r", vmin=0, vmax=16)
        axis.plot([-0.5, -0.5 + 8 * certainty], [8.2, 8.2], color=color, linewidth=4, clip_on=False)
        title = f"{guess}  {certainty:.0%}" if guess == label else f"{guess}  {certainty:.0%}  (is {label})"
        axis.set_title(title, color=color, fontsize=9, pad=4)
        axis.set_xticks([])
        axis.set_yticks([])
        for spine in axis.spines.values():
            spine.set_color("#cccccc")
    figure.suptitle(
        f"digits.tflite on {len(answers.labels)} held-out digits: {answers.accuracy:.1%} right", fontsize=11
    )
    figure.tight_layout()
    figure.savefig(picture)
    pyplot.close(figure)


def main() -> None:
    """Prints the answers, and draws them if requested."""
    parser = argparse.ArgumentParser(description="Shows the predictions of a converted digits model.")
    parser.add_argument("model", type=Path, help="the .tflite file")
    parser.add_argument("--picture", type=Path, metavar="FILE.png", help="draw the answers too")
    arguments = parser.parse_args()
    answers = ask(arguments.model)
    print(as_text(answers))
    if arguments.picture:
        draw(answers, arguments.picture)


if __name__ == "__main__":
    main()
