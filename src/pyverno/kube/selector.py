"""Label selectors, as maps (`matchLabels`, `matchExpressions`) and as text (`a=b,c in (x, y)`).

Rules and messages are apimachinery's. With wildcards, the keys and values of `matchLabels` are first expanded
against the labels of the object, as Kyverno does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pyverno.errors import ValueSyntaxError
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.labelsyntax import label_key_problems, label_value_problems
from pyverno.kube.wildcard import compile_wildcard, has_wildcard
from pyverno.lazyregex import regex

__all__ = ["LabelTest", "Labels", "compile_selector", "format_selector", "parse_selector_text"]

Labels: TypeAlias = Mapping[str, str]
LabelTest: TypeAlias = Callable[[Labels], bool]
"""A compiled selector."""

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_INTEGER = regex(r"[+-]?[0-9]{1,40}")
_BINARY = "in, notin, =, ==, !=, gt, lt"


def compile_selector(selector: JSONObject | None, *, wildcards: bool = False) -> LabelTest:
    """Compile a LabelSelector; an absent one selects nothing, an empty one everything.

    Raises `ValueSyntaxError` for keys, values or operators that Kubernetes refuses. With `wildcards` a text that only
    turns out wrong after expansion raises when the test runs.

    >>> test = compile_selector({"matchLabels": {"app*": "web-*"}}, wildcards=True)
    >>> test({"app.x": "web-1"}), test({})
    (True, False)
    """
    if selector is None:
        return lambda _labels: False
    tests: list[LabelTest] = []
    for key, value in _read_match_labels(selector).items():
        if wildcards and (has_wildcard(key) or has_wildcard(value)):
            tests.append(_expanding(key, value))
        else:
            tests.append(_requirement(key, "=", [value]))
    tests.extend(map(_expression, _expressions(selector)))
    return _all_of(tests)


def parse_selector_text(text: str) -> LabelTest:
    """Compile the textual form used in URLs and on command lines; raises `ValueSyntaxError` with apimachinery's text.

    >>> parse_selector_text("a=b,!c,d notin (x,y)")({"a": "b", "d": "z"})
    True
    """
    return _all_of(_TextReader(text).read())


def format_selector(selector: JSONObject | None) -> str:
    """Write a LabelSelector in its textual form; the empty text selects everything, and so does an absent selector.

    Raises `ValueSyntaxError` for operators that Kubernetes refuses.

    >>> expressions = [{"key": "tier", "operator": "In", "values": ["web", "db"]}, {"key": "old", "operator": "Exists"}]
    >>> format_selector({"matchLabels": {"app": "shop"}, "matchExpressions": expressions})
    'app=shop,tier in (db,web),old'
    """
    if selector is None:
        return ""
    compile_selector(selector)
    parts = [f"{key}={value}" for key, value in _read_match_labels(selector).items()]
    for each in _expressions(selector):
        key, values = each["key"], ",".join(sorted(each.get("values") or ()))
        match each["operator"]:
            case "Exists":
                parts.append(key)
            case "DoesNotExist":
                parts.append(f"!{key}")
            case operator:
                parts.append(f"{key} {_OPERATORS[operator]} ({values})")
    return ",".join(parts)


def _all_of(tests: list[LabelTest]) -> LabelTest:
    if not tests:
        return lambda _labels: True
    if len(tests) == 1:
        return tests[0]
    fixed = tuple(tests)
    return lambda labels: all(test(labels) for test in fixed)


def _read_match_labels(selector: JSONObject) -> dict[str, str]:
    found: JSON = selector.get("matchLabels")
    if found is None:
        return {}
    if isinstance(found, dict) and all(isinstance(v, str) and isinstance(k, str) for k, v in found.items()):
        return found
    raise ValueSyntaxError("matchLabels must be a map of strings")


def _expressions(selector: JSONObject) -> list[JSONObject]:
    found: JSON = selector.get("matchExpressions")
    if found is None:
        return []
    if isinstance(found, list) and all(isinstance(item, dict) for item in found):
        return found
    raise ValueSyntaxError("matchExpressions must be a list of maps")


def _expression(expression: JSONObject) -> LabelTest:
    key: JSON = expression.get("key") or ""
    written: JSON = expression.get("operator") or ""
    values: JSON = expression.get("values") or []
    if not (isinstance(key, str) and isinstance(written, str) and isinstance(values, list)):
        raise ValueSyntaxError("a match expression needs the texts `key` and `operator` and the list `values`")
    if not all(isinstance(value, str) for value in values):
        raise ValueSyntaxError("the values of a match expression must be strings")
    operator = _OPERATORS.get(written)
    if operator is None:
        raise ValueSyntaxError(f"{_quote(written)} is not a valid label selector operator")
    return _requirement(key, operator, values)


def _expanding(key: str, value: str) -> LabelTest:
    fits_key, fits_value = compile_wildcard(key), compile_wildcard(value)
    plain_key, plain_value = _without_wildcards(key), _without_wildcards(value)

    def test(labels: Labels) -> bool:
        found = _first_fit(fits_key, fits_value, labels)
        if found is not None:
            _requirement(found[0], "=", [found[1]])
            return True
        return _requirement(plain_key, "=", [plain_value])(labels)

    return test


def _first_fit(
    fits_key: Callable[[str], bool], fits_value: Callable[[str], bool], labels: Labels
) -> tuple[str, str] | None:
    # Upstream takes any label that fits; the order of keys makes the choice repeatable.
    for key in sorted(labels):
        if fits_key(key) and fits_value(labels[key]):
            return key, labels[key]
    return None


def _without_wildcards(text: str) -> str:
    return text.replace("*", "0").replace("?", "0")


def _requirement(key: str, operator: str, values: list[str]) -> LabelTest:
    """Compile one requirement after checking it as apimachinery's NewRequirement does."""
    problems = [f"key: Invalid value: {_quote(key)}: {'; '.join(found)}"] if (found := label_key_problems(key)) else []
    problems.extend(_count_problems(operator, values))
    for index, value in enumerate(values):
        wrong = label_value_problems(value)
        if wrong:
            problems.append(f"values[{index}][{key}]: Invalid value: {_quote(value)}: {'; '.join(wrong)}")
    if problems:
        raise ValueSyntaxError(problems[0] if len(problems) == 1 else f"[{', '.join(dict.fromkeys(problems))}]")
    return _label_test(key, operator, frozenset(values))


