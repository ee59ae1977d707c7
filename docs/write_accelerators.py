"""Writes docs/accelerators.md: what accelerators accept, from the tables that the probe makes.

python docs/write_accelerators.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from tfconvert.converter.targets.litert.accelerator_check import TITLES
from tfconvert.schema.tflite.accelerators.acceptance import (
    ACCELERATORS,
    CRASHES,
    LOAD_FAILS,
    OK,
    REFUSED,
    WRONG,
    AcceptanceRow,
    AcceptanceTable,
    table,
)
from tfconvert.schema.tflite.accelerators.forms import ANY, told

PAGE = Path(__file__).parent / "accelerators.md"

_HEAD = """# Accelerators

GPUs, NPUs and microcontrollers do not take every form of every operator. A GPU leaves what it does not support to the
CPU and takes only one connected part of the rest; worse, it computes some forms wrongly without a word. So each form
was tried on the real thing, and tfconvert looks them up before you ship a file:

```console
$ tfconvert saved_model/ -o model.tflite --batch 1 --accelerator gpu   # the report says what the GPU takes
$ tfconvert inspect model.tflite --accelerator gpu                     # the same for any file, without running it
$ tfconvert inspect model.tflite --accelerator gpu --json
$ tfconvert verify model.tflite --on gpu                               # runs it on the GPU, and compares with the CPU
$ tfconvert saved_model/ -o model.tflite --batch 1 --verify gpu        # the same after converting
```

The verdict is `whole on the GPU`, or how many operators run there, and a line for each other one: where it comes from,
why, and how many operators it alone keeps from the GPU. An operator that was not tried is said to be so. In Python:

```python
import tfconvert

model = tfconvert.convert(
    "saved_model/", batch=1, target=tfconvert.LiteRT(accelerator=["gpu", "micro"]), verify=tfconvert.Verify(on=["gpu"])
)
for acceptance in model.report.acceptances:
    print(acceptance.headline, acceptance.is_whole)
```

## What is rewritten

Every file gets the forms that accelerators take where that adds no operator and is no slower on the CPU: constants in
the rank that the GPU reads right, one GATHER for a rotation, RESIZE_NEAREST_NEIGHBOR for pixels that are repeated,
group normalizations in rank 4, a quotient for the test for -0 before Keras' `argmax`, and the like. Loops of recurrent
layers keep sequences batch first, which saves transposes: the GPU writes rows along the first axis to wrong places. The
only operator that is added is a second GATHER: two of them take at most a third of the time of the MIRROR_PAD that they
replace.

Whatever needs more operators is written for the accelerators that `--accelerator` names, and only where one of them
does not take an operator, or computes it wrongly: SLICE and RESHAPE for `x[:, 0]`, places as a vector for an embedding,
an activation behind a transposed convolution, a reversal before and after a CUMSUM. Convert files that may run on a GPU
with `--accelerator gpu`; of those that were converted without it, `tfconvert inspect --accelerator gpu` tells what the
GPU would leave to the CPU, compute wrongly, or not load. For some operators, such as ARG_MAX of ten classes, CUMSUM and
the rows that a loop collects for `tf.scan`, the report notes it without being asked (`wrong-on-gpu`).

## Install what runs files

| to run a file | install |
|---|---|
| on the GPU (`--verify gpu`) | `pip install 'tfconvert[gpu]'`, and a Vulkan driver |
| in the runtime of microcontrollers (`--verify micro`) | `pip install 'tfconvert[micro]'` (Linux, x86-64) |
| in LiteRT's CompiledModel (`--verify`, without more) | `pip install 'tfconvert[verify]'` |
| on Intel's NPU, to make its table again | `pip install openvino==2026.3.1` |
| through Ethos-U's compiler, to make its table again | `pip install ethos-u-vela` |

The Vulkan driver is that of a GPU, or SwiftShader, which computes on the processor and comes with Chromium:
`apt-get install chromium libvulkan1`. It is found in the directories of Chromium, Chrome and Playwright;
`VK_ICD_FILENAMES` names another driver.

