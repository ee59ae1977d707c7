"""Writes docs/dynamic_shapes.md: an example of dynamic sizes through every stage of compilation.

python docs/write_dynamic_shapes.py
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tfconvert.converter.pipeline.pass_registry import pass_class
from tfconvert.importers.source import Source
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.settings.options import Options
from tfconvert.settings.targets import StableHLO
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

_TEXT = """# Dynamic sizes

Dynamic sizes (of batches, sequences and images, and computed sizes) stay dynamic in every stage: nothing is padded, and
nothing is compiled again for each size. This page follows one example through the stages: a slice whose size is
computed from an input, an addition and a matrix product.

```mlir
{example}```

`tfconvert opt example.mlir -p PASSES` prints each stage.

## Shapes as values

`legalize-to-stablehlo` keeps the arithmetic of sizes in the program. Known sizes are attributes of an op; unknown sizes
are operands, as for `real_dynamic_slice` here. In TensorFlow a size of -1 means the rest of the dimension, which is why
there are comparisons.

```mlir
{stablehlo}```

## On the host or on the device

Sizes are needed before a kernel is launched. So `place-shape-values` places their computation on the host: ops on few
integers that depend only on sizes, constants and small arguments. Here these are all of the above except five ops, and
the argument `%half`:

```mlir
{placed}```

## Fusion

`fuse-instructions` moves what one kernel can compute into a separate function: a loop over its result (`loop`), or a
reduction with its inputs (`input`). Sizes that its ops need are arguments, which the host computes before. Of the five
ops the product remains, because a library computes it faster; the others become one kernel:

```mlir
{fused}```

`add-shape-functions` adds for each function another one that computes the sizes of its results from those of its
arguments, so that they are known without running it (`--mlir-shape-function`). This one is for the kernel:

```mlir
{shapes}```

## Buffers

`legalize-to-buffers` assigns a buffer to every value that the device computes, in MLIR's own dialects:

- Sizes are numbers on the host, in `arith`: everything that is needed to allocate, traced back through small integer
  tensors. Numbers that are computed from data are loaded when they are available.
- A buffer is allocated right before the op that writes it and freed right after the last op that reads it. An
  elementwise op overwrites an operand that is not used afterwards.
- Each op, or each fusion, is a call of a private function, a kernel, which reads its operands and writes to the buffers
  that it gets as arguments. Values on the host are passed as numbers.
- Arguments are borrowed and never freed; results belong to the caller. Loops and branches are `scf.while`, `scf.if`
  and `scf.index_switch`: a loop owns the buffers that it carries and frees those that it replaces; a branch returns
  its own buffers.
- Sizes that depend on data (the number of nonzero elements) need two phases: a kernel writes its results into a buffer
  that is large enough for all of them, and their count; the host loads the count, allocates the exact result, and a
  second kernel copies into it.

`lower-to-library-calls` replaces kernels for which a library has a routine: matrix products, also batched or with
transposed operands, and image convolutions, also depthwise ones.

```mlir
{buffers}```

A kernel:

```mlir
{kernel}```

The reference executor runs such programs and checks their buffers: using a freed buffer (`use-after-free`), freeing a
buffer twice (`double-free`) or not at all (`memory-leak`) is an error.

## Memory as a formula

The program contains the allocations and deallocations, with sizes that are sums and products of input sizes. So
`tfconvert inspect MODEL --memory` can compute the memory that a model needs, and where, without running it. `x.0` is
the first size of the input `x`, `n[0]` the first number in the input `n`. For a smaller model,
`tf.matmul(tf.tanh(x), b)`:

```text
{formulas}```

With `--memory b=8,256` sizes are numbers; `--json` has the whole result. The memory is that of this program: an engine
may fuse more, or plan its memory differently. Of the branches of a conditional, the one that needs most counts. The
operations of a loop are multiplied by its number of iterations, which has a name. An operation is one addition or
multiplication.

## Not included

There is no machine code for kernels here, and there are no launches on accelerators, no allocator and no layout of
buffer descriptors: compilers that accept StableHLO, such as IREE, have these, and plan their own memory.
`linalg.generic` inside of kernels would add nothing to the StableHLO ops that are there. Buffers of the same size are
freed instead of reused: that is the task of the allocator.
"""


# The lines of a function that remain without the host's ops.
_ON_DEVICE = re.compile(r'dhlo\.(place = "device"|place = "host"}, )|func\.(func|return)|^}')


def _function(text: str, name: str) -> str:
    """Returns a function of a module's text, without the module's indentation."""
    found = re.search(rf"^  func\.func [^\n]*@{name}\(.*?^  }}\n", text, re.DOTALL | re.MULTILINE)
    assert found is not None, name
    return "".join(line[2:] for line in found[0].splitlines(keepends=True))


def _of_device(text: str) -> str:
    """Returns a function's text without the ops of the host."""
    return "".join(line for line in text.splitlines(keepends=True) if _ON_DEVICE.search(line))


def page() -> str:
    """Returns the text of the page."""
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
        found = memory_of(Source(path), Options(target=StableHLO()), {})
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
