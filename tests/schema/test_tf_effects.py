"""Effects of ops: the tables, identities of handles, effects through calls."""

from __future__ import annotations

import pytest

from tfconvert.schema.dialects import tf_effects
from tfconvert.schema.dialects.parsing import IRParser
from tfconvert.schema.dialects.tf_effects import ANY, Effects, ModuleEffects
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.operation import Operation

V = "tensor<!tf_type.resource<tensor<f32>>>"
HANDLE = f'%v = "tf.VarHandleOp"() <{{container = "", shared_name = "v"}}> : () -> {V}'
NAMED_V = ("tf.VarHandleOp", "", "v")


def module_of(text: str) -> ModuleOp:
    return IRParser(text).parse_module()


def last(body: str, arguments: str = "%x: tensor<f32>") -> Operation:
    """Returns the last op of a function's body."""
    module = module_of(f"func.func @f({arguments}) {{ {body} return }}")
    (function,) = [op for op in module.walk() if op.name == "func.func"]
    return [op for op in function.regions[0].block.ops if op.name.startswith("tf.")][-1]


@pytest.mark.parametrize(
    ("op", "must_run", "pure"),
    [
        ('%0 = "tf.Relu"(%x) : (tensor<f32>) -> tensor<f32>', False, True),
        ('%0 = "tf.Unheard"(%x) : (tensor<f32>) -> tensor<f32>', True, False),
        ('%0 = "tf.RandomUniform"(%x) : (tensor<f32>) -> tensor<f32>', False, False),
        ('%0 = "tf.StatelessRandomUniform"(%x) : (tensor<f32>) -> tensor<f32>', False, True),
        ('%0 = "tf.Placeholder"() : () -> tensor<f32>', False, False),
        ('"tf.Assert"(%x) : (tensor<f32>) -> ()', True, False),
        ('"tf.PrintV2"(%x) : (tensor<f32>) -> ()', True, False),
        ('"tf._Send"(%x) : (tensor<f32>) -> ()', True, False),
        ('%0 = "tf.EmptyTensorList"(%x) : (tensor<f32>) -> tensor<!tf_type.variant>', False, True),
        ('%0 = "tf.TensorSliceDataset"(%x) : (tensor<f32>) -> tensor<!tf_type.variant>', False, True),
        ('"tf.DatasetToTFRecord"(%x) : (tensor<f32>) -> ()', True, False),
        (HANDLE, False, True),
        (f'%0 = "tf.VarHandleOp"() <{{shared_name = ""}}> : () -> {V}', False, False),
        (f'%0 = "tf.AnonymousMutableHashTable"() : () -> {V}', False, False),
        (f'{HANDLE} %0 = "tf.ReadVariableOp"(%v) : ({V}) -> tensor<f32>', False, False),
        (f'{HANDLE} "tf.AssignVariableOp"(%v, %x) : ({V}, tensor<f32>) -> ()', True, False),
        (f'{HANDLE} "tf.ResourceApplyAdam"(%v) : ({V}) -> ()', True, False),
        ('%0 = "tf.If"(%x) <{then_branch = @g, is_stateless = true}> : (tensor<f32>) -> tensor<f32>', False, True),
        ('%0 = "tf.If"(%x) <{then_branch = @g, is_stateless = false}> : (tensor<f32>) -> tensor<f32>', True, False),
        ('%0 = "tf.PartitionedCall"(%x) <{f = @g}> : (tensor<f32>) -> tensor<f32>', False, True),
        ('%0 = "tf.StatefulPartitionedCall"(%x) <{f = @g}> : (tensor<f32>) -> tensor<f32>', True, False),
    ],
)
def test_erasable_and_mergeable_ops(op: str, must_run: bool, pure: bool) -> None:
    found = last(op)
    assert (tf_effects.has_side_effects(found), tf_effects.is_pure(found)) == (must_run, pure)


