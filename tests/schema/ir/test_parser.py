"""Ops, regions and files: parsing and errors."""

from __future__ import annotations

import time

import pytest

from tests.schema.ir.toy_dialect import REGISTRY, FunctionOp, GiveOp, refusal
from tfconvert.schema.dialects.attributes import integer
from tfconvert.schema.ir.attributes import StringAttr
from tfconvert.schema.ir.builtin import ModuleOp
from tfconvert.schema.ir.locations import UNKNOWN_LOC, FileLineColLoc, NameLoc
from tfconvert.schema.ir.operation import Operation
from tfconvert.schema.ir.parser import Parser, block_hint, value_hint
from tfconvert.schema.ir.printer import text_of
from tfconvert.schema.ir.types import F32, I32, I64


def parser(text: str, **options: bool) -> Parser:
    """Returns a parser of a text."""
    return Parser(REGISTRY, text, "toy.mlir", **options)


def module(text: str, **options: bool) -> ModuleOp:
    """Returns the module of a text."""
    return parser(text, **options).parse_module()


def ops(text: str) -> list[Operation]:
    """Returns the ops of a text."""
    return list(module(text).ops)


def test_the_generic_form() -> None:
    first, op = ops(
        '%a, %b:2 = "toy.a"() : () -> (i32, i64, f32)\n'
        '%c = "toy.b"(%b#1, %a) <{p = 1}> ({}, {"toy.c"() : () -> ()}) {q} : (f32, i32) -> i64 loc("here")'
    )
    assert op.name == "toy.b"
    assert list(op.operands) == [first.results[2], first.results[0]]
    assert op.result_types == [I64]
    assert op.properties == {"p": integer(1)}
    assert list(op.attributes) == ["q"]
    assert [len(region.blocks) for region in op.regions] == [0, 1]
    assert op.location is NameLoc.get("here")
    assert [value.name_hint for value in [*first.results, *op.results]] == ["a", "b", "b", "c"]


def test_an_op_of_its_own_class_and_form() -> None:
    function, _ = ops(
        'toy.function @"f g"(%x: i32 {a = "b"} loc("x"), %y: f32) {\n  give %x\n} loc("f")\n"toy.a"() : () -> ()'
    )
    assert isinstance(function, FunctionOp)
    assert function.properties == {"sym_name": StringAttr.get("f g")}
    assert function.attributes == {"x": StringAttr.get("b")}
    assert function.location is NameLoc.get("f")
    (block,) = function.regions[0].blocks
    assert [(value.type, value.name_hint) for value in block.args] == [(I32, "x"), (F32, "y")]
    assert block.args[0].location is NameLoc.get("x")
    (give,) = block.ops
    assert isinstance(give, GiveOp)
    assert give.operands[0] is block.args[0]


def test_a_lone_module_is_the_module() -> None:
    inner = module("module @m attributes {a} {\n}")
    assert inner.attributes == {
        "a": module("module attributes {a} {}").attributes["a"],
        "sym_name": StringAttr.get("m"),
    }
    assert not inner.ops
    assert [op.name for op in module("module {} builtin.module {}").ops] == ["builtin.module"] * 2
    assert not module(" // nothing").ops


def test_names_of_dialects_may_be_left_out_within_their_ops() -> None:
    (function,) = ops("module { module { toy.function @f() { module {} } } }")
    assert [op.name for op in function.walk()] == ["builtin.module", "toy.function", "builtin.module"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("0", None),
        ("arg0", "arg0"),
        ("foo_1", "foo"),
        ("a_b_1_2", "a_b_1"),
        ("_1", None),
        ("$x", "$x"),
        ("-1", "-1"),
        ("x_", "x_"),
        ("_", "_"),
        ("größe", "größe"),
        ("öl", None),
        ("a_1b", "a_1b"),
    ],
)
def test_name_hints(name: str, hint: str | None) -> None:
    assert value_hint(name) == hint
    (op,) = ops(f'%{name} = "toy.a"() : () -> i32')
    assert op.results[0].name_hint == hint


