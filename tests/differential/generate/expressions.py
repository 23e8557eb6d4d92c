"""JMESPath expressions about a value, and conditions of Kyverno that use them."""

from __future__ import annotations

import json
from random import Random

from pyverno.kube.json import JSON, JSONObject
from tests.differential.generate.draws import chance, some

__all__ = ["conditions", "expression"]

_TRIES = 20
_OPERATORS = (
    "Equals", "NotEquals", "AnyIn", "AllIn", "AnyNotIn", "AllNotIn", "GreaterThan", "GreaterThanOrEquals",
    "LessThan", "LessThanOrEquals", "DurationGreaterThan", "DurationLessThanOrEquals",
)  # fmt: skip
_VALUES: tuple[JSON, ...] = (
    "", "a", "web", "prod", "a*", "*", "5", "10", "1Gi", "500m", "10s", "1h", "1.2.3", "true", "1-10", ">5", 0, 1, 5,
    1.5, True, False, ["a", "web"], ["5", "10"], [1, 5, 80], ["*"], [], ["ALL"], "nginx*", "8080", "null",
)  # fmt: skip
_LITERALS = (
    "`1`", "`5`", "`1.5`", "`true`", "`null`", "`[]`", "`{}`", "'a'", "'web'", "'1Gi'", "'500m'", "'10s'", "'1h'",
    '`["a", "b"]`', "`[1, 2]`", "'1.2.3'", "'2024-01-31T12:00:00Z'", "'a,b'", "'10.0.0.1'", "'*'", "'[a-z]+'", "''",
    '`{"a": 1}`', "'{\"a\": 1}'", "`0`", "`-1`", "'5'", "'a*'",
)  # fmt: skip
_ONE = (
    "length", "type", "to_string", "to_number", "to_array", "keys", "values", "sort", "reverse", "max", "min", "sum",
    "avg", "abs", "ceil", "floor", "not_null", "join(',', {})", "to_upper", "to_lower", "base64_encode",
    "base64_decode", "parse_json", "parse_yaml", "items({}, 'k', 'v')", "object_from_lists({0}, {0})", "to_boolean",
    "path_canonicalize", "semver_compare({}, '>=1.0.0')", "sha256", "sha1", "md5", "lookup({}, `0`)",
    "lookup({}, 'a')", "split({}, ',')", "truncate({}, `3`)", "round({}, `1`)", "is_external_url",
    "label_match(`{{\"app\": \"web\"}}`, {})", "label_match({}, {})", "pattern_match('a*', {})",
    "equal_fold({}, 'A')", "time_since('', '2024-01-31T12:00:00Z', {})", "time_parse('2006-01-02', {})",
    "time_to_cron", "time_utc", "time_add({}, '1h')", "parse_duration", "time_truncate({}, '1h')", "image_normalize",
    "regex_match('^[a-z]+$', {})", "regex_match({}, 'abc')", "regex_replace_all('a', {}, 'b')",
    "regex_replace_all_literal('a', {}, '$1')", "starts_with({}, 'a')", "ends_with({}, 'c')", "contains({}, 'a')",
    "contains({}, `1`)", "replace({}, 'a', 'b', `1`)", "replace_all({}, 'a', '')", "trim({}, 'a')",
    "trim_prefix({}, 'a')", "add({}, `1`)", "subtract({}, '1')", "multiply({}, `2`)", "divide({}, `2`)",
    "modulo({}, `2`)", "add({}, '1Gi')", "divide({}, '100m')", "to_array", "x509_decode",
)  # fmt: skip
_TWO = (
    "add", "subtract", "multiply", "divide", "modulo", "contains", "starts_with", "ends_with", "join",
    "equal_fold", "compare", "split", "semver_compare", "regex_match", "pattern_match", "not_null",
    "object_from_lists", "lookup",
)  # fmt: skip


def expression(random: Random, root: str, value: JSON, *, depth: int = 3) -> str:
    """Return an expression about `root`, which holds such a value; only expressions that name it are variables."""
    for _ in range(_TRIES):
        found = _any_expression(random, root, value, depth)
        if root in found:
            return found
    return root


def _any_expression(random: Random, root: str, value: JSON, depth: int) -> str:
    if depth == 0 or chance(random, 0.25):
        return _path(random, root, value) if chance(random, 0.75) else random.choice(_LITERALS)
    inner = _any_expression(random, root, value, depth - 1)
    roll = random.random()
    if roll < 0.4:
        form = random.choice(_ONE)
        if "{" not in form:
            return f"{form}({inner})"
        return form.replace("{0}", "{}").replace("{}", inner).replace("{{", "{").replace("}}", "}")
    other = _any_expression(random, root, value, depth - 2 if depth > 1 else 0)
    if roll < 0.55:
        return f"{random.choice(_TWO)}({inner}, {other})"
    operator = random.choice(("||", "&&", "==", "!=", "<", ">=", ">", "<="))
    forms = (
        f"({inner}) {operator} ({other})",
        f"({inner})[0]",
        f"({inner})[-1]",
        f"({inner})[]",
        f"({inner})[*]",
        f"({inner}).*",
        f"({inner} | @)[1:]",
        f"({inner})[?{random.choice(('a', 'name', '@'))} == {random.choice(_LITERALS)}]",
        f"({inner})[].{random.choice(('name', 'a', 'image'))}",
        f"({inner}) | {random.choice(('length(@)', 'keys(@)', '[0]', 'to_string(@)', '@'))}",
        f"[{inner}, {other}]",
        f"{{x: {inner}, y: {other}}}",
        f"map(&{random.choice(('name', 'to_string(@)', '@', 'length(@)'))}, {inner})",
        f"sort_by({inner}, &{random.choice(('name', 'a', '@'))})",
        f"max_by({inner}, &{random.choice(('name', 'a', '@'))})",
        f"!({inner})",
        f"({inner} || {random.choice(_LITERALS)})",
    )
    return random.choice(forms)


def _path(random: Random, root: str, value: JSON) -> str:
    """Return a path to something that is there, sometimes to something that is not."""
    written = root
    for _ in range(random.randint(0, 6)):
        if isinstance(value, dict) and value:
            key = random.choice(tuple(value))
            name = key if key.isidentifier() else json.dumps(key, ensure_ascii=False)
            written, value = (f"{written}.{name}" if written else name), value[key]
        elif isinstance(value, list) and value and written:
            if chance(random, 0.4):
                written += random.choice(("[]", "[*]"))
                value = value[0]
            else:
                index = random.randrange(len(value))
                written, value = f"{written}[{index}]", value[index]
        else:
            break
    if chance(random, 0.06):
        written = f"{written}.missing" if written else "missing"
    return written or "@"


def conditions(random: Random, root: str, value: JSON) -> JSONObject:
    """Return conditions in `any` and `all` about `root`."""

    def one() -> JSONObject:
        key: JSON = "{{ " + expression(random, root, value, depth=random.randint(0, 2)) + " }}"
        if chance(random, 0.1):
            key = random.choice(_VALUES)
        wanted: JSON = random.choice(_VALUES)
        if chance(random, 0.2):
            wanted = "{{ " + expression(random, root, value, depth=random.randint(0, 1)) + " }}"
        return {"key": key, "operator": random.choice(_OPERATORS), "value": wanted}

    return {side: [one() for _ in range(random.randint(1, 2))] for side in some(random, ("any", "all"), 1, 2)}