Each runs in a process of its own: a file that ends or blocks it is reported like one that is refused. SwiftShader
computes in 32 bits; GPUs of phones use 16 unless they are told not to (`GpuOptions(enforce_f32=True)`). Plain
`--verify` also runs the file in LiteRT's CompiledModel on the CPU, which apps use for accelerators, and notes what it
does not load, such as the variable tensors of fused recurrent layers.

"""

_TABLE = """## Operators

The types of the data that an accelerator takes; *most* means that some forms of these are not taken or wrong, as the
lists below say. *no*: never; *?*: not tried. The tables were made with:

"""

_VERBS = {REFUSED: "not supported", WRONG: "wrong", CRASHES: "crashes", LOAD_FAILS: "the file does not load"}


def page() -> str:
    """Returns the text of the page."""
    tables = {name: table(name) for name in ACCELERATORS}
    return _HEAD + _TABLE + "".join((*_releases(tables), "\n", *_overview(tables), *_details(tables)))


def _releases(tables: dict[str, AcceptanceTable]) -> Iterator[str]:
    for name, each in tables.items():
        yield f"- `{name}`: {each.release}\n"


def _overview(tables: dict[str, AcceptanceTable]) -> Iterator[str]:
    yield f"| operator | {' | '.join(f'`{name}`' for name in tables)} |\n|---{'|---' * len(tables)}|\n"
    for operator in sorted({operator for each in tables.values() for operator in each.operators}):
        cells = [_cell(each.rows(operator)) for each in tables.values()]
        yield f"| {operator} | {' | '.join(cells)} |\n"


def _cell(rows: Sequence[AcceptanceRow]) -> str:
    if not rows:
        return "?"
    taken = {signature for row in rows if row.outcome == OK for signature in row.signatures}
    if not taken:
        return _never(rows)
    kinds = ", ".join(sorted({each.partition(",")[0].partition(">")[0].partition("<")[0] for each in taken} - {""}))
    partly = any(row.words and row.outcome != OK and _is_about(row, taken) for row in rows)
    return f"{'most ' if partly else ''}{kinds or 'yes'}"


def _never(rows: Sequence[AcceptanceRow]) -> str:
    outcomes = {row.outcome for row in rows}
    return "no" if outcomes & {REFUSED, LOAD_FAILS} else _VERBS[outcomes.pop()]


def _is_about(row: AcceptanceRow, taken: set[str]) -> bool:
    return ANY in row.signatures or bool(row.signatures & taken)


def _details(tables: dict[str, AcceptanceTable]) -> Iterator[str]:
    for name, each in tables.items():
        yield f"\n## {TITLES[name][0].upper()}{TITLES[name][1:]}: forms that are not taken, or wrong\n\n"
        yield from _exceptions(each)


def _exceptions(accepted: AcceptanceTable) -> Iterator[str]:
    """Yields a line for each condition, with the operators that it counts for."""
    found: dict[tuple[str, str], list[str]] = {}
    for operator in accepted.operators:
        rows = accepted.rows(operator)
        taken = {signature for row in rows if row.outcome == OK for signature in row.signatures}
        for row in rows:
            if row.words and row.outcome != OK and _is_about(row, taken):
                found.setdefault((_VERBS[row.outcome], told(row.words)), []).append(operator + _scope(row, taken))
    for verb, group in groupby(sorted(found), key=lambda key: key[0]):
        yield f"**{verb[0].upper()}{verb[1:]}** if\n\n"
        for key in group:
            yield f"- {key[1]}: {', '.join(found[key])}\n"
        yield "\n"


def _scope(row: AcceptanceRow, taken: set[str]) -> str:
    """Returns the types that a row is about, if these are not all that are taken."""
    if ANY in row.signatures or taken <= row.signatures:
        return ""
    kinds = sorted({each.partition(">")[0].replace(",", " x ") for each in row.signatures & taken})
    return f" ({', '.join(kinds)})"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