@pytest.mark.parametrize(
    ("name", "hint"), [("bb0", None), ("bb", "bb"), ("loop", "loop"), ("loop_1", "loop"), ("0", None)]
)
def test_hints_of_blocks(name: str, hint: str | None) -> None:
    assert block_hint(name) == hint


def test_values_may_be_used_before_their_definition() -> None:
    user, outer, definition = ops(
        '"toy.a"(%x#1, %x, %x#1) : (i64, i32, i64) -> ()\n'
        '"toy.b"() ({\n  "toy.c"(%x) : (i32) -> ()\n}) : () -> ()\n'
        '%x:2 = "toy.d"() : () -> (i32, i64)'
    )
    (inner,) = outer.regions[0].block.ops
    assert list(user.operands) == [definition.results[1], definition.results[0], definition.results[1]]
    assert inner.operands[0] is definition.results[0]
    assert {use.operation for use in definition.results[0].uses} == {user, inner}


def test_a_name_ends_with_its_region() -> None:
    op, _, last = ops(
        '"toy.a"() ({\n  %x = "toy.b"() : () -> i32\n}, {\n  %x = "toy.b"() : () -> i64\n}) : () -> ()\n'
        '%x = "toy.b"() : () -> f32\n"toy.c"(%x) : (f32) -> ()'
    )
    assert [region.block.first_op.results[0].type for region in op.regions if region.block.first_op] == [I32, I64]
    assert last.operands[0].type is F32


def test_an_isolated_op_has_names_of_its_own() -> None:
    _, function, last = ops(
        '%x = "toy.a"() : () -> i32\ntoy.function @f(%x: i64) {\n  toy.give %x : i64\n}\ntoy.give %x : i32'
    )
    assert last.operands[0].type is I32
    assert [op.operands[0].type for op in function.regions[0].block.ops] == [I64]


def test_blocks_and_successors() -> None:
    (op,) = ops(
        '"toy.a"() ({\n  "toy.b"()[^loop, ^bb2] : () -> ()\n^loop(%i: i32 loc("i"), %j: f32):\n'
        '  "toy.c"(%i)[^loop] : (i32) -> ()\n^bb2:\n}) : () -> ()'
    )
    entry, loop, last = op.regions[0].blocks
    assert entry.first_op is not None
    assert loop.first_op is not None
    assert entry.first_op.successors == (loop, last)
    assert loop.first_op.successors == (loop,)
    assert loop.first_op.operands[0] is loop.args[0]
    assert loop.args[0].location is NameLoc.get("i")
    assert [(value.index, value.type) for value in loop.args] == [(0, I32), (1, F32)]
    assert [block.name_hint for block in (entry, loop, last)] == [None, "loop", None]
    assert last.parent is op.regions[0]


def test_an_empty_region_is_one_without_blocks() -> None:
    (op,) = ops('"toy.a"() ({}, {^bb0:}) : () -> ()')
    assert [len(region.blocks) for region in op.regions] == [0, 1]


def test_the_definition_of_a_type() -> None:
    reader = parser('%x:2 = "toy.a"() : () -> (i32, i64) %x#1 %x#2 %y')
    reader.parse_operation()
    operands = [reader.parse_unresolved_operand() for _ in range(3)]
    assert [reader.defined_type(operand) for operand in operands] == [I64, None, None]
    assert [(operand.name, operand.index) for operand in operands] == [("x", 1), ("x", 2), ("y", 0)]


def test_optional_pieces() -> None:
    reader = parser("{} %x: i32 %y: i32 {a = 1} loc(unknown) 1")
    region = reader.parse_optional_region()
    assert region is not None
    assert reader.parse_optional_region() is None
    first = reader.parse_optional_argument()
    assert first is not None
    assert (first.name, first.type, dict(first.attributes), first.position) == ("x", I32, {}, 3)
    second = reader.parse_optional_argument(with_attributes=True)
    assert second is not None
    assert dict(second.attributes) == {"a": integer(1)}
    assert reader.parse_optional_argument() is None
    assert reader.parse_operands() == []
    assert reader.parse_typed_operands() == []