@pytest.mark.parametrize(
    ("op", "reads", "writes"),
    [
        ('%0 = "tf.Relu"(%x) : (tensor<f32>) -> tensor<f32>', set(), set()),
        (f'%0 = "tf.ReadVariableOp"(%v) : ({V}) -> tensor<f32>', {NAMED_V}, set()),
        (f'"tf.AssignVariableOp"(%v, %x) : ({V}, tensor<f32>) -> ()', set(), {NAMED_V}),
        (f'"tf.AssignAddVariableOp"(%v, %x) : ({V}, tensor<f32>) -> ()', {NAMED_V}, {NAMED_V}),
        (f'%0 = "tf.LookupTableFindV2"(%v, %x, %x) : ({V}, tensor<f32>, tensor<f32>) -> tensor<f32>', {NAMED_V}, set()),
        (f'"tf.LookupTableInsertV2"(%v, %x, %x) : ({V}, tensor<f32>, tensor<f32>) -> ()', {NAMED_V}, {NAMED_V}),
        ('"tf.Unheard"(%x) : (tensor<f32>) -> ()', {ANY}, {ANY}),
        ('"tf.Assert"(%x) : (tensor<f32>) -> ()', set(), set()),
        (
            f'%i = "tf.Identity"(%v) : ({V}) -> {V} %0 = "tf.ReadVariableOp"(%i) : ({V}) -> tensor<f32>',
            {NAMED_V},
            set(),
        ),
        (f'%i = "tf.Unheard"(%v) : ({V}) -> {V} %0 = "tf.ReadVariableOp"(%i) : ({V}) -> tensor<f32>', {ANY}, set()),
        (f'%0 = "tf.StatefulPartitionedCall"(%v) <{{f = @g}}> : ({V}) -> tensor<f32>', {ANY}, {ANY}),
        (
            '%0 = "tf.IfRegion"(%x) <{is_stateless = false}> ({ '
            f'%1 = "tf.ReadVariableOp"(%v) : ({V}) -> tensor<f32> '
            '"tf.Yield"(%1) : (tensor<f32>) -> () }, { "tf.Yield"(%x) : (tensor<f32>) -> () }) '
            ": (tensor<f32>) -> tensor<f32>",
            {NAMED_V},
            set(),
        ),
    ],
)
def test_states(op: str, reads: set[object], writes: set[object]) -> None:
    assert tf_effects.effects(last(f"{HANDLE} {op}")) == Effects(frozenset(reads), frozenset(writes))


def test_reference_variables() -> None:
    variable = '%r = "tf.VariableV2"() <{container = "", shared_name = "w"}> : () -> tensor<!tf_type.f32ref>'
    assign = '%a = "tf.Assign"(%r, %x) : (tensor<!tf_type.f32ref>, tensor<f32>) -> tensor<!tf_type.f32ref>'
    use = '%0 = "tf.Relu"(%a) : (tensor<!tf_type.f32ref>) -> tensor<f32>'
    state = frozenset({("tf.VariableV2", "", "w")})
    assert tf_effects.effects(last(f"{variable} {assign}")) == Effects(writes=state)
    read = last(f"{variable} {assign} {use}")
    assert tf_effects.effects(read) == Effects(reads=state)
    assert not tf_effects.is_pure(read)


def test_arguments_are_different_states_and_islands_are_looked_through() -> None:
    op = last(f'"tf.AssignVariableOp"(%a, %b) : ({V}, {V}) -> ()', f"%a: {V}, %b: {V}")
    one, other = (tf_effects.resource_identity(operand) for operand in op.operands)
    assert one != other
    assert ANY not in (one, other)


def test_calls_have_the_effects_of_their_functions() -> None:
    module = module_of(f"""
    func.func @main(%p: {V}, %x: tensor<f32>) {{
      {HANDLE}
      "tf.StatefulPartitionedCall"(%v, %x) <{{f = @outer}}> : ({V}, tensor<f32>) -> ()
      %0 = "tf.If"(%x, %p) <{{then_branch = @read, else_branch = @read}}> : (tensor<f32>, {V}) -> tensor<f32>
      "tf.StatefulPartitionedCall"() <{{f = @again}}> : () -> ()
      "tf.StatefulPartitionedCall"() <{{f = @nowhere}}> : () -> ()
      return
    }}
    func.func private @outer(%h: {V}, %x: tensor<f32>) {{
      func.call @write(%h, %x) : ({V}, tensor<f32>) -> ()
      return
    }}
    func.func private @write(%h: {V}, %x: tensor<f32>) {{
      "tf.AssignVariableOp"(%h, %x) : ({V}, tensor<f32>) -> ()
      return
    }}
    func.func private @read(%h: {V}) -> tensor<f32> {{
      %0 = "tf.ReadVariableOp"(%h) : ({V}) -> tensor<f32>
      return %0 : tensor<f32>
    }}
    func.func private @again() {{
      "tf.StatefulPartitionedCall"() <{{f = @again}}> : () -> ()
      return
    }}
    """)
    analysis = ModuleEffects(module)
    main = module.body.block.first_op
    assert main is not None
    calls = [op for op in main.walk() if op.name in ("tf.StatefulPartitionedCall", "tf.If")]
    found = [analysis.effects(op) for op in calls]
    argument = main.regions[0].block.args[0]
    assert found[0] == Effects(writes=frozenset({NAMED_V}))
    assert found[1] == Effects(reads=frozenset({argument}))
    assert found[2] == found[3] == tf_effects.ANY_EFFECTS
    assert ANY in analysis.effects(main).writes
