"""The pass `merge-functions`."""

from __future__ import annotations

from converter.passes.merge_functions import MergeFunctions
from tests.converter.passes.conftest import FileCheck

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