def test_positions_become_missing_locations() -> None:
    text = '\n  "toy.a"() : () -> ()\n%x = "toy.b"() ({\n\t"toy.c"() : () -> () loc("c")\n}) : () -> i32'
    reader = Parser(REGISTRY, text, "toy.mlir", first_line=11, locate=True)
    first, second = reader.parse_module().ops
    assert first.location is FileLineColLoc.get("toy.mlir", 12, 3)
    assert second.location is FileLineColLoc.get("toy.mlir", 13, 1)
    assert [op.location for op in second.regions[0].block.ops] == [NameLoc.get("c")]
    assert {op.location for op in module(text).ops} == {UNKNOWN_LOC}


ALIASES = """\
!t = tensor<2xi32>
#a = {x = 1 : i32}
%0 = "toy.a"() {b = #a, c = #named} : () -> !t loc(#call)
#call = loc(callsite(#named at #fused))
#named = loc("#call"(#file)) // #fused
#fused = loc(fused<#a>[#file, "a"])
#file = loc(
  "f.py":1:2)
"""


def test_aliases_of_locations_may_come_last() -> None:
    (op,) = ops(ALIASES)
    named = '"#call"("f.py":1:2)'
    assert str(op.location) == f'loc(callsite({named} at fused<{{x = 1 : i32}}>["f.py":1:2, "a"]))'
    assert str(op.attributes["c"]) == f"loc({named})"
    assert str(op.attributes["b"]) == "{x = 1 : i32}"
    assert str(op.results[0].type) == "tensor<2xi32>"


def test_a_long_chain_of_aliases_is_read() -> None:
    count = 20_000
    chain = "\n".join(f'#loc{index} = loc("a"(#loc{index + 1}))' for index in range(count))
    (op,) = ops(f'"toy.a"() : () -> () loc(#loc0)\n{chain}\n#loc{count} = loc("end")')
    location, length = op.location, 0
    while isinstance(location, NameLoc):
        location, length = location.child, length + 1
    assert length == count + 1


def test_resources() -> None:
    reader = parser(
        '"toy.a"() : () -> ()\n{-#\n  dialect_resources: {\n    builtin: {a: "0x01", "b c": "0x"},\n'
        '    other: {a: "0x02"}\n  },\n'
        '  external_resources: {\n    mlir_reproducer: {verify_each: true, pipeline: "x"}\n  }\n#-}'
    )
    reader.parse_module()
    assert reader.resources == {"a": "0x01", "b c": "0x"}


