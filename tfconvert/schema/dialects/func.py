"""MLIR's `func` dialect: functions, returns and calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from tfconvert.schema.ir.attribute import Attribute
from tfconvert.schema.ir.attributes import ArrayAttr, DictionaryAttr, StringAttr, SymbolRefAttr, symbol_text
from tfconvert.schema.ir.block import Region
from tfconvert.schema.ir.builtin import SYMBOL_NAME, SymbolTable
from tfconvert.schema.ir.dialect import Dialect
from tfconvert.schema.ir.errors import VerifyError
from tfconvert.schema.ir.locations import UNKNOWN_LOC, Location
from tfconvert.schema.ir.operation import NO_ATTRIBUTES, Operation
from tfconvert.schema.ir.traits import Trait
from tfconvert.schema.ir.types import FunctionType
from tfconvert.schema.ir.values import BlockArgument, Value

if TYPE_CHECKING:
    from tfconvert.schema.ir.builtin import ModuleOp
    from tfconvert.schema.ir.parser import Argument, Parser
    from tfconvert.schema.ir.printer import Printer

# Attributes of functions, arguments and results that describe a module's interface beyond types. Written texts have
# those that begin with `tfconvert.`; those with `tf.` are for the exporter alone.
STATE = "tfconvert.state"
"""The variable whose value is an argument before a call, or a result after it."""
WEIGHT = "tfconvert.weight"
"""The name of the constant that must be passed as an argument."""
INITIAL = "tf.initial"
"""An argument's initial or only value: the constant that is written beside the text."""
INITIALIZER = "tfconvert.initializer"
"""Marks the function that is called once, before all others."""
INITIALIZE = "initialize"
"""That function's name."""

FUNCTION_TYPE = "function_type"
VISIBILITY = "sym_visibility"
ARGUMENT_ATTRIBUTES = "arg_attrs"
RESULT_ATTRIBUTES = "res_attrs"

_IN_THE_TEXT = (SYMBOL_NAME, FUNCTION_TYPE, VISIBILITY, ARGUMENT_ATTRIBUTES, RESULT_ATTRIBUTES)

_VISIBILITIES = ("public", "private", "nested")


