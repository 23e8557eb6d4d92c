"""Every library function documents itself, and its examples are true."""

import re
from collections.abc import Iterator

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.errors import BudgetExceededError, EvaluationError
from pyverno.lang.cel import CompileError, Environment
from pyverno.lang.cel.declarations import Declaration
from pyverno.lang.cel.libraries.strings import STRINGS
from pyverno.lang.cel.presets import (
    authz_environment,
    kubernetes_environment,
)
from pyverno.lang.cel.values import equals
from pyverno.policy.kinds import Family, kinds_of

ENVIRONMENTS = (
    *map(environment_of_kind, sorted(kinds_of(Family.CEL))),
    kubernetes_environment((1, 37), mutation=True),
    authz_environment("Envoy"),
    authz_environment("HTTP"),
)

KYVERNO = environment_of_kind("ValidatingPolicy")
KUBERNETES = kubernetes_environment()
EXAMPLE = re.compile("CEL: (.*) ⇒ (.*)")


def documented() -> Iterator[tuple[Environment, str, Declaration]]:
    """Yield every function once, with an environment that has it."""
    seen = set()
    for environment in ENVIRONMENTS:
        for library in environment.libraries:
            for declaration in library.declarations:
                if id(declaration) not in seen:
                    seen.add(id(declaration))
                    yield environment, library.name, declaration


def test_every_function_has_documentation() -> None:
    """Each function has at least one sentence of documentation."""
    assert [declaration.name for _, _, declaration in documented() if not declaration.doc.strip()] == []


def test_every_documented_example_is_true() -> None:
    """`CEL: expression ⇒ value` holds in an environment that has the function."""
    wrong = []
    examples = 0
    for environment, library, declaration in documented():
        for text, expected in EXAMPLE.findall(declaration.doc):
            examples += 1
            value = environment.compile(text).evaluate({})
            if not equals(value, environment.compile(expected).evaluate({})):
                wrong.append(f"{library}: {text} is {value!r}")
    assert wrong == []
    assert examples > 180


ADDRESS = "network address parse error during conversion from string: "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'abc'.charAt(5)", "index out of range: 5"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("'%d'.format([dyn('a')])", "error during formatting: decimal clause can only be used on integers, was given"),
        ("('%' + 's').format([])", "index 0 out of range"),
        ("('%' + 'z').format([])", "index 0 out of range"),
        ("'%b'.format([dyn('a')])", "error during formatting: only integers and bools can be formatted as binary, was"),
        ("'%x'.format([dyn(1.0)])", "error during formatting: only integers, byte buffers, and strings can be"),
        ("[1, 2].slice(1, 5)", "cannot slice(1, 5), list is length 2"),
        ("[].min()", "min called on empty list"),
        ("math.bitShiftLeft(1, -1)", "math.bitShiftLeft() negative offset: -1"),
        ("base64.decode('!')", "illegal base64 data at input byte 0"),
        ("quantity('1x')", "quantities must match the regular expression"),
        ("quantity('1.5').asInteger()", "cannot convert value to integer"),
        ("semver('v1.2')", "No Major.Minor.Patch elements found"),
        ("ip('1.2.3')", 'IP Address "1.2.3" parse error during conversion from string'),
        ("ip('::ffff:1.2.3.4')", 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
        ("ip('fe80::1%eth0')", 'IP address "fe80::1%eth0" with zone value is not allowed'),
        ("cidr('10.0.0.0/33')", "network address parse error during conversion from string"),
        ("url('x y')", "URL parse error during conversion from string"),
        ("'a'.find('[' + '')", "Illegal regex: "),
        ("regex.extract('a', '(a)(b)')", "regular expression has more than one capturing group"),
        ("regex.replace('a', 'a', r'\\1')", "replacement string references group 1 but regex has only 0 group(s)"),
        ("image('nginx:')", "could not parse reference: nginx:"),
        ("json.unmarshal(1)", "unsupported type conversion from 'int' to string"),
        ("json.unmarshal([1])", "type conversion error from list to 'string'"),
        ("cidr('a' + 'b')", f"{2 * ADDRESS}netip.ParsePrefix(\"ab\"): no '/'"),
        ("cidr('10.0.0.0/' + '33')", f'{2 * ADDRESS}netip.ParsePrefix("10.0.0.0/33"): prefix length out of range'),
        ("cidr('10.0.0.0/' + '01')", f'{2 * ADDRESS}netip.ParsePrefix("10.0.0.0/01"): bad bits after slash: "01"'),
        ("cidr('x/' + '8')", f'{2 * ADDRESS}netip.ParsePrefix("x/8"): ParseAddr("x"): unable to parse IP'),
        ("[dyn({'a': 1})].max()", "no such overload: max(list)"),
        ("[dyn({'a': 1})].isSorted()", "no such overload: isSorted(list)"),
        ("[dyn(null)].isSorted()", "no such overload: isSorted(list)"),
        ("gzip.compress(1)", "unsupported type conversion from 'int' to string"),
        ("gzip.compress(b'a')", "type conversion error from Bytes to 'string'"),
        ("json.marshal({true: 1})", "type conversion error from bool to 'string'"),
        (
            "listObjToMap([{'n': 'a'}, {'n': 'b'}], [{'v': 1}], 'n', 'v')",
            "listObjToMap must take lists of equal length",
        ),
        ("random('[')", "error parsing regexp"),
        ("x509.decode('')", "failed to decode PEM block"),
        ("resource.get('v1', 'configmaps', 'ns', 'cm')", "failed to get resource: no cluster is available here"),
        ("http.get('https://x')", "request failed: HTTP calls are not available here"),
    ],
)
def test_library_errors_name_the_fault(text: str, expected: str) -> None:
    """Errors have the words of cel-go, Kubernetes or Kyverno."""
    with pytest.raises(EvaluationError) as caught:
        KYVERNO.compile(text).evaluate({})
    assert caught.value.message.startswith(expected)