@pytest.mark.parametrize(
    ("text", "place", "message", "under_caret"),
    [
        ('"toy.A"(', "1:9", "operand expected", ""),
        ('%0 = "toy.A"() : ( -> tensor<f32>', "1:20", "type expected", "-> tensor<f32>"),
        ('\n\n\t"toy.A"() : () -> tensor<2xf33>', "3:29", "type expected", "f33>"),
        ('"toy.A"() {a = "no end} : () -> ()', "1:16", "expected a string that ends", '"no end} : () -> ()'),
        ('"toy.a"()', "1:10", "Expected ':' before the types", ""),
        ('"toy.a"() : i32', "1:13", "'(' expected in a function type", "i32"),
        ('"toy.a"(%a %b)', "1:12", "')' expected in operation argument list", "%b)"),
        ('"toy.a"(%a#b) : (i32) -> ()', "1:11", "Expected integer as SSA value tuple index", "#b) : (i32) -> ()"),
        (
            '%x = "toy.a"() : () -> i32\n"toy.b"(%x) : () -> ()',
            "2:15",
            "expected 1 operand types but had 0",
            "() -> ()",
        ),
        ('"toy.b"(%x) : (i32) -> ()', "1:9", "%x is used but never defined", "%x) : (i32) -> ()"),
        (
            '"toy.a"(%y, %x#3) : (i32, i32) -> ()\n%y = "toy.a"() : () -> i32',
            "1:13",
            "%x is used but never defined",
            "%x#3) : (i32, i32) -> ()",
        ),
        (
            '%x = "toy.A"() : () -> i32\n%x = "toy.A"() : () -> i32',
            "2:1",
            "SSA value %x is already defined on line 1",
            '%x = "toy.A"() : () -> i32',
        ),
        (
            '%x = "toy.a"() : () -> i32\n"toy.b"(%x) : (i64) -> ()',
            "2:9",
            "%x is used with type i64 but defined with type i32",
            "%x) : (i64) -> ()",
        ),
        (
            '"toy.b"(%x) : (i64) -> ()\n%x = "toy.a"() : () -> i32',
            "1:9",
            "%x is used with type i64 but defined with type i32",
            "%x) : (i64) -> ()",
        ),
        (
            '"toy.b"(%x) : (i64) -> ()\n"toy.b"(%x) : (f32) -> ()',
            "2:9",
            "%x is used with type f32, but with type i64 on line 1",
            "%x) : (f32) -> ()",
        ),
        (
            '%x = "toy.a"() : () -> i32\n"toy.b"(%x#1) : (i32) -> ()',
            "2:9",
            "%x#1 is used, but %x has 1 results",
            "%x#1) : (i32) -> ()",
        ),
        (
            '"toy.b"(%x#1) : (i32) -> ()\n%x = "toy.a"() : () -> i32',
            "1:9",
            "%x#1 is used, but %x has 1 results",
            "%x#1) : (i32) -> ()",
        ),
        (
            ' %x, %y = "toy.a"() : () -> i32',
            "1:2",
            "Operation has 1 results, but was given 2 to bind.",
            '%x, %y = "toy.a"() : () -> i32',
        ),
        (
            '%x:2 = "toy.a"() : () -> i32',
            "1:1",
            "Operation has 1 results, but was given 2 to bind.",
            '%x:2 = "toy.a"() : () -> i32',
        ),
        (
            '%x = "toy.a"() : () -> ()',
            "1:1",
            "Operation has 0 results, but was given 1 to bind.",
            '%x = "toy.a"() : () -> ()',
        ),
        ('%x:0 = "toy.a"() : () -> ()', "1:4", "expected a name for at least one result", '0 = "toy.a"() : () -> ()'),
        ("%x:a", "1:4", "Expected SSA value tuple size", "a"),
        ("%x, a", "1:5", "Expected result SSA value!", "a"),
        ("%x a", "1:4", "Expected '=' after operation result list", "a"),
        ("%x = {}", "1:6", "operation name expected", "{}"),
        ('"no.such"() : () -> ()', "1:1", "Operation no.such is not registered", '"no.such"() : () -> ()'),
        ("toy.unknown", "1:1", "Operation toy.unknown is not registered", "toy.unknown"),
        ("nothing", "1:1", "Operation nothing is not registered", "nothing"),
        ("toy.a", "1:1", 'Operation toy.a does not have a custom format; write "toy.a"(...)', "toy.a"),
        ("toy.give %x", "1:1", "the type is not known yet", "toy.give %x"),
        ("toy.function @f()", "1:18", "'{' expected before a region", ""),
        ("toy.function @f(i32)", "1:17", "argument expected", "i32)"),
        ("toy.function @f(%x i32)", "1:20", "Expected ':' after the name of an argument", "i32)"),
        ("toy.function @f(%x: i32) {\n^bb0:\n}", "2:1", "invalid block name in region with named arguments", "^bb0:"),
        ("toy.function @f(%x: i32, %x: i32) {}", "1:26", "SSA value %x is already defined on line 1", "%x: i32) {}"),
        (
            '%x = "toy.a"() : () -> i32\ntoy.function @f() {\n  toy.give %x : i32\n}',
            "3:12",
            "%x is used but never defined",
            "%x : i32",
        ),
        (
            '"toy.a"() ({\n^a:\n  "toy.b"() : () -> ()\n^a:\n}) : () -> ()',
            "4:1",
            "re-declaration of block 'a', which is on line 2",
            "^a:",
        ),
        (
            '"toy.a"() ({\n  "toy.b"() [^a] : () -> ()\n}) : () -> ()',
            "2:14",
            "^a is used but never defined",
            "^a] : () -> ()",
        ),
        (
            '"toy.a"() ({\n  "toy.b"() [] : () -> ()\n^a:\n  "toy.b"() ({ "toy.b"() [^a] : () -> () }) : () -> ()\n})',
            "4:27",
            "^a is used but never defined",
            "^a] : () -> () }) : () -> ()",
        ),
        ('"toy.b"() [1] : () -> ()', "1:12", "successor expected", "1] : () -> ()"),
        ('"toy.a"() ({\n^a\n}) : () -> ()', "3:1", "Expected ':' after the name of a block", "}) : () -> ()"),
        ('"toy.a"() ({\n  1', "2:3", "expected an operation, a block or '}'", "1"),
        ('"toy.a"() ({', "1:13", "expected an operation, a block or '}'", ""),
        ('"toy.a"() (1', "1:12", "'{' expected before a region", "1"),
        ("}", "1:1", "expected an operation", "}"),
        ("!a.b = i32", "1:1", "the name of an alias, '!a.b', can't have a '.'", "!a.b = i32"),
        ("#a = 1\n#a = 2", "2:1", "re-declaration of alias '#a'", "#a = 2"),
        ("!a = i32\n!a = i32", "2:1", "re-declaration of alias '!a'", "!a = i32"),
        ("#a = loc(unknown)\n#a = loc(unknown)", "2:1", "re-declaration of alias '#a'", "#a = loc(unknown)"),
        ("#a = 1\n#a = loc(unknown)", "2:6", "re-declaration of alias '#a'", "loc(unknown)"),
        ("#a 1", "1:4", "Expected '=' in the definition of an alias", "1"),
        ("!a = 1", "1:6", "type expected", "1"),
        ('"toy.a"() : () -> () loc(#b)\n#a = loc(unknown)', "1:26", "undefined symbol alias '#b'", "#b)"),
        ('"toy.a"() : () -> () loc(#a)\n#a = 1', "1:26", "undefined symbol alias '#a'", "#a)"),
        ('#a = 1\n"toy.a"() : () -> () loc(#a)', "2:26", "expected an alias of a location", "#a)"),
        ('#a = loc("x"(#a))', "1:16", "the location alias '#a' refers to itself", "))"),
        (
            '"toy.a"() : () -> () loc(#a)\n#a = loc("x"(#b))\n#b = loc(fused["y", #a])',
            "3:23",
            "the location alias '#a' refers to itself",
            "])",
        ),
        ("{-# a: {} #-}", "1:5", "got an unexpected key in file metadata: a", "a: {} #-}"),
        (
            '{-# dialect_resources: {builtin: {a: "0x", a: "0x"}} #-}',
            "1:44",
            "the resource 'a' is there already",
            'a: "0x"}} #-}',
        ),
        ("{-# dialect_resources: {builtin: {a: 1}} #-}", "1:38", "string literal expected as a resource", "1}} #-}"),
        ("{-# 1 #-}", "1:5", "identifier expected in file metadata", "1 #-}"),
        ("{-# dialect_resources {} #-}", "1:23", "Expected ':' after 'dialect_resources'", "{} #-}"),
    ],
)
def test_mistakes(text: str, place: str, message: str, under_caret: str) -> None:
    found = refusal(lambda: module(text))
    assert found[0] == place
    assert found[1].startswith(message)
    assert found[2] == under_caret