class FuncOp(Operation):
    """`func.func`: a function; one without a block is only declared."""

    __slots__ = ()

    NAME: ClassVar[str] = "func.func"
    TRAITS: ClassVar[frozenset[Trait]] = frozenset({Trait.ISOLATED_FROM_ABOVE, Trait.SYMBOL})
    HAS_ASSEMBLY: ClassVar[bool] = True
    PROPERTIES: ClassVar[tuple[str, ...]] = _IN_THE_TEXT

    @classmethod
    def of(
        cls,
        name: str,
        function_type: FunctionType,
        region: Region,
        visibility: str | None = None,
        properties: Mapping[str, Attribute] = NO_ATTRIBUTES,
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
        location: Location = UNKNOWN_LOC,
    ) -> FuncOp:
        """Returns a function.

        Args:
            name: Its symbol.
            function_type: The types of its arguments and results.
            region: Its body, or no blocks.
            visibility: `public`, `private` or `nested`; `None` means public.
            properties: Its other properties, `arg_attrs` and `res_attrs`.
            attributes: Its attributes.
            location: The location of the op.
        """
        own: dict[str, Attribute] = {SYMBOL_NAME: StringAttr.get(name), FUNCTION_TYPE: function_type}
        if visibility is not None:
            own[VISIBILITY] = StringAttr.get(visibility)
        return cls.create(properties=own | {**properties}, attributes=attributes, regions=(region,), location=location)

    @property
    def sym_name(self) -> str:
        """The symbol."""
        name = self.properties[SYMBOL_NAME]
        assert isinstance(name, StringAttr)
        return name.data

    @sym_name.setter
    def sym_name(self, name: str) -> None:
        self.properties[SYMBOL_NAME] = StringAttr.get(name)

    @property
    def function_type(self) -> FunctionType:
        """The types of arguments and results."""
        kind = self.properties[FUNCTION_TYPE]
        assert isinstance(kind, FunctionType)
        return kind

    @function_type.setter
    def function_type(self, kind: FunctionType) -> None:
        self.properties[FUNCTION_TYPE] = kind

    @property
    def sym_visibility(self) -> str | None:
        """`public`, `private` or `nested`, `None` if it is not stated."""
        visibility = self.properties.get(VISIBILITY)
        return visibility.data if isinstance(visibility, StringAttr) else None

    @sym_visibility.setter
    def sym_visibility(self, visibility: str) -> None:
        self.properties[VISIBILITY] = StringAttr.get(visibility)

    @property
    def body(self) -> Region:
        return self.regions[0]

    @property
    def args(self) -> tuple[BlockArgument, ...]:
        """The arguments of the entry block."""
        return self.regions[0].blocks[0].args

    @property
    def is_declaration(self) -> bool:
        """Whether there is no body."""
        return not self.regions[0].blocks

    @property
    def arg_attrs(self) -> ArrayAttr | None:
        """The attributes of the arguments, a dictionary each, or `None`."""
        found = self.properties.get(ARGUMENT_ATTRIBUTES)
        return found if isinstance(found, ArrayAttr) else None

    @arg_attrs.setter
    def arg_attrs(self, attributes: ArrayAttr | None) -> None:
        self._set(ARGUMENT_ATTRIBUTES, attributes)

    @property
    def res_attrs(self) -> ArrayAttr | None:
        """The attributes of the results, a dictionary each, or `None`."""
        found = self.properties.get(RESULT_ATTRIBUTES)
        return found if isinstance(found, ArrayAttr) else None

    @res_attrs.setter
    def res_attrs(self, attributes: ArrayAttr | None) -> None:
        self._set(RESULT_ATTRIBUTES, attributes)

    def _set(self, name: str, attributes: ArrayAttr | None) -> None:
        if attributes is None:
            self.properties.pop(name, None)
        else:
            self.properties[name] = attributes

    def verify_(self) -> None:
        if not isinstance(self.properties.get(SYMBOL_NAME), StringAttr):
            raise VerifyError("func.func needs the property 'sym_name', a string")
        if not isinstance(self.properties.get(FUNCTION_TYPE), FunctionType):
            raise VerifyError("func.func needs the property 'function_type', a function type")
        if self.sym_visibility not in (None, *_VISIBILITIES):
            raise VerifyError(f"the visibility of a function is one of {', '.join(_VISIBILITIES)}")
        kind = self.function_type
        for what, attributes, count in (
            (ARGUMENT_ATTRIBUTES, self.arg_attrs, len(kind.inputs)),
            (RESULT_ATTRIBUTES, self.res_attrs, len(kind.results)),
        ):
            if attributes is not None and not _are_dictionaries(attributes, count):
                raise VerifyError(f"func.func needs the property '{what}' to be {count} dictionaries")
        if len(self.regions) != 1:
            raise VerifyError(f"func.func has one region, found {len(self.regions)}")
        if not self.is_declaration and kind.inputs != tuple([argument.type for argument in self.args]):
            raise VerifyError("the entry block's arguments must have the types of the function's inputs")

    def print(self, printer: Printer) -> None:
        """Prints ` visibility @name(%arg0: type {...}) -> type attributes {...} {...}`."""
        if self.sym_visibility is not None:
            printer.write(f" {self.sym_visibility}")
        printer.write(f" {symbol_text(self.sym_name)}(")
        self._print_arguments(printer)
        printer.write(")")
        self._print_results(printer)
        others = {name: value for name, value in self.attributes.items() if name not in _IN_THE_TEXT}
        if others:
            printer.write(" attributes ")
            printer.dictionary(others)
        if not self.is_declaration:
            printer.write(" ")
            printer.region(self.body, with_entry_arguments=False)

    def _print_arguments(self, printer: Printer) -> None:
        attributes = _dictionaries(self.arg_attrs)
        for index, kind in enumerate(self.function_type.inputs):
            own = attributes[index] if attributes else NO_ATTRIBUTES
            printer.write(", " if index else "")
            if self.is_declaration:
                printer.attribute(kind)
                printer.optional_attr_dict(own)
            else:
                printer.argument(self.args[index], own)

    def _print_results(self, printer: Printer) -> None:
        results, attributes = self.function_type.results, _dictionaries(self.res_attrs)
        if not results:
            if self.is_declaration:
                printer.write(" -> ()")
            return
        printer.write(" -> ")
        if len(results) == 1 and not attributes and not isinstance(results[0], FunctionType):
            printer.attribute(results[0])
            return
        printer.write("(")
        for index, result in enumerate(results):
            printer.write(", " if index else "")
            printer.attribute(result)
            printer.optional_attr_dict(attributes[index] if attributes else NO_ATTRIBUTES)
        printer.write(")")

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        visibility = next((word for word in _VISIBILITIES if parser.parse_optional_keyword(word)), None)
        name = parser.parse_symbol_name()
        inputs, arguments = _parse_inputs(parser)
        results = _parse_results(parser)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_optional_region(arguments)
        if region is None:
            region = Region()
        properties: dict[str, Attribute] = {}
        for key, sides in ((ARGUMENT_ATTRIBUTES, inputs), (RESULT_ATTRIBUTES, results)):
            if any(own for _, own in sides):
                properties[key] = ArrayAttr.get([DictionaryAttr.get(own) for _, own in sides])
        kind = FunctionType.get([each for each, _ in inputs], [each for each, _ in results])
        return cls.of(name, kind, region, visibility, properties=properties, attributes=attributes)