def _count_problems(operator: str, values: list[str]) -> list[str]:
    prefix = f"values: Invalid value: {encode(values or None)}: "
    if operator in ("in", "notin") and not values:
        return [prefix + "for 'in', 'notin' operators, values set can't be empty"]
    if operator in ("=", "==", "!=") and len(values) != 1:
        return [prefix + "exact-match compatibility requires one single value"]
    if operator in ("exists", "!") and values:
        return [prefix + "values set must be empty for exists and does not exist"]
    if operator in ("gt", "lt"):
        return [
            f"values[{index}]: Invalid value: {_quote(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
            for index, value in enumerate(values)
            if _integer(value) is None
        ]
    return []


def _label_test(key: str, operator: str, values: frozenset[str]) -> LabelTest:
    if operator in ("in", "=", "=="):
        return lambda labels: key in labels and labels[key] in values
    if operator in ("notin", "!="):
        return lambda labels: key not in labels or labels[key] not in values
    if operator == "exists":
        return lambda labels: key in labels
    if operator == "!":
        return lambda labels: key not in labels
    bound = _integer(next(iter(values))) or 0
    sign = 1 if operator == "gt" else -1

    def compare(labels: Labels) -> bool:
        number = _integer(labels[key]) if key in labels else None
        return number is not None and (number - bound) * sign > 0

    return compare


def _integer(text: str) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


class _TextReader:
    """Reads the textual form, piece by piece."""

    _PIECE = regex(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]++")

    def __init__(self, text: str) -> None:
        self._pieces: list[str] = [*self._PIECE.findall(text), ""]
        self._at = 0

    def read(self) -> list[LabelTest]:
        """Return one test per requirement."""
        tests: list[LabelTest] = []
        while True:
            piece = self._peek()
            if not piece:
                return tests
            if not self._is_word(piece) and piece != "!":
                raise ValueSyntaxError(f"found '{piece}', expected: !, identifier, or 'end of string'")
            try:
                tests.append(self._requirement())
            except ValueSyntaxError as error:
                raise ValueSyntaxError(f"unable to parse requirement: {error.message}") from None
            piece = self._take()
            if not piece:
                return tests
            if piece != ",":
                raise ValueSyntaxError(f"found '{piece}', expected: ',' or 'end of string'")
            following = self._peek()
            if not self._is_word(following) and following != "!":
                raise ValueSyntaxError(f"found '{following}', expected: identifier after ','")

    def _peek(self) -> str:
        return self._pieces[self._at]

    def _take(self) -> str:
        piece = self._pieces[self._at]
        self._at = min(self._at + 1, len(self._pieces) - 1)
        return piece

    @staticmethod
    def _is_word(piece: str) -> bool:
        return bool(piece) and piece not in ("==", "!=", "=", "!", "(", ")", ",", "<", ">")

    def _requirement(self) -> LabelTest:
        key = self._take()
        is_negated = key == "!"
        if is_negated:
            key = self._take()
        if not self._is_word(key):
            raise ValueSyntaxError(f"found '{key}', expected: identifier")
        found = label_key_problems(key)
        if found:
            raise ValueSyntaxError(f"key: Invalid value: {_quote(key)}: {'; '.join(found)}")
        if is_negated:
            return _requirement(key, "!", [])
        if self._peek() in ("", ","):
            return _requirement(key, "exists", [])
        operator = self._take()
        if operator in ("in", "notin"):
            return _requirement(key, operator, sorted(self._values()))
        if operator in ("=", "==", "!=", ">", "<"):
            return _requirement(key, {">": "gt", "<": "lt"}.get(operator, operator), [self._value()])
        raise ValueSyntaxError(f"found '{operator}', expected: {_BINARY}")

    def _value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        piece = self._take()
        if self._is_word(piece):
            return piece
        raise ValueSyntaxError(f"found '{piece}', expected: identifier")

    def _values(self) -> set[str]:
        opening = self._take()
        if opening != "(":
            raise ValueSyntaxError(f"found '{opening}' expected: '('")
        first = self._peek()
        if first == ")":
            self._take()
            return {""}
        if first != "," and not self._is_word(first):
            raise ValueSyntaxError(f"found '{first}', expected: ',', ')' or identifier")
        values = self._list()
        self._take()
        return values

    def _list(self) -> set[str]:
        """Read up to the closing parenthesis; empty places between commas are the empty value."""
        values: set[str] = set()
        while True:
            piece = self._take()
            if self._is_word(piece):
                values.add(piece)
                following = self._peek()
                if following == ")":
                    return values
                if following != ",":
                    raise ValueSyntaxError(f"found '{following}', expected: ',' or ')'")
            elif piece == ",":
                if not values:
                    values.add("")
                following = self._peek()
                if following == ")":
                    return values | {""}
                if following == ",":
                    self._take()
                    values.add("")
            else:
                raise ValueSyntaxError(f"found '{piece}', expected: ',', or identifier")


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
