"""Writes docs/dynamic_shapes.md: an example through every stage of compiling sizes that only running tells.

python docs/write_dynamic_shapes.py
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tfconvert.converter.pipeline.registry import pass_class
from tfconvert.importers.source import Source
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.settings.options import Options
from tfconvert.tools.memory import memory_of, to_text

PAGE = Path(__file__).parent / "dynamic_shapes.md"

_EXAMPLE = """\
func.func @main(%whole: tensor<4x8xf32>, %half: tensor<2xi64>, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>)
    -> tensor<?x?xf32> {
  %starts = "tf.Const"() <{value = dense<0> : tensor<2xi64>}> : () -> tensor<2xi64>
  %size = "tf.AddV2"(%half, %half) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %0 = "tf.Slice"(%whole, %starts, %size) : (tensor<4x8xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
  %1 = "tf.AddV2"(%0, %a) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = "tf.MatMul"(%1, %b) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  func.return %2 : tensor<?x?xf32>
}
"""

_SMALLER = """\
func.func @main(%x: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = "tf.Tanh"(%x) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = "tf.MatMul"(%0, %b) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  func.return %1 : tensor<?x?xf32>
}
"""

_TEXT = """# Sizes that only running tells

Open sizes (batches, lengths, images, and sizes that are computed) stay open in every stage: nothing is padded, and
nothing is compiled anew for each size. This page takes one example through the stages: a slice whose size is computed
from an input, an addition and a product of matrices.

```mlir
{example}```

`tfconvert opt example.mlir -p PASSES` prints each stage.

## Shapes as values

`legalize-to-stablehlo` keeps the arithmetic of sizes in the program. Where sizes are known, an op has them as
attributes; where they are not, it takes them as operands, as `real_dynamic_slice` does here. A size of -1 means all
that is left, in TensorFlow, which is what the comparisons are for.

```mlir
{stablehlo}```

## On the host or on the device

Sizes are needed before a kernel is launched. So `place-shape-values` puts what computes them on the host: ops on few
integers that depend on nothing but sizes, constants and small arguments. Here that is all of the above but five ops,
and the argument `%half`:

```mlir
{placed}```

## Fusion

`fuse-instructions` moves what one kernel can compute into a function of its own: a loop over its result (`loop`), or a
reduction with what it reads (`input`). Sizes that ops in it need are its arguments, and the host computes them before.
Of the five ops the product is left, which a library does better; the rest is one kernel:

```mlir
{fused}```

`add-shape-functions` adds, for each function, another one that computes the sizes of its results from those of its
arguments, so that nothing has to be run to know them (`--mlir-shape-function`). That of the kernel:

```mlir
{shapes}```

## Buffers

`legalize-to-buffers` gives every value that the device computes a buffer, in MLIR's own dialects:

- Sizes are numbers of the host, in `arith`: what ops need to know to allocate, as far back as small tensors of integers
  go. Numbers that are computed from data are loaded once they are there.
- A buffer is allocated right before the op that writes it and freed right after the last one that reads it. An op that
  computes element by element writes over an operand that dies there.
- Each op, or each fusion of them, is a call of a private function, a kernel, which reads its operands and writes to the
  buffers that it is given. What the host holds is passed as numbers.
- Arguments are borrowed and never freed; results belong to the caller. Loops and branches are `scf.while`, `scf.if`
  and `scf.index_switch`: a loop owns what it carries and frees what it replaces; a branch hands out buffers of its own.
- Sizes that only computing tells (how many elements are not zero) come in two phases: a kernel writes into a buffer
  that is large enough for all, and its count; the host loads the count, allocates the exact result, and a second kernel
  copies into it.

`lower-to-library-calls` replaces kernels that a library has a routine for: products of matrices, also many at a time or
with transposed operands, and convolutions of images, also of each channel by itself.

```mlir
{buffers}```

A kernel:

```mlir
{kernel}```

The reference executor runs such programs and counts: a use after a buffer was freed (`use-after-free`), a second time
(`double-free`) or never (`memory-leak`) is an error.

## What it takes, as a formula

Allocating and freeing are in the program, with sizes that are sums and products of those of the inputs. So
`tfconvert inspect MODEL --memory` says what running a model takes before anything is run, and where. `x.0` is the first
size of the input `x`, `n[0]` the first number in the input `n`. For a smaller model, `tf.matmul(tf.tanh(x), b)`:

```text
{formulas}```

With `--memory b=8,256` sizes are numbers; `--json` has all of it. The memory is that of this program: an engine may
fuse more, or plan its memory in another way. Of branches the one that takes the most is counted; a loop's operations
are multiplied by its rounds, which have a name. An operation is one addition or multiplication.

## What is left to engines

There are no kernels of machine code here, no launches on accelerators, no allocator and no layout of descriptors of
buffers: compilers that take StableHLO, such as IREE, have them, and plan their own memory. `linalg.generic` inside of
kernels would say no more than the ops of StableHLO that are there. Buffers of the same size are not recycled without
freeing them: that is the allocator's.
"""


_ON_DEVICE = re.compile(r'dhlo\.(place = "device"|place = "host"}, )|func\.(func|return)|^}')
"""What is shown of a function of which the host's ops are left out."""


def _function(text: str, name: str) -> str:
    """Returns a function of a module's text, without the module's indentation."""
    found = re.search(rf"^  func\.func [^\n]*@{name}\(.*?^  }}\n", text, re.DOTALL | re.MULTILINE)
    assert found is not None, name
    return "".join(line[2:] for line in found[0].splitlines(keepends=True))


def _of_device(text: str) -> str:
    """Returns a function's text without the ops of the host."""
    return "".join(line for line in text.splitlines(keepends=True) if _ON_DEVICE.search(line))


def page() -> str:
    """Returns the page's text."""
    module = IRParser(_EXAMPLE).parse_module()
    texts = []
    for name in ("legalize-to-stablehlo", "place-shape-values", "fuse-instructions"):
        pass_class(name)().apply(module)
        texts.append(str(module))
    stablehlo, placed, fused = texts
    sized = module.clone()
    pass_class("add-shape-functions")().apply(sized)
    for name in ("legalize-to-buffers", "lower-to-library-calls"):
        pass_class(name)().apply(module)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "smaller.mlir")
        path.write_text(_SMALLER, "utf-8")
        found = memory_of(Source(path), Options(), {})
        formulas = to_text("smaller.mlir", found).replace(str(path), "smaller.mlir") + "\n"
    parts = {
        "example": _EXAMPLE,
        "stablehlo": _function(stablehlo, "main"),
        "placed": _of_device(_function(placed, "main")),
        "fused": _of_device(_function(fused, "main")) + _function(fused, "main__fusion_0"),
        "shapes": _function(str(sized), "main__fusion_0__shape"),
        "buffers": _function(str(module), "main"),
        "kernel": _function(str(module), "fusion"),
        "formulas": formulas,
    }
    return re.sub(r"\{(\w+)\}", lambda match: parts[match[1]], _TEXT)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