@pytest.mark.parametrize(
    ("version", "works", "fails"),
    [
        ((1, 27), "authorizer_free()", None),
        ((1, 28), "optional.of(1).hasValue()", "sets.contains([1], [1])"),
        ((1, 29), "sets.contains([1], [1])", "isIP('1.2.3.4')"),
        ((1, 29), "'%s'.format(['a']) == 'a'", "'abc'.reverse() == 'cba'"),
        ((1, 30), "isIP('1.2.3.4')", "format.dns1123Label() == format.dns1123Label()"),
        ((1, 31), "!format.dns1123Label().validate('a').hasValue()", "[1].all(i, v, v > i)"),
        ((1, 32), "[1].all(i, v, v > i)", "isSemver('1.2.3')"),
        ((1, 33), "isSemver('1.2.3')", "[1].distinct() == [1]"),
        ((1, 34), "[1].distinct() == [1]", "[1].includes(1)"),
        ((1, 37), "[1].includes(1)", "jsonpatch.escapeKey('a') == 'a'"),
    ],
)
def test_libraries_come_with_their_kubernetes_version(version: tuple[int, int], works: str, fails: str | None) -> None:
    """A function exists from the version that introduced it, not before."""
    environment = kubernetes_environment(version)
    if works != "authorizer_free()":
        assert environment.compile(works).evaluate({}) is True
    if fails is not None:
        with pytest.raises(CompileError):
            environment.compile(fails)


def test_literals_are_checked_at_compile_time() -> None:
    """Since 1.29 wrong duration, timestamp and regex literals do not compile, nor do mixed lists."""
    for text, message in (
        ("duration('x') == duration('1s')", "invalid duration argument"),
        ("timestamp('x') == timestamp(0)", "invalid timestamp argument"),
        ("'a'.matches('[')", "invalid matches argument"),
        ("[1, 2.0] == []", "expected type 'int' but found 'double'"),
        ("[1, dyn(2)] == []", "expected type 'int' but found 'dyn'"),
    ):
        with pytest.raises(CompileError, match=re.escape(message)):
            KUBERNETES.compile(text)
    assert KUBERNETES.compile("'%s %d'.format(['a', 1])").evaluate({}) == "a 1"
    assert environment_of_kind("GeneratingPolicy").compile("[1, 'a'].size()").evaluate({}) == 2