# The type of an argument or a result, and its attributes.
_Typed = tuple[Attribute, Mapping[str, Attribute]]


def _parse_inputs(parser: Parser) -> tuple[list[_Typed], list[Argument]]:
    """Parses `(%x: type {...}, ...)`, or `(type {...}, ...)` of a declaration, which names no arguments."""
    arguments: list[Argument] = []

    def parse_input() -> _Typed:
        position = parser.pos
        argument = parser.parse_optional_argument(with_attributes=True)
        if argument is not None:
            arguments.append(argument)
            return argument.type, argument.attributes
        if arguments:
            parser.raise_error("expected all arguments to have names, or none", position)
        return _parse_typed(parser)

    position = parser.pos
    inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_input)
    if arguments and len(arguments) != len(inputs):
        parser.raise_error("expected all arguments to have names, or none", position)
    return inputs, arguments


def _parse_results(parser: Parser) -> list[_Typed]:
    """Parses `-> type`, `-> (type {...}, ...)` or nothing."""
    if parser.parse_optional_punctuation("->") is None:
        return []
    results = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_typed(parser))
    return [(parser.parse_type(), NO_ATTRIBUTES)] if results is None else results


def _parse_typed(parser: Parser) -> _Typed:
    kind = parser.parse_type()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_optional_location()
    return kind, attributes


def _are_dictionaries(attributes: ArrayAttr, count: int) -> bool:
    return len(attributes) == count and all(isinstance(each, DictionaryAttr) for each in attributes)


def _dictionaries(attributes: ArrayAttr | None) -> list[Mapping[str, Attribute]]:
    """Returns the attributes of each argument or result; an empty list if none has any."""
    found = [] if attributes is None else [each.data for each in attributes if isinstance(each, DictionaryAttr)]
    return found if any(found) else []


def functions_of(module: ModuleOp) -> dict[str, FuncOp]:
    """Returns a module's functions by name."""
    return {op.sym_name: op for op in module.ops if isinstance(op, FuncOp)}


def defined_functions(module: ModuleOp) -> dict[str, FuncOp]:
    """Returns a module's functions that have bodies by name."""
    return {name: function for name, function in functions_of(module).items() if not function.is_declaration}