def test_lines_in_messages_count_from_the_first_line() -> None:
    text = '%x = "toy.a"() : () -> i32\n%x = "toy.a"() : () -> i32'
    found = refusal(lambda: Parser(REGISTRY, text, "toy.mlir", 11).parse_module())
    assert found[1] == "SSA value %x is already defined on line 11"


TEXTS = [
    """\
builtin.module @m attributes {a = [1 : i64, #toy.shape<2x?>], b = "\\FF"} {
  toy.function @f(%x: tensor<2x?xf32>, %y: !toy.box<i32>) {
    %0, %1 = "toy.a"(%x, %a) <{p = @f::@g}> {q = array<i64: 1, 2>} : (tensor<2x?xf32>, i32) -> (i1, () -> i64)
    %a = "toy.b"(%1) ({
      toy.give %x : tensor<2x?xf32>
    }, {
    ^bb0(%z: i32):
      "toy.c"(%z)[^bb1, ^bb1] : (i32) -> ()
    ^bb1:
      %b, %b_1 = "toy.d"() : () -> (complex<f32>, tuple<none, index>)
    }) : (() -> i64) -> i32
  }
  builtin.module {
  }
}""",
    """\
builtin.module {
  %0 = "toy.a"() : () -> i32 loc("a"("f.py":1:2))
  "toy.b"(%0) ({
  ^bb0(%1: i32 loc(callsite("x" at unknown))):
    toy.give %1 : i32 loc(fused<"m">["x", "y"])
  }) {v = dense} : (i32) -> () loc(unknown)
} loc(unknown)""".replace("{v = dense} ", ""),
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_that_is_printed_as_it_was_read(text: str) -> None:
    assert text_of(module(text), locations="loc(" in text) == text


@pytest.mark.parametrize("text", [*TEXTS, ALIASES])
def test_the_generic_form_means_the_same(text: str) -> None:
    generic = text_of(module(text), generic=True, locations=True)
    assert text_of(module(generic), generic=True, locations=True) == generic
    assert text_of(module(generic)) == text_of(module(text))


@pytest.mark.parametrize("depth", [50, 20_000])
@pytest.mark.parametrize(
    ("head", "begin", "end", "tail"),
    [
        ("", '"toy.A"() ({', "}) : () -> ()\n", ""),
        ("", "module {", "}", ""),
        ('"toy.A"() {a = ', "[", "]", "} : () -> ()"),
        ('"toy.A"() {a = ', "{a = ", "}", "} : () -> ()"),
        ('"toy.A"() : () -> ', "tensor<", ">", ""),
        ('"toy.A"() : () -> () loc("a"', '("a"', ")", ")"),
    ],
)
def test_deep_nesting_is_read_or_too_deep(depth: int, head: str, begin: str, end: str, tail: str) -> None:
    inner = "f32" if begin == "tensor<" else "1" if begin == "{a = " else ""
    text = head + begin * depth + inner + end * depth + tail
    if depth > 1000:
        with pytest.raises(RecursionError):
            module(text)
    else:
        assert module(text).ops


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f'%{index} = "toy.a"() ({{}}) : () -> i32' for index in range(10_000)),
        "\n".join(f'"toy.a"() ({{\n  %x = "toy.b"(%y{i}) : (i32) -> i32\n}}) : () -> ()' for i in range(5_000))
        + "\n".join(f'%y{index} = "toy.b"() : () -> i32' for index in range(5_000)),
        '"toy.a"() ({\n"toy.b"()[^x] : () -> ()\n^x('
        + ", ".join(f"%{i}: i32" for i in range(20_000))
        + "):\n}) : () -> ()",
        ", ".join(f"%{index}" for index in range(20_000))
        + ' = "toy.a"() : () -> ('
        + ", ".join(["i32"] * 20_000)
        + ")",
        '"toy.a"() ({' + "\n".join(f'"toy.b"()[^x{i}] : () -> ()\n^x{i}:' for i in range(10_000)) + "}) : () -> ()",
    ],
)
def test_long_texts_take_linear_time(text: str) -> None:
    start = time.process_time()
    module(text, locate=True)
    assert time.process_time() - start < 10
