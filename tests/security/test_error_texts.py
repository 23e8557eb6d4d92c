"""I4: no error shows a value. A canary in a value never is in an error, a result or a report, whatever fails."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from pyverno.engine.host import NoHost
from pyverno.engine.result import Status
from pyverno.errors import EvaluationError, HostError, PyvernoError
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.jmespath import FUNCTIONS, compile_expression
from pyverno.lang.jmespath.function import EXPREF
from pyverno.lang.runtime import Budget, Runtime
from pyverno.lang.template import compile_template
from pyverno.lang.template.patchtext import compile_patch_text
from tests.property.context_errors import PLAIN
from tests.security.asking import CONFIG_MAP, ask, policy
from tests.security.canaries import CANARY, canaries, shows, traces


class FixedHost:
    """A clock, bits, and no host that has an address."""

    def now(self) -> int:
        return 0

    def random_bits(self, bits: int) -> int:
        return 0

    def lookup_host(self, name: str) -> tuple[str, ...]:
        raise HostError(f"lookup {name}: no such host")


def calls() -> Iterator[str]:
    """Yield every function with `v` in every argument position, and in all of them."""
    for name, function in FUNCTIONS.items():
        plain = [PLAIN[types[0]] for types in function.parameters]
        for position in range(len(plain)):
            if EXPREF not in function.parameters[position]:
                yield f"{name}({', '.join([*plain[:position], 'v', *plain[position + 1 :]])})"
        for last in ("v", "v[]", "v.*"):
            yield f"{name}({', '.join('&@' if EXPREF in types else last for types in function.parameters)})"
        if function.parameters:
            yield f"{name}({', '.join(['v'] * (len(plain) + 1))})"


OPERATORS = (
    "v < `1`",
    "v[0].a.b",
    "v.missing",
    "sort_by([v, `1`], &@)",
    "max_by([v, `1`], &@)",
    "map(&to_number(@).a, v)",
)
HOLES = (
    '"\ue0000\ue001"',
    'a."x\ue0000\ue001"',
    "a[\ue0000\ue001]",
    '`"\ue0000\ue001"`',
    "'\ue0000\ue001'.b.c",
    "a[:\ue0000\ue001]",
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_shows_an_argument_in_its_error(name: str) -> None:
    """Introspected: every function, every argument position, every canary; a new function is covered."""
    shown = []
    for text in calls():
        if not text.startswith(f"{name}("):
            continue
        expression = compile_expression(text)
        for value in canaries():
            try:
                expression.evaluate({"v": value}, Runtime(FixedHost(), Budget()))
            except PyvernoError as error:
                shown += [(text, found) for found in traces(error)]
    assert [] == shown


def test_no_operator_and_no_nested_variable_shows_a_value_in_its_error() -> None:
    """Keys and indexes that come out of values, comparisons, and the errors of sorted lists."""
    shown = []
    for text, value in product((*OPERATORS, *HOLES), canaries()):
        data: JSON = {"v": value, "a": {"b": [1]}}
        try:
            compile_expression(text).evaluate(data, Runtime(FixedHost()), [value])
        except PyvernoError as error:
            shown += [(text, found) for found in traces(error)]
    assert [] == shown


DOCUMENTS: tuple[JSON, ...] = (
    *(
        "{{ a.{{v}} }}",
        "{{ a[{{v}}] }}",
        "{{ {{v}}.b }}",
        "x {{ a.{{v}}.c }} y",
        "{{ to_number('{{v}}').a }}",
        "{{ v.c.d }}",
    ),
    *(
        '{{ a.`"{{v}}"` }}',
        "{{ parse_json('{{v}}') }}",
        {"{{ v }}": 1},
        {"x{{ a.{{v}} }}": 1},
        "{{ time_add('{{v}}', v) }}",
    ),
)


@pytest.mark.parametrize("rescan", [False, True])
def test_no_template_shows_a_value_in_its_error(rescan: bool) -> None:
    """Nested variables are shown as written; with repeated scanning a variable out of a value is not shown at all."""
    shown = []
    for document, value in product(DOCUMENTS, canaries()):
        try:
            compile_template(document, rescan=rescan).render({"v": value, "a": {"b": [1]}}, Runtime(FixedHost()))
        except PyvernoError as error:
            shown += [(document, found) for found in traces(error)]
    assert [] == shown


@pytest.mark.parametrize("patch", ["{{ v }}", '- {op: add, path: "/{{ a.{{v}} }}", value: "{{ v }}"}', "- {{ v }}"])
def test_no_patch_shows_a_value_in_its_error(patch: str) -> None:
    """When the patch text that an expression makes does not parse, the error omits the position."""
    shown = []
    for value in canaries():
        try:
            compile_patch_text(patch).render({"v": value, "a": {"b": 1}}, Runtime(FixedHost()))
        except PyvernoError as error:
            shown += traces(error)
    assert [] == shown


def test_who_supplied_the_values_sees_them() -> None:
    """The harmless twin: `jp` shows Kyverno's whole text, which the error carries apart from its message."""
    with pytest.raises(EvaluationError) as caught:
        compile_expression("to_boolean(v)").evaluate({"v": CANARY}, Runtime())
    assert (
        "JMESPath function 'to_boolean': lowercase argument must be 'true' or 'false': a string of 12 characters",
        f"JMESPath function 'to_boolean': lowercase argument must be 'true' or 'false' (provided: '{CANARY}')",
    ) == (caught.value.message, caught.value.detailed)