class ReturnOp(Operation):
    """`func.return`: ends a function with its results."""

    __slots__ = ()

    NAME: ClassVar[str] = "func.return"
    TRAITS: ClassVar[frozenset[Trait]] = frozenset({Trait.TERMINATOR})
    HAS_ASSEMBLY: ClassVar[bool] = True

    @classmethod
    def of(cls, values: Sequence[Value] = (), location: Location = UNKNOWN_LOC) -> ReturnOp:
        return cls.create(operands=values, location=location)

    def verify_(self) -> None:
        function = self.parent_op()
        if not isinstance(function, FuncOp):
            raise VerifyError("func.return must be directly in a func.func")
        if list(function.function_type.results) != self.operand_types:
            raise VerifyError("the returned values must have the types of the function's results")

    def print(self, printer: Printer) -> None:
        """Prints ` {...} %a, %b : type, type`."""
        printer.optional_attr_dict(self.attributes)
        printer.typed_operands(self.operands)

    @classmethod
    def parse(cls, parser: Parser) -> ReturnOp:
        attributes = parser.parse_optional_attr_dict()
        return cls.create(operands=parser.parse_typed_operands(), attributes=attributes)


class CallOp(Operation):
    """`func.call`: calls a function of the module."""

    __slots__ = ()

    NAME: ClassVar[str] = "func.call"
    PROPERTIES: ClassVar[tuple[str, ...]] = ("callee",)
    HAS_ASSEMBLY: ClassVar[bool] = True

    @classmethod
    def of(
        cls, callee: str, operands: Sequence[Value], result_types: Sequence[Attribute], location: Location = UNKNOWN_LOC
    ) -> CallOp:
        """Returns a call."""
        properties = {"callee": SymbolRefAttr.get(callee)}
        return cls.create(operands=operands, result_types=result_types, properties=properties, location=location)

    @property
    def callee(self) -> str:
        """The symbol of the function."""
        symbol = self.properties["callee"]
        assert isinstance(symbol, SymbolRefAttr)
        return symbol.root

    def verify_(self) -> None:
        if not isinstance(self.properties.get("callee"), SymbolRefAttr):
            raise VerifyError("func.call needs the property 'callee', a symbol")

    def verify_symbols(self, table: SymbolTable) -> None:
        """Checks that the callee is a function of the types of the operands and results.

        Raises:
            VerifyError: It is not.
        """
        function = table.lookup(self.callee)
        if function is None:
            raise VerifyError(f"'@{self.callee}' could not be found in symbol table")
        if not isinstance(function, FuncOp):
            raise VerifyError(f"'@{self.callee}' does not reference a valid function")
        kind = function.function_type
        for what, expected, found in (
            ("operand", kind.inputs, self.operand_types),
            ("result", kind.results, self.result_types),
        ):
            if len(expected) != len(found):
                raise VerifyError(f"incorrect number of {what}s for callee")
            for index, (one, other) in enumerate(zip(expected, found, strict=True)):
                if one is not other:
                    raise VerifyError(
                        f"{what} type mismatch: expected {what} type {one}, "
                        f"but provided {other} for {what} number {index}"
                    )

    def print(self, printer: Printer) -> None:
        """Prints ` @callee(%a) {...} : (types) -> types`."""
        printer.write(f" {symbol_text(self.callee)}(")
        printer.operands(self.operands)
        printer.write(")")
        printer.optional_attr_dict(self.attributes)
        printer.write(" : ")
        printer.functional_type(self)

    @classmethod
    def parse(cls, parser: Parser) -> CallOp:
        callee = parser.parse_symbol_name()
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        kind = parser.parse_function_type()
        call = cls.of(callee, parser.resolve_operands(operands, kind.inputs, position), kind.results)
        call.attributes.update(attributes)
        return call


FUNC = Dialect("func", (FuncOp, ReturnOp, CallOp))