def test_format_has_a_locale_before_version_4() -> None:
    """Kubernetes' version 2 groups digits and prints powers; version 4 does not."""
    text = "'%.2f %.1e %s'.format([dyn(1234.5), dyn(1500.0), dyn([1.5, 'a'])])"
    old = Environment((*KUBERNETES.libraries[:1], STRINGS.at(2)))
    new = Environment((*KUBERNETES.libraries[:1], STRINGS.at(4)))
    assert old.compile(text).evaluate({}) == '1,234.50 1.5\u202f×\u202f10⁰³ [1.500000, "a"]'
    assert new.compile(text).evaluate({}) == "1234.50 1.5e+03 [1.5, a]"


def test_texts_and_lists_are_limited_when_they_are_made() -> None:
    """The limits hold for every function that creates a text or list."""
    for text in (
        "'a'.replace('', 'b').replace('b', string(lists.range(1000000)))",
        "lists.range(2000000).size() > 0",
        "random('[a-z]{60000}{60000}').size() > 0",
    ):
        with pytest.raises((BudgetExceededError, EvaluationError, CompileError)):
            KYVERNO.compile(text).evaluate({})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('json.marshal(json.unmarshal(\'{"a": null, "b": [null]}\'))', '{"a":null,"b":[null]}'),
        ("json.marshal(null)", "0"),
        ("json.marshal(optional.none())", "null"),
        ("json.marshal({'a': duration('1h')})", '{"a":3600000000000}'),
        ("json.marshal([dyn(quantity('0.5')), dyn(semver('1.2.3-rc1'))])", '["500m","1.2.3-rc1"]'),
        ("json.marshal([dyn(ip('1.1.1.1')), dyn(cidr('10.0.0.0/8'))])", '["1.1.1.1","10.0.0.0/8"]'),
        ("json.marshal({'a': image('nginx')})", '{"a":"nginx"}'),
        ("json.marshal(user.parseServiceAccount('system:serviceaccount:a:b'))", '{"name":"b","namespace":"a"}'),
        ("json.marshal(user.parseServiceAccount('x'))", "{}"),
    ],
)
def test_values_are_marshalled_as_kyverno_does(text: str, expected: str) -> None:
    """Nulls of documents stay null, durations are nanoseconds, values of libraries are their texts."""
    assert expected == KYVERNO.compile(text).evaluate({})


def test_a_gzip_bomb_is_refused() -> None:
    """Decompression stops at a hundred times the data."""
    import gzip

    bomb = gzip.compress(b"a" * 20_000_000)
    program = KYVERNO.with_variables({"d": kyverno_type("bytes")}).compile("gzip.decompress(d).size()")
    with pytest.raises(EvaluationError, match="exceeds"):
        program.evaluate({"d": bomb})


def kyverno_type(name: str) -> object:
    """Return a type by name."""
    from pyverno.lang.cel.types import parse_type

    return parse_type(name)


def test_or_value_keeps_plain_values_in_kyverno() -> None:
    """`orValue` returns a plain value unchanged; it catches no errors; ivpol has no such macro."""
    assert KYVERNO.compile("{'a': 1}.orValue({'b': 2})").evaluate({}) == {"a": 1}
    with pytest.raises(EvaluationError, match="no such key: a"):
        KYVERNO.compile("{}.a.orValue(1)").evaluate({})
    with pytest.raises(CompileError):
        environment_of_kind("ImageValidatingPolicy").compile("{'a': 1}.orValue({'b': 2})")


def test_numbers_out_of_text_are_doubles() -> None:
    """Parsed JSON and YAML hold doubles, so arithmetic with an int is an error and comparison is not."""
    assert KYVERNO.compile("json.unmarshal('5') == 5 && yaml.parse('a: 1').a == 1").evaluate({}) is True
    with pytest.raises(EvaluationError, match="no such overload"):
        KYVERNO.compile("json.unmarshal('5') + 1").evaluate({})


def test_service_accounts_have_capital_fields() -> None:
    """The struct has Name and Namespace, nothing else compiles."""
    program = KYVERNO.compile("parseServiceAccount('system:serviceaccount:ns:sa').Namespace")
    assert program.evaluate({}) == "ns"
    with pytest.raises(CompileError, match="undefined field 'name'"):
        KYVERNO.compile("user.parseServiceAccount('x').name")
