"""The pass `canonicalize`."""

from __future__ import annotations

from tests.converter.pass_texts import FileCheck
from tests.support.run_text import parse
from tfconvert.converter.passes.canonicalize import Canonicalize
from tfconvert.schema.diagnostics import INEXACT, WARNING


def test_identities_are_forwarded_and_what_is_unused_goes(filecheck: FileCheck) -> None:
    filecheck(
        Canonicalize(),
        """
    // CHECK: func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    // CHECK-NEXT: func.return %x : tensor<2xf32>
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = "tf.Identity"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.StopGradient"(%0) : (tensor<2xf32>) -> tensor<2xf32>
      %unused = "tf.Relu"(%1) : (tensor<2xf32>) -> tensor<2xf32>
      "tf.NoOp"() : () -> ()
      func.return %1 : tensor<2xf32>
    }
    """,
    )


def test_lists_of_identities_are_forwarded_and_counted_unless_they_are_dead() -> None:
    module = parse(
        """
    func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
      %0:2 = "tf.IdentityN"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>)
      %1 = "tf.Identity"(%0#0) : (tensor<2xf32>) -> tensor<2xf32>
      %2 = "tf.Identity"(%0#1) : (tensor<3xf32>) -> tensor<3xf32>
      func.return %1, %0#1 : tensor<2xf32>, tensor<3xf32>
    }
    """
    )
    result = Canonicalize().apply(module)
    assert result.counts == {"forward-IdentityN": 1, "forward-Identity": 1}
    assert [op.name for op in module.walk()] == ["builtin.module", "func.func", "func.return"]


def test_what_an_identity_knows_of_a_shape_is_kept(filecheck: FileCheck) -> None:
    filecheck(
        Canonicalize(),
        """
    // CHECK: "tf.Relu"(%x) : (tensor<*xf32>) -> tensor<2x3xf32>
    // CHECK-NEXT: "tf.Neg"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    func.func @main(%x: tensor<*xf32>) -> tensor<2x3xf32> {
      %0 = "tf.Relu"(%x) : (tensor<*xf32>) -> tensor<2x?xf32>
      %1 = "tf.EnsureShape"(%0) <{shape = #tf_type.shape<?x3>}> : (tensor<2x?xf32>) -> tensor<2x3xf32>
      %2 = "tf.Neg"(%1) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      func.return %2 : tensor<2x3xf32>
    }
    """,
    )


def test_effects_stay_dead_random_numbers_go(filecheck: FileCheck) -> None:
    filecheck(
        Canonicalize(),
        """
    // CHECK: "tf.WriteFile"
    // CHECK-NOT: "tf.RandomUniform"
    func.func @main(%x: tensor<!tf_type.string>, %shape: tensor<1xi32>) {
      "tf.WriteFile"(%x, %x) : (tensor<!tf_type.string>, tensor<!tf_type.string>) -> ()
      %0 = "tf.RandomUniform"(%shape) : (tensor<1xi32>) -> tensor<?xf32>
      func.return
    }
    """,
    )


def test_a_cast_stays_unless_it_changes_nothing(filecheck: FileCheck) -> None:
    filecheck(
        Canonicalize(),
        """
    // CHECK: [[CAST:%[0-9a-z_]+]] = "tf.Cast"(%{{[0-9a-z_]+}}) : (tensor<2xf32>) -> tensor<2xi32>
    // CHECK-NEXT: func.return [[CAST]]
    func.func @main(%x: tensor<2xf32>) -> tensor<2xi32> {
      %0 = "tf.Cast"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = "tf.Cast"(%0) : (tensor<2xf32>) -> tensor<2xi32>
      func.return %1 : tensor<2xi32>
    }
    """,
    )


def test_what_only_tells_people_goes_and_is_noted(filecheck: FileCheck) -> None:
    source = """
    // CHECK: func.func @main
    // CHECK-NEXT: func.return %x : tensor<f32>
    func.func @main(%x: tensor<f32>, %text: tensor<!tf_type.string>) -> tensor<f32> {
      %0 = "tf.Print"(%x, %text) <{message = "x"}> : (tensor<f32>, tensor<!tf_type.string>) -> tensor<f32>
      %1 = "tf.StringFormat"(%0) <{template = "%s"}> : (tensor<f32>) -> tensor<!tf_type.string>
      "tf.PrintV2"(%1) <{output_stream = "stderr"}> : (tensor<!tf_type.string>) -> ()
      %2 = "tf.CheckNumericsV2"(%0) <{message = "m"}> : (tensor<f32>) -> tensor<f32>
      func.return %2 : tensor<f32>
    }
    """
    filecheck(Canonicalize(), source)
    notes = Canonicalize().apply(parse(source)).notes
    assert [note.message.partition(":")[0] for note in notes] == ["CheckNumericsV2", "Print", "PrintV2"]
    assert {(note.code, note.severity) for note in notes} == {(INEXACT, WARNING)}
    assert all("(1 of them)" in note.message for note in notes)
