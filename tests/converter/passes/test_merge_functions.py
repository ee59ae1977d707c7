"""The pass `merge-functions`."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.merge_functions import MergeFunctions

TEXT = """
    // CHECK: func.func @a({{{{.*}}}}tf_saved_model.exported_names = [{names}]
    // CHECK-NEXT: f = @f1
    func.func @a(%x: tensor<2xf32>) -> tensor<2xf32> attributes {{tf_saved_model.exported_names = ["a"]}} {{
      %0 = "tf.PartitionedCall"(%x) <{{f = @f1}}> : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }}
    func.func @b(%x: tensor<2xf32>) -> tensor<2xf32> attributes {{tf_saved_model.exported_names = ["b"]}} {{
      %0 = "tf.PartitionedCall"(%x) <{{f = @f2}}> : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }}
    func.func private @f1(%x: tensor<2xf32> {{tf._user_specified_name = "p"}}) -> tensor<2xf32> {{
      %0 = "tf.LeakyRelu"(%x) <{{alpha = 0.1 : f32}}> : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }}
    func.func private @f2(%x: tensor<2xf32> {{tf._user_specified_name = "q"}}) -> tensor<2xf32> {{
      %0 = "tf.LeakyRelu"(%x) <{{alpha = {alpha} : f32}}> : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }}
"""


def test_equal_signatures_become_one(filecheck: FileCheck) -> None:
    module = filecheck(MergeFunctions(), TEXT.format(names='"a", "b"', alpha=0.1))
    assert len(list(module.ops)) == 2


def test_another_attribute_is_another_function(filecheck: FileCheck) -> None:
    module = filecheck(MergeFunctions(), TEXT.format(names='"a"', alpha=0.2))
    assert len(list(module.ops)) == 4


REGIONS = """
    // CHECK: @first
    // CHECK{check}: @second
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {{
      %0 = func.call @first(%p, %x) : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      %1 = func.call @second(%p, %x) : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
      func.return %0, %1 : tensor<2xf32>, tensor<2xf32>
    }}
    func.func private @first(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {{
      %0 = "tf.WhileRegion"(%x) <{{is_stateless = true, parallel_iterations = 10 : i64}}> ({{
      ^bb0(%a: tensor<2xf32>):
        "tf.Yield"(%p) : (tensor<i1>) -> ()
      }}, {{
      ^bb0(%b: tensor<2xf32>):
        %1 = "tf.Neg"(%b) : (tensor<2xf32>) -> tensor<2xf32>
        "tf.Yield"(%1) : (tensor<2xf32>) -> ()
      }}) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }}
    func.func private @second(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {{
      %0 = "tf.WhileRegion"(%x) <{{is_stateless = true, parallel_iterations = 10 : i64}}> ({{
      ^bb0(%a: tensor<2xf32>):
        "tf.Yield"(%p) : (tensor<i1>) -> ()
      }}, {{
      ^bb0(%b: tensor<2xf32>):
        %1 = "tf.Neg"({operand}) : (tensor<2xf32>) -> tensor<2xf32>
        "tf.Yield"(%1) : (tensor<2xf32>) -> ()
      }}) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }}
"""


@pytest.mark.parametrize(("operand", "check"), [("%b", "-NOT"), ("%x", "")])
def test_regions_are_compared_too(filecheck: FileCheck, operand: str, check: str) -> None:
    filecheck(MergeFunctions(), REGIONS.format(operand=operand, check=check))


def test_what_is_public_or_has_no_body_stays(filecheck: FileCheck) -> None:
    filecheck(
        MergeFunctions(),
        """
    // CHECK: func.func @a
    // CHECK: func.func @b
    // CHECK: func.func private @c
    // CHECK: func.func private @d
    func.func @a(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
    func.func @b(%x: tensor<2xf32>) -> tensor<2xf32> {
      func.return %x : tensor<2xf32>
    }
    func.func private @c(tensor<2xf32>)
    func.func private @d(tensor<2xf32>)
    """,
    )
