"""The metadata at the end of a file, `{-# dialect_resources: {...} #-}`: constants apart from their ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfconvert.schema.ir.lexer import STRING

if TYPE_CHECKING:
    from tfconvert.schema.ir.attribute_parser import AttributeParser


def parse_file_metadata(parser: AttributeParser) -> dict[str, str]:
    """Parses file metadata.

    Args:
        parser: The parser, before `{-#`.

    Returns:
        The resources of the dialect `builtin`, by their names: hexadecimal digits.
    """
    resources: dict[str, str] = {}

    def section() -> None:
        position = parser.pos
        kind = _key(parser)
        if kind not in ("dialect_resources", "external_resources"):
            parser.raise_error(f"got an unexpected key in file metadata: {kind}", position)
        parser.parse_comma_separated_list(
            parser.Delimiter.BRACES, lambda: _owner(parser, resources if kind == "dialect_resources" else None)
        )

    parser.parse_comma_separated_list(parser.Delimiter.METADATA, section, " in file metadata")
    return resources


def _owner(parser: AttributeParser, resources: dict[str, str] | None) -> None:
    """Parses `dialect: {name: value, ...}`; all but the dialect `builtin`'s is skipped."""
    target = resources if _key(parser) == "builtin" else None
    parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _resource(parser, target))


def _resource(parser: AttributeParser, resources: dict[str, str] | None) -> None:
    position = parser.pos
    name = _key(parser)
    if resources is None:
        parser.parse_attribute()
        return
    digits = parser.parse_str_literal(" as a resource")
    if name in resources:
        parser.raise_error(f"the resource '{name}' is there already", position)
    resources[name] = digits


def _key(parser: AttributeParser) -> str:
    key = parser.parse_str_literal() if parser.token[0] == STRING else parser.parse_identifier(" in file metadata")
    parser.parse_punctuation(":", f" after '{key}'")
    return key
