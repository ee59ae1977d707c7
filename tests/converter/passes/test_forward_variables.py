"""The pass `forward-variables`: the reference executor compares the state before and after."""

from __future__ import annotations

import pytest

from tests.converter.pass_texts import FileCheck
from tfconvert.converter.passes.forward_variables import ForwardVariables

HANDLE = "tensor<!tf_type.resource<tensor<2xf32>>>"
READ = f'"tf.ReadVariableOp"(%v) : ({HANDLE}) -> tensor<2xf32>'
READ_OPEN = f'"tf.ReadVariableOp"(%v) : ({HANDLE}) -> tensor<?xf32>'
WRITE = f'"tf.AssignVariableOp"(%v, %x) <{{validate_shape = false}}> : ({HANDLE}, tensor<2xf32>) -> ()'
WRITE_W = WRITE.replace("%v", "%w")
CALL = '%c = "tf.While"(%x) <{cond = @cond, body = @body, is_stateless = false}> : (tensor<2xf32>) -> tensor<2xf32>'


def variable(name: str) -> str:
    return f"""%{name} = "tf.VarHandleOp"() <{{container = "", dtype = f32, shape = #tf_type.shape<2>,
      shared_name = "{name}"}}> : () -> {HANDLE}"""


def text(*lines: str, called: str = "v") -> str:
    values = "".join(
        f'"tf_saved_model.global_tensor"() <{{sym_name = "{name}", is_mutable, type = tensor<2xf32>, '
        f"value = dense<[1.0, {start}]> : tensor<2xf32>}}> : () -> ()\n"
        for name, start in (("v", 2.0), ("w", 3.0))
    )
    body = "\n".join(lines)
    return f"""
    {values}
    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {{
      {variable("v")}
      {variable("w")}
      {body}
      %last = {READ}
      func.return %first, %last : tensor<2xf32>, tensor<2xf32>
    }}
    func.func private @cond(%y: tensor<2xf32>) -> tensor<i1> {{
      %zero = "tf.Const"() <{{value = dense<0> : tensor<1xi32>}}> : () -> tensor<1xi32>
      %one = "tf.Const"() <{{value = dense<9.0> : tensor<f32>}}> : () -> tensor<f32>
      %sum = "tf.Sum"(%y, %zero) <{{keep_dims = false}}> : (tensor<2xf32>, tensor<1xi32>) -> tensor<f32>
      %less = "tf.Less"(%sum, %one) : (tensor<f32>, tensor<f32>) -> tensor<i1>
      func.return %less : tensor<i1>
    }}
    func.func private @body(%y: tensor<2xf32>) -> tensor<2xf32> {{
      {variable(called)}
      %r = {READ.replace("%v", f"%{called}")}
      %n = "tf.AddV2"(%r, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %m = "tf.Square"(%n) : (tensor<2xf32>) -> tensor<2xf32>
      %k = "tf.AddV2"(%m, %m) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      "tf.AssignVariableOp"(%{called}, %k) <{{validate_shape = false}}> : ({HANDLE}, tensor<2xf32>) -> ()
      %more = "tf.AddV2"(%k, %x1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      func.return %more : tensor<2xf32>
    }}
    """.replace("%x1", "%k")


FIRST = f"%first = {READ}"

CASES = {
    "read after read": (text(FIRST), 1, 0),
    "read after write": (text(WRITE, FIRST), 0, 1),
    "write of another": (text(FIRST, WRITE_W), 1, 1),
    "loop that writes": (text(FIRST, CALL), 2, 0),
    "loop that writes another": (text(FIRST, CALL, called="w"), 1, 0),
    "read of another type": (text(FIRST.replace("first", "one"), f"%open = {READ_OPEN}", f"%first = {READ}"), 3, 0),
    "unobservable write": (text(FIRST, WRITE, WRITE), 1, 1),
    "write that a loop sees": (text(FIRST, WRITE, CALL, WRITE), 1, 2),
    "write that a loop doesn't see": (text(FIRST, WRITE, CALL, WRITE, called="w"), 1, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_known_is_not_read_and_what_is_not_seen_is_not_written(filecheck: FileCheck, name: str) -> None:
    given, reads, writes = CASES[name]
    module = filecheck(ForwardVariables(), given + "// CHECK: func.func @main")
    main = str(module).partition("func.func @main")[2].partition("func.func private")[0]
    assert (main.count("tf.ReadVariableOp"), main.count("tf.AssignVariableOp")) == (reads, writes)


def test_a_handle_that_is_an_argument_may_be_of_any_variable(filecheck: FileCheck) -> None:
    filecheck(
        ForwardVariables(),
        f"""
    // CHECK-COUNT-2: tf.AssignVariableOp
    // CHECK: [[R:%[0-9a-z]+]] = "tf.ReadVariableOp"
    // CHECK-NEXT: func.return [[R]]
    func.func private @inner(%a: {HANDLE}, %x: tensor<2xf32>) -> tensor<2xf32> {{
      {variable("v")}
      {WRITE}
      {WRITE.replace("%v", "%a")}
      %r = {READ}
      func.return %r : tensor<2xf32>
    }}
    """,
    )
