"""Pass `place-shape-values`: places the computation of sizes on the host, and that of data on the device.

Sizes are needed before a kernel is launched, and computing them on the host needs no launch and no copy. An op is
placed on the host if its results are a few integers, computed from sizes, constants and small integer arguments, and
used as sizes. The host reads a value from the device only if a size depends on data; `dhlo.read_back` marks these
values.

Before:

    func.func @main(%x: tensor<4x8xf32>, %n: tensor<2xi64>, %y: tensor<?x?xf32>) -> tensor<?x?xf32> {
      %0 = stablehlo.constant dense<0> : tensor<2xi64>
      %1 = stablehlo.constant dense<1> : tensor<2xi64>
      %2 = "stablehlo.add"(%n, %n) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
      %3 = "stablehlo.real_dynamic_slice"(%x, %0, %2, %1)
        : (tensor<4x8xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
      %4 = "stablehlo.add"(%3, %y) : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
      func.return %4 : tensor<?x?xf32>
    }

After:

    func.func @main(%x: tensor<4x8xf32>, %n: tensor<2xi64> {dhlo.place = "host"}, %y: tensor<?x?xf32>)
        -> tensor<?x?xf32> {
      %0 = stablehlo.constant {dhlo.place = "host"} dense<0> : tensor<2xi64>
      %1 = stablehlo.constant {dhlo.place = "host"} dense<1> : tensor<2xi64>
      %2 = "stablehlo.add"(%n, %n) {dhlo.place = "host"} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
      %3 = "stablehlo.real_dynamic_slice"(%x, %0, %2, %1) {dhlo.place = "device"}
        : (tensor<4x8xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
      %4 = "stablehlo.add"(%3, %y) {dhlo.place = "device"}
        : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
      func.return %4 : tensor<?x?xf32>
    }
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from tfconvert.converter.pipeline.pass_result import PassResult
from tfconvert.converter.targets.stablehlo.places import place
from tfconvert.schema.dialects.func import defined_functions
from tfconvert.schema.ir.builtin import ModuleOp


class PlaceShapeValues:
    """Places ops on the host or the device."""

    __slots__ = ()

    name: ClassVar[str] = "place-shape-values"

    def apply(self, module: ModuleOp) -> PassResult:
        """Marks every op of every function; returns the number of ops in each place."""
        counts = Counter[str]()
        for function in defined_functions(module).values():
            counts += place(function)
        return PassResult(counts)