class Holding(NoHost):
    """A world in which every ConfigMap, answer, image and global entry holds one value."""

    def __init__(self, value: JSON) -> None:
        self.value = value

    def api_call(self, *_: Any, **__: Any) -> JSON:
        return {"data": {"k": self.value}}

    http_call = global_entry = api_call

    def config_map(self, namespace: str, name: str) -> JSONObject:
        return {"data": {"k": self.value}}

    def image_data(self, image: str, *, credentials: JSONObject | None) -> JSONObject:
        return {"data": {"k": self.value}}


ENTRIES = (
    "configMap:\n    name: a\n    namespace: team",
    "apiCall:\n    urlPath: /api/v1/namespaces/team/secrets/a",
    "apiCall:\n    urlPath: /api/v1/namespaces/team/secrets/a\n    jmesPath: '{data: data, k: to_boolean(data.k)}'",
    "globalReference:\n    name: a\n    jmesPath: '{data: data, k: time_utc(data.k)}'",
    "imageRegistry:\n    reference: nginx",
    "variable:\n    value: {data: {k: '{{ held.data.k }}'}}",
    "variable:\n    jmesPath: '{data: {k: parse_json(held.data.k)}}'",
)
EXPRESSIONS = (
    *("to_boolean(found.data.k)", "time_parse('2006', found.data.k)", "semver_compare('1.0.0', found.data.k)"),
    *(
        "image_normalize(found.data.k)",
        "regex_match(found.data.k, 'x')",
        "add(found.data.k, `1`)",
        "length(found.data.k)",
    ),
    *(
        "request.object.data.{{ found.data.k }}",
        "parse_yaml(found.data.k)",
        "x509_decode(found.data.k)",
        "random(found.data.k)",
    ),
)
POSITIONS = (
    'preconditions:\n  all:\n  - key: "{{ X }}"\n    operator: Equals\n    value: a\nvalidate:\n  deny: {}\n',
    'validate:\n  deny:\n    conditions:\n      any:\n      - key: a\n        operator: In\n        value: "{{ X }}"\n',
    'validate:\n  pattern:\n    data:\n      a: "{{ X }}"\n',
    'validate:\n  anyPattern:\n  - data:\n      a: "{{ X }}"\n',
    'validate:\n  message: "{{ X }}"\n  deny: {}\n',
    'validate:\n  message: "{{ X }}"\n  pattern:\n    data:\n      zz: "1"\n',
    'validate:\n  foreach:\n  - list: "X"\n    deny: {}\n',
    'mutate:\n  patchStrategicMerge:\n    data:\n      b: "{{ X }}"\n',
    'mutate:\n  foreach:\n  - list: "X"\n    patchStrategicMerge:\n      data:\n        b: c\n',
    'mutate:\n  patchesJson6902: |-\n    - op: add\n      path: /data/b\n      value: "{{ X }}"\n',
    'generate:\n  apiVersion: v1\n  kind: ConfigMap\n  name: "{{ X }}"\n  namespace: team\n  data:\n    data: {}\n',
)


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_result_of_a_rule_shows_what_a_context_entry_holds(entry: str, caplog: pytest.LogCaptureFixture) -> None:
    """Every kind of entry, read by functions that fail, in every position of a rule: results, denials, logs."""
    caplog.set_level(logging.DEBUG)
    shown = []
    held = "- name: held\n  configMap:\n    name: a\n    namespace: team\n" if "held" in entry else ""
    for text, position in product(EXPRESSIONS, POSITIONS):
        rule = f"context:\n{held}- name: found\n  {entry}\n" + position.replace("X", text)
        review = ask(policy(rule), CONFIG_MAP, host=Holding(f"[1{CANARY}("))
        texts = [
            *(result.message for result in review.results if result.status is not Status.PASS),
            review.decision.message,
            json.dumps([str(effect) for effect in review.effects]) if not review.results else "",
            *review.decision.warnings,
        ]
        shown += [(position, text, found) for found in texts if shows(found)]
    assert [] == shown
    assert not shows(caplog.text)
