"""Texts of modules with as many loops and conditions as a test requires."""

from __future__ import annotations

_PUBLIC = """
func.func @main(%p: tensor<i1>, %i: tensor<i32>, %x: tensor<2xf32>) -> tensor<*xf32> {{
{ops}
  func.return %r : tensor<*xf32>
}}
"""

_IF = """  %limit = "tf.Const"() <{{value = dense<{0}> : tensor<i32>}}> : () -> tensor<i32>
  %c = "tf.Greater"(%i, %limit) : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %r = "tf.If"(%c, %i, %x) <{{then_branch = @f{0}, else_branch = @same{0}, is_stateless = true}}>
      : (tensor<i1>, tensor<i32>, tensor<{1}xf32>) -> tensor<*xf32>"""
_WHILE = '"tf.While"(%p, %x) <{{cond = @cond{0}, body = @{0}, is_stateless = true, parallel_iterations = 10 : i64}}>'


def nested_ifs(depth: int) -> str:
    """Returns conditions in conditions, each another; the innermost computes something."""
    signature = "(%i: tensor<i32>, %x: tensor<*xf32>) -> tensor<*xf32>"
    parts = [_PUBLIC.format(ops=_IF.format(0, "2"))]
    for level in range(depth):
        inner = '  %r = "tf.Neg"(%x) : (tensor<*xf32>) -> tensor<*xf32>'
        inner = _IF.format(level + 1, "*") if level < depth - 1 else inner
        parts += [
            f"func.func private @f{level}{signature} {{\n{inner}\n  func.return %r : tensor<*xf32>\n}}",
            f"func.func private @same{level}{signature} {{\n  func.return %x : tensor<*xf32>\n}}",
        ]
    return "\n".join(parts)


def nested_loops(depth: int) -> str:
    """Returns loops in loops."""
    variables = "(%p: tensor<i1>, %x: tensor<*xf32>)"
    given = "(tensor<i1>, tensor<*xf32>) -> (tensor<i1>, tensor<*xf32>)"
    first = f"  %q, %r = {_WHILE.format('f0')} : {given.replace('tensor<*xf32>)', 'tensor<2xf32>)', 1)}"
    parts = [_PUBLIC.format(ops=first)]
    for level in range(depth):
        inner = f"%q, %r = {_WHILE.format(f'f{level + 1}')} : {given}"
        if level == depth - 1:
            inner = '%r = "tf.ConcatV2"(%x, %x, %axis) : (tensor<*xf32>, tensor<*xf32>, tensor<i32>) -> tensor<*xf32>'
        parts += [
            f"func.func private @condf{level}{variables} -> tensor<i1> {{\n  func.return %p : tensor<i1>\n}}",
            f"func.func private @f{level}{variables} -> (tensor<i1>, tensor<*xf32>) {{\n"
            '  %axis = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>\n'
            '  %f = "tf.Const"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>\n'
            f"  {inner}\n  func.return %f, %r : tensor<i1>, tensor<*xf32>\n}}",
        ]
    return "\n".join(parts)


def loops_in_a_row(count: int, body_length: int) -> str:
    """Returns loops one after the other, each with a body of some length."""
    types = "(tensor<i1>, tensor<*xf32>)"
    ops, parts = [], []
    value = "%x"
    for number in range(count):
        result = "%r" if number == count - 1 else f"%v{number}"
        text = _WHILE.format(f"f{number}").replace("%x", value)
        given = types if number else types.replace("*", "2")
        ops.append(f"  %q{number}, {result} = {text} : {given} -> {types}")
        value = result
        body = "\n".join(
            f'  %y{at + 1} = "tf.Neg"(%y{at}) : (tensor<*xf32>) -> tensor<*xf32>' for at in range(body_length)
        )
        parts += [
            f"func.func private @condf{number}(%p: tensor<i1>, %x: tensor<*xf32>) -> tensor<i1> {{\n"
            "  func.return %p : tensor<i1>\n}",
            f"func.func private @f{number}(%p: tensor<i1>, %y0: tensor<*xf32>) -> {types} {{\n{body}\n"
            '  %f = "tf.Const"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>\n'
            f"  func.return %f, %y{body_length} : tensor<i1>, tensor<*xf32>\n}}",
        ]
    return "\n".join([_PUBLIC.format(ops="\n".join(ops)), *parts])
