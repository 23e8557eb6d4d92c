"""Kubernetes' libraries: quantities, versions, URLs, regular expressions, lists, JSON patch keys.

IP addresses are in `addresses`, formats in `formats`, the authorizer in `authorizer`. This module must never know an
object's schema.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, Final

from pyverno.errors import EvaluationError, ValueSyntaxError
from pyverno.kube.quantity import Quantity, parse_quantity, try_quantity
from pyverno.kube.semver import Version, parse_version
from pyverno.lang.cel.declarations import Declaration, Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.gourl import GoUrl, parse_request_uri, parse_url
from pyverno.lang.cel.libraries.costs import by_element, by_regex, by_size
from pyverno.lang.cel.libraries.lists import COMPARABLE
from pyverno.lang.cel.regex import Pattern
from pyverno.lang.cel.runtime.arithmetic import add
from pyverno.lang.cel.runtime.evaluation import ITEM_BYTES, Evaluation
from pyverno.lang.cel.types import opaque
from pyverno.lang.cel.values import Duration, Uint, Value, compare, type_name
from pyverno.lang.cel.work import comparing, instant, reading, walking
from pyverno.value import dataclass

__all__ = ["JSON_PATCH", "LIST_AGGREGATES", "QUANTITIES", "REGEX_FIND", "SEMVER", "URL", "URLS"]

# quantities


@function("quantity", "(string) -> kubernetes.Quantity", cost=by_size(), work=reading(per_step=32))
def quantity(text: str) -> Quantity:
    """The quantity that a text names.

    CEL: quantity('1Gi').isGreaterThan(quantity('512Mi')) ⇒ true
    """
    try:
        return parse_quantity(text)
    except ValueSyntaxError as error:
        # its texts quote nothing
        raise EvaluationError(error.message) from None


@function("isQuantity", "(string) -> bool", cost=by_size(), work=reading(per_step=32))
def is_quantity(text: str) -> bool:
    """Whether a text names a quantity.

    CEL: isQuantity('1.5GiB') ⇒ false
    """
    return try_quantity(text) is not None


@function("sign", "(kubernetes.Quantity) -> int", work=instant)
def quantity_sign(value: Quantity) -> int:
    """-1, 0 or 1.

    CEL: sign(quantity('-5')) ⇒ -1
    """
    return value.sign()


@function("isGreaterThan", "kubernetes.Quantity.(kubernetes.Quantity) -> bool", work=instant)
def quantity_is_greater_than(value: Quantity, other: Quantity) -> bool:
    """Whether a quantity is greater than another.

    CEL: quantity('2').isGreaterThan(quantity('1500m')) ⇒ true
    """
    return value.compare(other) > 0


@function("isLessThan", "kubernetes.Quantity.(kubernetes.Quantity) -> bool", work=instant)
def quantity_is_less_than(value: Quantity, other: Quantity) -> bool:
    """Whether a quantity is less than another.

    CEL: quantity('1').isLessThan(quantity('1500m')) ⇒ true
    """
    return value.compare(other) < 0


@function("compareTo", "kubernetes.Quantity.(kubernetes.Quantity) -> int", work=instant)
def quantity_compare_to(value: Quantity, other: Quantity) -> int:
    """-1, 0 or 1 for less, equal and greater.

    CEL: quantity('1k').compareTo(quantity('1000')) ⇒ 0
    """
    return value.compare(other)


@function("asApproximateFloat", "kubernetes.Quantity.() -> double", work=instant)
def as_approximate_float(value: Quantity) -> float:
    """The value as double, possibly rounded.

    CEL: quantity('1500m').asApproximateFloat() ⇒ 1.5
    """
    return value.approximate()


@function("isInteger", "kubernetes.Quantity.() -> bool", work=instant)
def is_integer(value: Quantity) -> bool:
    """Whether `asInteger` works.

    CEL: quantity('1500m').isInteger() ⇒ false
    """
    return value.whole() is not None


@function("asInteger", "kubernetes.Quantity.() -> int", work=instant)
def as_integer(value: Quantity) -> int:
    """The value as int; an error when it is not whole or too large.

    CEL: quantity('2k').asInteger() ⇒ 2000
    """
    whole = value.whole()
    if whole is None:
        raise EvaluationError("cannot convert value to integer")
    return whole


def _as_quantity(value: Value) -> Quantity:
    return value if isinstance(value, Quantity) else parse_quantity(str(value))


@function("add", "kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity",
          "kubernetes.Quantity.(int) -> kubernetes.Quantity", work=instant)  # fmt: skip
def quantity_add(value: Quantity, other: Value) -> Quantity:
    """The sum with a quantity or int.

    CEL: quantity('1Gi').add(1) == quantity('1073741825') ⇒ true
    """
    return value.add(_as_quantity(other))


@function("sub", "kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity",
          "kubernetes.Quantity.(int) -> kubernetes.Quantity", work=instant)  # fmt: skip
def quantity_sub(value: Quantity, other: Value) -> Quantity:
    """The difference to a quantity or int.

    CEL: quantity('1k').sub(quantity('1')) == quantity('999') ⇒ true
    """
    return value.subtract(_as_quantity(other))


QUANTITIES: Final = Library(
    "kubernetes.quantity",
    (
        quantity, is_quantity, quantity_sign, quantity_is_greater_than, quantity_is_less_than, quantity_compare_to,
        as_approximate_float, is_integer, as_integer, quantity_add, quantity_sub,
    ),
    types=(opaque("kubernetes.Quantity"),),
    introduced="1.28",
    doc="Quantities such as 500m or 1Gi.",
)  # fmt: skip


# versions


def _version(text: str, normalize: Value = False) -> Version:
    try:
        return parse_version(_normalized(text) if normalize else text)
    except ValueSyntaxError as error:
        quotes = '"' in error.message
        raise OperandError("the text is no semantic version" if quotes else error.message, error.message) from None


def _normalized(text: str) -> str:
    """Drop a leading v and leading zeros, and fill up missing parts."""
    parts = text.removeprefix("v").split(".", 2)
    for position, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[position] = stripped if stripped[:1].isdigit() and stripped[:1].isascii() else "0" + stripped
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


@function("semver", "(string) -> kubernetes.Semver", cost=by_size(), work=walking())
def semver(text: str) -> Version:
    """The semantic version that a text names.

    CEL: semver('1.2.3').minor() ⇒ 2
    """
    return _version(text)


@function("semver", "(string, bool) -> kubernetes.Semver", cost=by_size(), since=(1,), work=walking())
def semver_normalized(text: str, normalize: Value) -> Version:
    """The version, after dropping a leading v and leading zeros and filling up missing parts.

    CEL: semver('v1.2', true).minor() ⇒ 2
    """
    return _version(text, normalize)


def _is_version(text: str, normalize: Value = False) -> bool:
    try:
        _version(text, normalize)
    except EvaluationError:
        return False
    return True


@function("isSemver", "(string) -> bool", cost=by_size(), work=walking())
def is_semver(text: str) -> bool:
    """Whether a text names a semantic version.

    CEL: isSemver('v1.2.0') ⇒ false
    """
    return _is_version(text)


@function("isSemver", "(string, bool) -> bool", cost=by_size(), since=(1,), work=walking())
def is_semver_normalized(text: str, normalize: Value) -> bool:
    """Whether a text names a version after normalizing.

    CEL: isSemver('v1.2', true) ⇒ true
    """
    return _is_version(text, normalize)


def _version_order(one: Version, other: Version) -> int:
    return (one > other) - (one < other)


@function("isGreaterThan", "kubernetes.Semver.(kubernetes.Semver) -> bool", work=instant)
def version_is_greater_than(value: Version, other: Version) -> bool:
    """Whether a version comes after another.

    CEL: semver('1.10.0').isGreaterThan(semver('1.9.0')) ⇒ true
    """
    return _version_order(value, other) > 0


@function("isLessThan", "kubernetes.Semver.(kubernetes.Semver) -> bool", work=instant)
def version_is_less_than(value: Version, other: Version) -> bool:
    """Whether a version comes before another.

    CEL: semver('1.0.0-rc.1').isLessThan(semver('1.0.0')) ⇒ true
    """
    return _version_order(value, other) < 0


@function("compareTo", "kubernetes.Semver.(kubernetes.Semver) -> int", work=instant)
def version_compare_to(value: Version, other: Version) -> int:
    """-1, 0 or 1 for before, equal and after.

    CEL: semver('1.0.0').compareTo(semver('1.0.0+build')) ⇒ 0
    """
    return _version_order(value, other)


@function("major", "kubernetes.Semver.() -> int", work=instant)
def major(value: Version) -> int:
    """The first number.

    CEL: semver('1.2.3').major() ⇒ 1
    """
    return value.major


@function("minor", "kubernetes.Semver.() -> int", work=instant)
def minor(value: Version) -> int:
    """The second number.

    CEL: semver('1.2.3').minor() ⇒ 2
    """
    return value.minor


@function("patch", "kubernetes.Semver.() -> int", work=instant)
def patch(value: Version) -> int:
    """The third number.

    CEL: semver('1.2.3').patch() ⇒ 3
    """
    return value.patch


SEMVER: Final = Library(
    "kubernetes.Semver",
    (
        semver, semver_normalized, is_semver, is_semver_normalized, version_is_greater_than, version_is_less_than,
        version_compare_to, major, minor, patch,
    ),
    types=(opaque("kubernetes.Semver"),),
    introduced="1.33",
    doc="Semantic versions.",
)  # fmt: skip


# URLs


@dataclass(frozen=True, slots=True)
class URL:
    """A parsed URL; equal to another when their texts are."""

    cel_type: ClassVar[str] = "kubernetes.URL"
    parsed: GoUrl


def _url_work(operands: tuple[Value, ...]) -> int:
    return len(operands[0].parsed.text)


@function("url", "(string) -> kubernetes.URL", cost=by_size(), work=walking(steps=2))
def url(text: str) -> URL:
    """The URL that a text names: an absolute URI or an absolute path.

    CEL: url('https://x:8080/a?b=c').getHost() ⇒ 'x:8080'
    """
    try:
        parse_request_uri(text)
        return URL(parse_url(text))
    except ValueSyntaxError as error:
        problem = "URL parse error during conversion from string"
        raise OperandError(problem, f"{problem}: {error.message}") from None


@function("isURL", "(string) -> bool", work=walking())
def is_url(text: str) -> bool:
    """Whether a text names a URL.

    CEL: isURL('x') ⇒ false
    """
    try:
        parse_request_uri(text)
    except ValueSyntaxError:
        return False
    return True


@function("getScheme", "kubernetes.URL.() -> string", work=instant)
def get_scheme(value: URL) -> str:
    """The scheme in lower case.

    CEL: url('HTTPS://x/').getScheme() ⇒ 'https'
    """
    return value.parsed.scheme


@function("getHost", "kubernetes.URL.() -> string", work=instant)
def get_host(value: URL) -> str:
    """The host with its port.

    CEL: url('https://[::1]:80/').getHost() ⇒ '[::1]:80'
    """
    return value.parsed.host


@function("getHostname", "kubernetes.URL.() -> string", work=instant)
def get_hostname(value: URL) -> str:
    """The host without port and brackets.

    CEL: url('https://[::1]:80/').getHostname() ⇒ '::1'
    """
    return value.parsed.hostname


@function("getPort", "kubernetes.URL.() -> string", work=instant)
def get_port(value: URL) -> str:
    """The port, empty when there is none.

    CEL: url('https://x:8080/').getPort() ⇒ '8080'
    """
    return value.parsed.port


@function("getEscapedPath", "kubernetes.URL.() -> string", work=_url_work)
def get_escaped_path(value: URL) -> str:
    """The path as it goes over the wire.

    CEL: url('https://x/a b').getEscapedPath() ⇒ '/a%20b'
    """
    return value.parsed.escaped_path


@function("getQuery", "kubernetes.URL.() -> map(string, list(string))", work=_url_work)
def get_query(value: URL) -> dict[str, list[str]]:
    """The query parameters, each with its values.

    CEL: url('https://x/?b=c&b=d').getQuery() ⇒ {'b': ['c', 'd']}
    """
    return value.parsed.query


URLS: Final = Library(
    "kubernetes.urls",
    (url, is_url, get_scheme, get_host, get_hostname, get_port, get_escaped_path, get_query),
    types=(opaque("kubernetes.URL"),),
    introduced="1.0",
    doc="URLs.",
)


# regular expressions


def _pattern(evaluation: Evaluation, function: str, text: str, subject: str) -> Pattern:
    try:
        return evaluation.pattern(function, text, subject)
    except EvaluationError as error:
        raise OperandError(f"Illegal regex: {error.message}", f"Illegal regex: {error.detailed}") from None


@function("find", "string.(string) -> string", cost=by_regex(), metered=True, pattern=1, work=instant)
def find(evaluation: Evaluation, text: str, pattern: str) -> str:
    """The first match of a pattern, empty when there is none.

    CEL: 'abc 123'.find('[0-9]+') ⇒ '123'
    """
    match = _pattern(evaluation, "find", pattern, text).search(text)
    return (match.group(0) or "") if match is not None else ""


@function(
    "findAll",
    "string.(string) -> list(string)",
    "string.(string, int) -> list(string)",
    cost=by_regex(),
    metered=True,
    pattern=1,
    work=instant,
)
def find_all(evaluation: Evaluation, text: str, pattern: str, limit: int = -1) -> list[str]:
    """The matches of a pattern, at most `limit` of them when that is not negative.

    CEL: 'a1b22'.findAll('[0-9]+', 1) ⇒ ['1']
    """
    found: list[str] = []
    budget = evaluation.runtime.budget
    for match in _pattern(evaluation, "findAll", pattern, text).matches(text, budget):
        if len(found) == limit:
            break
        found.append(match.group(0) or "")
        budget.produce(ITEM_BYTES + match.end() - match.start())
    return found


REGEX_FIND: Final = Library(
    "kubernetes.regex", (find, find_all), introduced="1.0", doc="Finding by regular expressions."
)


# lists


@function("isSorted", *(f"list({kind}).() -> bool" for kind in COMPARABLE), cost=by_element, work=walking())
def is_sorted(items: Value) -> bool:
    """Whether no element is greater than the next one.

    CEL: [1, 2, 2].isSorted() ⇒ true
    """
    return all(compare(one, two) != 1 for one, two in pairwise(items))


_SUMMED: Final = frozenset({"int", "uint", "double", Duration.cel_type})


def _sum(kind: str, zero: Value) -> Declaration:
    def total(items: Value) -> Value:
        """The sum of the elements, 0 for an empty list.

        CEL: [1, 2, 3].sum() ⇒ 6
        """
        result = zero if not items or type_name(items[0]) not in _SUMMED else type(items[0])(0)
        for item in items:
            result = add(result, item)
        return result

    return function("sum", f"list({kind}).() -> {kind}", cost=by_element, work=walking())(total)


def _extreme(items: Value, wanted: int, name: str) -> Value:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    best = items[0]
    if isinstance(best, (dict, list, tuple)):
        raise EvaluationError(f"no such overload: {name}(list)")
    for item in items[1:]:
        if compare(best, item) == wanted:
            best = item
    return best


@function("min", *(f"list({kind}).() -> {kind}" for kind in COMPARABLE), cost=by_element, work=walking())
def least(items: Value) -> Value:
    """The least element; an error for an empty list.

    CEL: [2, 1, 3].min() ⇒ 1
    """
    return _extreme(items, 1, "min")


@function("max", *(f"list({kind}).() -> {kind}" for kind in COMPARABLE), cost=by_element, work=walking())
def greatest(items: Value) -> Value:
    """The greatest element; an error for an empty list.

    CEL: [2, 1, 3].max() ⇒ 3
    """
    return _extreme(items, -1, "max")


@function("indexOf", "list(A).(A) -> int", cost=by_element, metered=True, work=comparing())
def index_of(evaluation: Evaluation, items: Value, wanted: Value) -> int:
    """The index of the first equal element, -1 when there is none.

    CEL: ['a', 'b'].indexOf('b') ⇒ 1
    """
    return next((position for position, item in enumerate(items) if evaluation.are_equal(item, wanted)), -1)


@function("lastIndexOf", "list(A).(A) -> int", cost=by_element, metered=True, work=comparing())
def last_index_of(evaluation: Evaluation, items: Value, wanted: Value) -> int:
    """The index of the last equal element, -1 when there is none.

    CEL: [1, 2, 1].lastIndexOf(1) ⇒ 2
    """
    found = (place for place in reversed(range(len(items))) if evaluation.are_equal(items[place], wanted))
    return next(found, -1)


@function("includes", "dyn.(dyn) -> bool", cost=by_element, since=(1,), metered=True, work=comparing())
def includes(evaluation: Evaluation, container: Value, wanted: Value) -> bool:
    """Whether a list has an element, or a single value equals another.

    CEL: [1, 2].includes(2) ⇒ true
    """
    if isinstance(container, (list, tuple)):
        return any(evaluation.are_equal(item, wanted) for item in container)
    return evaluation.are_equal(container, wanted)


LIST_AGGREGATES: Final = Library(
    "kubernetes.lists",
    (
        is_sorted, _sum("int", 0), _sum("uint", Uint(0)), _sum("double", 0.0), _sum("duration", Duration(0)),
        least, greatest, index_of, last_index_of, includes,
    ),
    introduced="1.0",
    doc="Sums, extremes and positions in lists.",
)  # fmt: skip


# JSON patch


@function("jsonpatch.escapeKey", "(string) -> string", cost=by_size(), work=reading(per_step=64))
def escape_key(text: str) -> str:
    """A map key as a JSON pointer wants it.

    CEL: jsonpatch.escapeKey('a/b~c') ⇒ 'a~1b~0c'
    """
    return text.replace("~", "~0").replace("/", "~1")


JSON_PATCH: Final = Library(
    "kubernetes.jsonpatch", (escape_key,), introduced="1.32", doc="Keys of JSON pointers (mutations only)."
)
