"""Functions on texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyverno.compiler.migration.expressions.concatenation import as_text
from pyverno.compiler.migration.expressions.functions.arguments import (
    Translation,
    constant_text,
    list_cel,
    made,
    text_cel,
    unsupported,
)
from pyverno.compiler.migration.expressions.value import BOOLEAN, TEXT, Value, constant
from pyverno.compiler.migration.expressions.wildcards import fits
from pyverno.compiler.migration.schema import Presence, Schema, Shape
from pyverno.compiler.migration.text import Cel, CelType, call, compare, literal, ternary
from pyverno.value import replace

if TYPE_CHECKING:
    from pyverno.compiler.migration.expressions.translator import Translator

__all__ = ["FUNCTIONS"]

_LIST_OF_TEXTS: Final = Schema(Shape.LIST, Presence.REQUIRED, body={"items": {"type": "string"}})
_GROUP: Final = re.compile(r"\$(?:(\d)(?!\w)|\{(\d)\})")


def _test(method: str, name: str) -> Translation:
    def translate(translator: Translator, text: Value, other: Value) -> Value:
        cel = text_cel(translator, name, text).method(method, text_cel(translator, name, other), returns=CelType.BOOL)
        return made(cel, BOOLEAN, text, other)

    return translate


def _ascii(method: str, name: str) -> Translation:
    def translate(translator: Translator, text: Value) -> Value:
        translator.names.note("ascii-only", translator.path, f"{name}() changes letters of ASCII only in CEL")
        return made(text_cel(translator, name, text).method(method, returns=CelType.STRING), TEXT, text)

    return translate


def split(translator: Translator, text: Value, separator: Value) -> Value:
    """`split` gives the same parts in CEL, characters for an empty separator too."""
    cel = text_cel(translator, "split", text).method(
        "split", text_cel(translator, "split", separator), returns=CelType.LIST
    )
    return made(cel, _LIST_OF_TEXTS, text, separator)


def join(translator: Translator, separator: Value, items: Value) -> Value:
    """`join` takes a list of texts."""
    cel = list_cel(translator, "join", items).method(
        "join", text_cel(translator, "join", separator), returns=CelType.STRING
    )
    return made(cel, TEXT, separator, items)


def replace_all(translator: Translator, text: Value, old: Value, new: Value) -> Value:
    """`replace_all` replaces every occurrence, as `replace` of CEL."""
    parts = (text_cel(translator, "replace_all", each) for each in (old, new))
    cel = text_cel(translator, "replace_all", text).method("replace", *parts, returns=CelType.STRING)
    return made(cel, TEXT, text, old, new)


def replace_some(translator: Translator, text: Value, old: Value, new: Value, count: Value) -> Value:
    """`replace` takes a number of replacements, which CEL takes too."""
    if not count.is_constant or not isinstance(count.constant, int):
        raise unsupported(translator, "replace", "with a count that is computed")
    parts = [text_cel(translator, "replace", each) for each in (old, new)]
    cel = text_cel(translator, "replace", text).method("replace", *parts, count.cel, returns=CelType.STRING)
    return made(cel, TEXT, text, old, new)


def trim(translator: Translator, text: Value, cutset: Value) -> Value:
    """`trim` cuts a set of characters off, which a regular expression does."""
    characters = constant_text(translator, "trim", cutset, "characters")
    if not characters:
        return text
    inner = "".join(f"\\{each}" if each in "\\]^-[" else each for each in characters)
    pattern = f"^[{inner}]+|[{inner}]+$"
    cel = call("regex.replace", text_cel(translator, "trim", text), literal(pattern), literal(""))
    return made(replace(cel, type=CelType.STRING), TEXT, text)


def trim_prefix(translator: Translator, text: Value, prefix: Value) -> Value:
    """`trim_prefix` cuts a prefix off, once."""
    start = constant_text(translator, "trim_prefix", prefix, "a prefix")
    cel = text_cel(translator, "trim_prefix", text)
    has = cel.method("startsWith", literal(start), returns=CelType.BOOL)
    rest = cel.method("substring", literal(len(start)), returns=CelType.STRING)
    return made(ternary(has, rest, cel), TEXT, text)


def truncate(translator: Translator, text: Value, length: Value) -> Value:
    """`truncate` keeps the first characters."""
    if not length.is_constant or not isinstance(length.constant, int | float):
        raise unsupported(translator, "truncate", "with a length that is computed")
    size = max(int(length.constant), 0)
    cel = text_cel(translator, "truncate", text)
    is_longer = compare(call("size", cel, returns=CelType.INT), ">", literal(size))
    return made(
        ternary(is_longer, cel.method("substring", literal(0), literal(size), returns=CelType.STRING), cel), TEXT, text
    )


def regex_match(translator: Translator, pattern: Value, text: Value) -> Value:
    """`regex_match` finds the expression anywhere, as `matches`; both read RE2."""
    cel = _scalar(translator, "regex_match", text)
    return made(
        cel.method("matches", text_cel(translator, "regex_match", pattern), returns=CelType.BOOL),
        BOOLEAN,
        text,
        pattern,
    )


def regex_replace_all(translator: Translator, pattern: Value, text: Value, new: Value) -> Value:
    """`regex_replace_all` writes groups as `$1`, CEL as `\\1`."""
    written = constant_text(translator, "regex_replace_all", new, "a replacement")
    changed = _GROUP.sub(lambda found: "\\" + (found[1] or found[2]), written.replace("\\", "\\\\"))
    if "$" in changed:
        raise unsupported(translator, "regex_replace_all", "with groups by name")
    return _regex_replace(translator, pattern, text, changed)


def regex_replace_all_literal(translator: Translator, pattern: Value, text: Value, new: Value) -> Value:
    """`regex_replace_all_literal` writes the replacement as it is."""
    written = constant_text(translator, "regex_replace_all_literal", new, "a replacement")
    return _regex_replace(translator, pattern, text, written.replace("\\", "\\\\"))


def _regex_replace(translator: Translator, pattern: Value, text: Value, new: str) -> Value:
    cel = call(
        "regex.replace",
        _scalar(translator, "regex_replace_all", text),
        text_cel(translator, "regex_replace_all", pattern),
        literal(new),
        returns=CelType.STRING,
    )
    return made(cel, TEXT, text, pattern)


def pattern_match(translator: Translator, pattern: Value, text: Value) -> Value:
    """`pattern_match` takes a wildcard, which is a test of CEL when it is written in the rule."""
    written = constant_text(translator, "pattern_match", pattern, "a pattern")
    return made(fits(_scalar(translator, "pattern_match", text), written), BOOLEAN, text)


def to_string(translator: Translator, value: Value) -> Value:
    """`to_string` writes scalars as JSON does; null is the text `null`."""
    if value.is_text and value.is_always:
        return value
    return Value(as_text(value, translator.path), TEXT, fails=value.fails)


def to_boolean(translator: Translator, text: Value) -> Value:
    """`to_boolean` reads `true` and `false` in any case; anything else is an error, as `bool()` makes one."""
    cel = text_cel(translator, "to_boolean", text).method("lowerAscii", returns=CelType.STRING)
    known = compare(cel, "in", literal(["true", "false"]))
    wrong = Cel(f"'not ' + {cel.text}", CelType.STRING)
    chosen = ternary(known, compare(cel, "==", literal("true")), call("bool", wrong, returns=CelType.BOOL))
    return replace(made(chosen, BOOLEAN, text), fails=True, nulls=())


def equal_fold(translator: Translator, left: Value, right: Value) -> Value:
    """`equal_fold` compares texts but for the case of letters."""
    translator.names.note("ascii-only", translator.path, "equal_fold() folds letters of ASCII only in CEL")
    sides = [
        constant(each.constant.lower()).cel
        if each.is_constant and isinstance(each.constant, str)
        else text_cel(translator, "equal_fold", each).method("lowerAscii", returns=CelType.STRING)
        for each in (left, right)
    ]
    return made(compare(sides[0], "==", sides[1]), BOOLEAN, left, right)


def base64_encode(translator: Translator, text: Value) -> Value:
    """`base64_encode` encodes the bytes of a text."""
    inner = call("bytes", text_cel(translator, "base64_encode", text))
    return made(call("base64.encode", inner, returns=CelType.STRING), TEXT, text)


def _hash(name: str) -> Translation:
    def translate(translator: Translator, text: Value) -> Value:
        return made(call(f"hash.{name}", text_cel(translator, name, text), returns=CelType.STRING), TEXT, text)

    return translate


def semver_compare(translator: Translator, version: Value, versions: Value) -> Value:
    """`semver_compare` holds a version against a range, which is taken apart here; one that does not parse is 0.0.0."""
    from pyverno.compiler.migration.expressions.versions import in_range

    written = constant_text(translator, "semver_compare", versions, "a range")
    text = text_cel(translator, "semver_compare", version)
    tested = in_range(text, written)
    if tested is None:
        raise unsupported(translator, "semver_compare", f"with the range `{written}`")
    return made(tested, BOOLEAN, version)


def _scalar(translator: Translator, name: str, value: Value) -> Cel:
    """Return an argument that can be a text or a number, as a text."""
    if value.shape in (Shape.INT, Shape.INT_OR_STRING):
        return call("string", value.cel, returns=CelType.STRING)
    return text_cel(translator, name, value)


FUNCTIONS: Final[Mapping[str, Translation]] = {
    "starts_with": _test("startsWith", "starts_with"),
    "ends_with": _test("endsWith", "ends_with"),
    "to_upper": _ascii("upperAscii", "to_upper"),
    "to_lower": _ascii("lowerAscii", "to_lower"),
    "split": split,
    "join": join,
    "replace_all": replace_all,
    "replace": replace_some,
    "trim": trim,
    "trim_prefix": trim_prefix,
    "truncate": truncate,
    "regex_match": regex_match,
    "regex_replace_all": regex_replace_all,
    "regex_replace_all_literal": regex_replace_all_literal,
    "pattern_match": pattern_match,
    "to_string": to_string,
    "to_boolean": to_boolean,
    "equal_fold": equal_fold,
    "base64_encode": base64_encode,
    "sha256": _hash("sha256"),
    "sha1": _hash("sha1"),
    "md5": _hash("md5"),
    "semver_compare": semver_compare,
}
