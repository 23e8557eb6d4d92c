"""Edges of the functions on texts."""

import pytest

from pyverno.errors import EvaluationError
from pyverno.lang.jmespath.functions import strings
from pyverno.lang.runtime import Runtime
from tests.unit.lang.jmespath.hosts import evaluate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("equal_fold('K', '\u212a')", True),
        ("equal_fold('ß', '\u1e9e')", True),
        ("equal_fold('Σ', 'ς')", True),
        ("equal_fold('i', '\u0130')", False),
        ("replace('aaa', 'a', 'b', `-1`)", "bbb"),
        ("replace('aaa', 'a', 'b', `0`)", "aaa"),
        ("replace('aaa', 'a', 'b', `1e30`)", "bbb"),
        ("replace_all('ab', '', '-')", "-a-b-"),
        ("to_upper('ŉ')", "ŉ"),
        ("to_lower('İΣ')", "iσ"),
        ("trim('abc', '')", "abc"),
        ("split('', ',')", [""]),
        ("split('', '')", []),
        ("pattern_match('1.5', `1.50`)", True),
        ("label_match(`{}`, `{}`)", True),
        ('label_match(`{"a": 1}`, `{"a": true}`)', False),
        ("path_canonicalize('./a/')", "a"),
        ("path_canonicalize('/../x')", "/x"),
        ("path_canonicalize('a/..')", "."),
        ("path_canonicalize('///')", "/"),
        ("truncate('abc', `-1`)", ""),
        ("truncate('abc', `1e30`)", "abc"),
        ("to_boolean('FALSE')", False),
    ],
)
def test_texts(text, expected):
    """Characters are code points, folding and case are one to one."""
    assert expected == evaluate(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("regex_match('^16777216$', `16777217`)", True),
        ("regex_match('^100000000000000000000$', `1e20`)", True),
        ("regex_match('é$', 'caf\u00e9')", True),
        ("regex_replace_all('a*', 'baac', '-')", "-b-c-"),
        ("regex_replace_all('', 'éa', '-')", "-é-a-"),
        ("regex_replace_all('(?P<n>a)', 'a', '${n}$$$1x$')", "a$$"),
        ("regex_replace_all('a', 'aba', `1.5`)", "1.5b1.5"),
        ("regex_replace_all_literal('[Hh]el?', 'Hello hel', '$1')", "$1lo $1"),
    ],
)
def test_regular_expressions_have_the_syntax_of_re2(text, expected):
    """RE2 syntax, Go's replacement rules."""
    assert expected == evaluate(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("regex_match('a)', 'x')", "error parsing regexp: unexpected ): `a)`"),
        ("regex_match('[a', 'x')", "error parsing regexp: missing closing ]: `[a`"),
        ("regex_match('*', 'x')", "error parsing regexp: missing argument to repetition operator: `*`"),
        ("regex_match('a**', 'x')", "error parsing regexp: invalid nested repetition operator: `**`"),
        ("regex_match('a{1001}', 'x')", "error parsing regexp: invalid repeat count: `{1001}`"),
        ("regex_match('(?=a)', 'x')", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        (
            "regex_replace_all('(', 'x', 'y')",
            "JMESPath function 'regex_replace_all': error parsing regexp: missing closing ): `(`",
        ),
        (f"regex_match('{'a' * 1025}', 'x')", "error parsing regexp: pattern is longer than 1024 bytes"),
    ],
)
def test_bad_patterns_are_refused_with_the_texts_of_go(text, message):
    """Long ones are refused before they are compiled."""
    with pytest.raises(EvaluationError) as caught:
        evaluate(text)
    assert message == caught.value.detailed


def test_changing_the_case_of_a_text_is_changing_each_of_its_characters():
    """All of Unicode, at once and one by one: letters like ß, İ and Σ, whose change depends on more than themselves."""
    letters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    for change, whole in (
        (strings._upper, strings.to_upper.implementation),
        (strings._lower, strings.to_lower.implementation),
    ):
        for start in range(0, len(letters), 4096):
            part = letters[start : start + 4096]
            assert "".join(map(change, part)) == whole(Runtime(), "".join(part))
