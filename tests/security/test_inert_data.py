"""I10: text from objects and answers is data; it is never read as a variable, a query, a pattern or a tag."""

from __future__ import annotations

import json

import pytest

from pyverno.engine.effects import CreateEffect
from pyverno.engine.engine import Engine, Review
from pyverno.engine.phases import GENERATING, MUTATING_EXISTING
from pyverno.engine.request import Operation, Request, User
from pyverno.engine.result import Status
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore
from tests.security.asking import CONFIG_MAP, Spy, ask, compiled, found, only, policy

HOSTILE = [
    "{{ request.object.data.secret }}",
    "{{ to_string(request.object) }}",
    "x {{ request.object.data.secret }} y",
    "\\{{ request.object.data.secret }}",
    "$(../secret)",
    "$(/data/secret)",
    "{{- request.object.data.secret }}",
    "{{{{ request.object.data.secret }}}}",
    "'] | request.object.data.secret | ['",
    "` || request.object.data.secret || `",
    '" || request.object.data.secret || "',
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("message", ["{{ request.object.data.note }}", "note: {{ request.object.data.note }}."])
def test_text_of_an_object_is_inserted_as_it_is(text: str, message: str) -> None:
    """R1: a variable's value is never scanned again, alone or within a text."""
    resource = {**CONFIG_MAP, "data": {"note": text, "secret": "s3cr3t"}}
    rule = f"validate:\n  failureAction: Enforce\n  message: '{message}'\n  deny: {{}}"
    assert (Status.FAIL, message.replace("{{ request.object.data.note }}", text)) == only(ask(policy(rule), resource))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("message", ["{{ found }}", "found: {{ found }}."])
def test_text_of_an_answer_is_inserted_as_it_is(text: str, message: str) -> None:
    """R1: the same holds for answers of API calls and ConfigMaps."""
    entry = "apiCall:\n  urlPath: /api/v1/namespaces/team/configmaps/a\n  jmesPath: data.note"
    resource = {**CONFIG_MAP, "data": {"secret": "s3cr3t"}}
    asked = found(entry).replace("message: '{{ found }}'", f"message: '{message}'")
    assert (Status.FAIL, message.replace("{{ found }}", text)) == only(
        ask(asked, resource, host=Spy({"data": {"note": text}}))
    )


@pytest.mark.parametrize("name", ["a' || 'b", "a.b", "secret | @", "*", "a]", "a`", '"', "{{ x }}", "a\\", ""])
def test_a_nested_variable_is_a_name_not_syntax(name: str) -> None:
    """I10: the inner value picks a key; it cannot widen the query."""
    resource = {**CONFIG_MAP, "data": {name: "mine", "secret": "s3cr3t"}, "pick": name}
    rule = (
        "validate:\n  failureAction: Enforce\n"
        "  message: '{{ request.object.data.{{ request.object.pick }} }}'\n  deny: {}"
    )
    status, message = only(ask(policy(rule), resource))
    assert Status.FAIL == status
    assert "s3cr3t" not in message


@pytest.mark.parametrize("text", ["{{ request.object.data.secret }}", "$(./secret)", "(x)", "+(x)", "X(x)"])
@pytest.mark.parametrize("value", ["{{ request.object.data.note }}", "a {{ request.object.data.note }}"])
def test_a_mutation_copies_text_without_reading_it(text: str, value: str) -> None:
    """I10: text copied into an object is a value, not a template and not an anchor."""
    resource = {**CONFIG_MAP, "data": {"note": text, "secret": "s3cr3t"}}
    rule = f"mutate:\n  patchStrategicMerge:\n    data:\n      copy: '{value}'"
    review = ask(policy(rule), resource)
    assert value.replace("{{ request.object.data.note }}", text) == review.resource["data"]["copy"]


@pytest.mark.parametrize("text", ["*", "?*", ">0", "!x", "a | b", "1-9"])
def test_an_objects_wildcards_match_only_themselves(text: str) -> None:
    """I10: operators and wildcards count in patterns of a policy, not in values of an object."""
    rule = "validate:\n  failureAction: Enforce\n  pattern:\n    data:\n      a: exact"
    assert not ask(policy(rule), {**CONFIG_MAP, "data": {"a": text}}).decision.allowed
    assert ask(policy(rule), {**CONFIG_MAP, "data": {"a": "exact"}}).decision.allowed


FIRST = {"name": "first", "variable": {"jmesPath": "request.object.data.a"}}
ALLOWED = {"name": "allowed", "variable": {"value": ["x-*", "y"]}}
TAKEN = {
    "by a query": {"jmesPath": "request.object.data.a"},
    "by a value": {"value": "{{ request.object.data.a }}"},
    "by another variable": {"jmesPath": "[first, 'y'][0]"},
    "by default": {"jmesPath": "request.object.data.b", "default": "{{ request.object.data.a }}"},
}


@pytest.mark.parametrize("way", TAKEN)
@pytest.mark.parametrize("operator", ["AnyNotIn", "AllNotIn"])
@pytest.mark.parametrize("in_foreach", [False, True])
def test_an_objects_wildcards_excuse_nothing_through_a_variable(way: str, operator: str, *, in_foreach: bool) -> None:
    """I10: what the context takes from the request stays data, also where other variables hold patterns."""
    context = [FIRST, ALLOWED, {"name": "taken", "variable": TAKEN[way]}]
    allowed = []
    for key, value in (("{{ allowed[1] }}", "{{ taken }}"), ("{{ taken }}", "{{ allowed }}")):
        deny = {"conditions": {"any": [{"key": key, "operator": operator, "value": value}]}}
        once = {"list": "[`1`]", "context": context, "deny": deny}
        check = {"foreach": [once]} if in_foreach else {"deny": deny}
        outer = "" if in_foreach else f"context: {json.dumps(context)}\n"
        rule = f"{outer}validate: {json.dumps({'failureAction': 'Enforce', 'message': 'm', **check})}"
        for text in ("*", "y"):
            allowed.append(ask(policy(rule), {**CONFIG_MAP, "data": {"a": text}}).decision.allowed)
    assert [False, True, False, True] == allowed


@pytest.mark.parametrize("text", ["!!python/object/apply:os.system ['true']", "!!python/name:os.system", "!env X"])
def test_yaml_tags_make_no_objects(text: str) -> None:
    """I10: a tag is refused or ignored, it never runs anything."""
    try:
        (document,) = load_documents(f"a: {text}".encode())
    except Exception as error:
        assert "pyverno" in type(error).__module__
    else:
        assert isinstance(document.value["a"], str | list | dict)


@pytest.mark.parametrize(
    "text", ["yes", "0x10", "1e3", "a: b", "- x", "line\nbreak", "\u2028", "'", '"', "#", "", "~", "{{ x }}"]
)
def test_denials_quote_what_they_show(text: str) -> None:
    """E3.1: a denial is YAML whatever an object writes into it."""
    assert {"a": text} == load_documents(dump_yaml({"a": text}).encode())[0].value


# a pattern whose value comes from the request, in every place that takes one, and what reads it as data
SYNTAX = ["*", "?*", "x*", "!zzz", "a|*", "a | x-1", ">0", "<=9", ">a", "1-9", "0!-0", "x-1 & *", "?-?"]
PATTERNS = {
    "pattern": "  pattern:\n    data:\n      a: '{}'\n",
    "any pattern": "  anyPattern:\n  - data:\n      a: '{}'\n",
    "foreach": "  foreach:\n  - list: '[request.object.data]'\n    elementScope: true\n    pattern:\n      a: '{}'\n",
    "list": "  pattern:\n    list: ['{}']\n",
    "label": "  pattern:\n    metadata:\n      annotations:\n        a: '{}'\n",
}
SOURCES = ["{{ request.object.data.want }}", "{{ request.oldObject.data.want }}", "{{ wanted }}", "{{ element.want }}",
           "{{ request.userInfo.username }}", "{{ to_string(request.object.data.want) }}"]  # fmt: skip


@pytest.mark.parametrize("text", SYNTAX)
@pytest.mark.parametrize("place", PATTERNS)
@pytest.mark.parametrize("source", SOURCES)
def test_text_of_a_request_is_no_pattern(source: str, place: str, text: str) -> None:
    """I10: a value that a pattern takes from the request is compared; it matches itself and nothing else."""
    if "element" in source and place != "foreach":
        source = source.replace("element", "request.object.data")
    rule = (
        "context:\n- name: wanted\n  variable:\n    jmesPath: request.object.data.want\n"
        f"validate:\n  failureAction: Enforce\n{PATTERNS[place].format(source)}"
    )

    def holding(found: str, wanted: str) -> JSONObject:
        metadata = {**CONFIG_MAP["metadata"], "annotations": {"a": found}}
        return {**CONFIG_MAP, "metadata": metadata, "data": {"a": found, "want": wanted}, "list": [found]}

    def allowed(found: str, wanted: str) -> bool:
        # the object before is right: nothing excuses the change
        how = {"operation": Operation.UPDATE, "old": holding(wanted, wanted), "user": User(username=wanted)}
        return ask(policy(rule, spec="background: false"), holding(found, wanted), **how).decision.allowed

    assert [] == [found for found in ("x-1", "5", "1", "b") if found != text and allowed(found, text)]
    assert allowed(text, text)
    assert allowed("web-1", "web-1")


@pytest.mark.parametrize(
    ("pattern", "want", "fits", "differs"),
    [
        ("{{ request.object.data.want }}-*", "web", "web-1", "api-1"),
        ("{{ request.object.data.want }}-*", "*", "*-*", "api-1"),
        (">={{ request.object.data.want }}", "2", "3", "1"),
        ("{{ request.object.data.want }}-{{ request.object.data.want }}9", "1", "5", "50"),
        ("a | {{ request.object.data.want }}", "b", "a", "c"),
        ("a | {{ request.object.data.want }}", "b | *", "a | b | *", "c"),
        ("!{{ request.object.data.want }}", "b", "a", "b"),
        ("!{{ request.object.data.want }}", "b|*", "!b|*", "b"),
        ("{{ request.object.data.want }}Gi", "1-9", "1-9Gi", "5Gi"),
        ("{{ request.namespace }}-*", "", "team-1", "other-1"),
        ("{{ listed }}", "", "ghcr.io/x", "docker.io/x"),
        ("{{ known.{{ request.object.data.want }} }}", "web", "web-1", "api-1"),
        ('{{ known."{{ request.object.data.want }}" }}', "*", "star-1", "web-1"),
        ("{{ known.images }}", "", "ghcr.io/x", "docker.io/x"),
        ("{{ lookup(known, request.object.data.want) }}", "web", "web-1", "api-1"),
        ("{{ known | @.web }}", "", "web-1", "api-1"),
        ("{{ request.object.data.want == 'web' && 'web-*' || 'api-*' }}", "web", "web-1", "api-1"),
        ("{{ rows[?name == '{{ request.object.data.want }}'].image | [0] }}", "web", "web-1", "api-1"),
        # what holds a text of the request is data as a whole
        ("{{ request.object.data.want || '*' }}", "web", "web", "web-1"),
        ("{{ join('|', ['web-*', request.object.data.want]) }}", "x", "web-*|x", "web-1"),
        ("{{ [known.web, request.object.data.want][0] }}", "x", "web-*", "web-1"),
        ("{{ to_lower('{{ request.object.data.want }}') }}", "*", "*", "web-1"),
        ("{{ @.request.object.data.want }}", "*", "*", "web-1"),
        ("{{ request.object.data.want && request.object.data.want }}", "*", "*", "web-1"),
        ("{{ {a: request.object.data.want}.a }}", "*", "*", "web-1"),
        ("{{ map(&to_upper(@), [request.object.data.want])[0] }}", "*", "*", "web-1"),
    ],
)
def test_text_of_a_policy_around_it_is_a_pattern(pattern: str, want: str, fits: str, differs: str) -> None:
    """The twin: operators and wildcards of the policy, or of a ConfigMap that it reads, keep their meaning."""
    rule = (
        "context:\n- name: listed\n  variable:\n    value: 'ghcr.io/* | quay.io/*'\n"
        "- name: known\n  variable:\n    value: {web: 'web-*', '*': 'star-*', any: '*', images: 'ghcr.io/*'}\n"
        "- name: rows\n  variable:\n    value: [{name: web, image: 'web-*'}]\n"
        f"validate:\n  failureAction: Enforce\n  pattern:\n    data:\n      a: {json.dumps(pattern)}\n"
    )

    def allowed(found: str) -> bool:
        return ask(policy(rule), {**CONFIG_MAP, "data": {"a": found, "want": want}}).decision.allowed

    assert (True, False) == (allowed(fits), allowed(differs))


@pytest.mark.parametrize("key", ["(a)", "=(a)", "X(zzz)", "<(a)", "+(a)", "*", "?"])
def test_keys_of_a_request_are_no_anchors(key: str) -> None:
    """I10: a map of the request as a pattern demands its own keys, whatever they look like."""
    rule = (
        "validate:\n  failureAction: Enforce\n  pattern:\n    metadata:\n      annotations: '{{ request.object.want }}'"
    )

    def allowed(annotations: JSONObject) -> bool:
        stored = {**CONFIG_MAP, "want": {key: "1"}}
        metadata = {**CONFIG_MAP["metadata"], "annotations": annotations}
        return ask(policy(rule), {**stored, "metadata": metadata}).decision.allowed

    assert (True, False, False) == (allowed({key: "1"}), allowed({"a": "1"}), allowed({"b": "2"}))


@pytest.mark.parametrize("key", ["(a)", "<(a)", "+(a)", " (a) ", "$patch"])
@pytest.mark.parametrize(
    "patch",
    [
        "spec: '{{ request.object.map }}'",
        "spec: '{{ parse_json(request.object.metadata.annotations.text) }}'",
        "spec: {inner: ['{{ request.object.map }}']}",
        "spec: '{{ wanted }}'",
        "spec:\n      '{{ request.object.key }}': delete",
    ],
)
def test_keys_of_a_request_direct_no_patch(patch: str, key: str) -> None:
    """I10: a map that a patch copies from the request neither skips the rule nor deletes what is there."""
    rule = (
        "context:\n- name: wanted\n  variable:\n    jmesPath: request.object.map\n"
        f"mutate:\n  patchStrategicMerge:\n    metadata:\n      labels: {{must: have}}\n    {patch}\n"
    )

    def changed(name: str) -> tuple[str, JSON, JSON]:
        value = "delete" if name == "$patch" else "x"
        metadata = {**CONFIG_MAP["metadata"], "annotations": {"text": json.dumps({name: value})}}
        stored = {**CONFIG_MAP, "metadata": metadata, "spec": {"a": "1"}, "map": {name: value}, "key": name}
        review = ask(policy(rule), stored)
        (result,) = review.results
        return result.status.value, review.resource["metadata"].get("labels"), review.resource["spec"].get("a")

    assert ("error", None, "1") == changed(key)
    assert ("pass", {"must": "have"}, "1") == changed("b")


@pytest.mark.parametrize(
    ("key", "first", "second", "plain"),
    [
        ("{{ request.object.first }}/{{ request.object.second }}", "(a", "b)", "x/y"),
        ("{{ request.object.first }}{{ wanted }}", "<(", "a)", "xy"),
        ("{{ request.object.first }}{{ request.object.second }}a)", "+", "(", "xya)"),
        ("{{ request.object.first }}(a)", "<", "", "x(a)"),
        ("{{ request.object.first }}(a)", "", "", "x(a)"),
        (" {{ request.object.first }} ", "(a)", "", " x "),
        ("${{ request.object.first }}", "patch", "", "$x"),
    ],
)
def test_pieces_of_a_request_direct_no_patch(key: str, first: str, second: str, plain: str) -> None:
    """I10: no anchor and no directive is put together of the texts of a request."""
    rule = (
        "context:\n- name: wanted\n  variable:\n    jmesPath: request.object.second\n"
        f"mutate:\n  patchStrategicMerge:\n    data:\n      must: have\n      '{key}': delete"
    )

    def changed(one: str, other: str) -> tuple[Status, JSON]:
        review = ask(policy(rule), {**CONFIG_MAP, "data": {"a": "1"}, "first": one, "second": other})
        return review.results[0].status, review.resource["data"]

    assert (Status.ERROR, {"a": "1"}) == changed(first, second)
    assert (Status.PASS, {"a": "1", "must": "have", plain: "delete"}) == changed("x", "y")


@pytest.mark.parametrize("name", ["b", "b)", "(b"])
def test_anchors_of_a_policy_around_data_keep_their_meaning(name: str) -> None:
    """The twin: the policy wrote the anchor, and the request only a name."""
    rule = "mutate:\n  patchStrategicMerge:\n    data:\n      '+({{ request.object.name }})': new"
    stored = {**CONFIG_MAP, "data": {"a": "1"}, "name": name}
    assert {"a": "1", name: "new"} == ask(policy(rule), stored).resource["data"]
    assert {"a": "1"} == ask(policy(rule), {**stored, "name": "a"}).resource["data"]


def change(name: str, namespace: str, target: str) -> Review:
    """Review a ConfigMap that names a target, by a rule that changes others."""
    rule = (
        "context:\n- name: picked\n  variable:\n    jmesPath: request.object.data.target\n"
        f"mutate:\n  targets:\n  - {{apiVersion: v1, kind: ConfigMap, name: '{name}', namespace: '{namespace}'}}\n"
        "  patchStrategicMerge:\n    data:\n      changed: 'yes'"
    )
    stored = [{**CONFIG_MAP, "metadata": {"name": f"app-{number}", "namespace": "team"}} for number in (1, 2)]
    engine = Engine(compiled(policy(rule)).policy_set(), OfflineHost(objects=ObjectStore(stored)))
    return engine.review(Request.from_manifest({**CONFIG_MAP, "data": {"target": target}}), MUTATING_EXISTING)


@pytest.mark.parametrize(
    ("name", "namespace"),
    [
        ("{{ request.object.data.target }}", "team"),
        ("app-{{ request.object.data.target }}", "team"),
        ("{{ picked }}", "team"),
        ("app-1", "{{ request.object.data.target }}"),
        ("{{ request.object.data.target }}-*", "{{ request.namespace }}"),
    ],
)
@pytest.mark.parametrize("target", ["*", "?*", "????*", "app-?"])
def test_a_requester_does_not_add_targets(name: str, namespace: str, target: str) -> None:
    """I10: a name that a request gives is one name; only a wildcard that the policy wrote selects many objects."""
    (result,) = change(name, namespace, target).results
    assert (Status.ERROR, ()) == (result.status, result.effects)
    assert [] == [each for each in change(name, namespace, "none").results if each.effects]
    assert [] == [each for each in change(name, namespace, "").results if each.effects]
    for own in ("{{ request.object.data.target }}", "{{ request.object.data.target }}*", "app-?"):
        assert [Status.PASS] == [each.status for each in change(own, "team", "app-1").results][:1]


@pytest.mark.parametrize(
    ("name", "namespace"),
    [
        ("{{ request.object.data.target }}", "team"),
        ("{{ picked }}", "{{ request.object.data.target }}"),
        ("app-1", "{{ request.object.data.target }}"),
    ],
)
def test_an_empty_text_of_a_request_selects_no_targets(name: str, namespace: str) -> None:
    """I10: what a policy leaves out selects all, what a request leaves empty is an error."""
    (result,) = change(name, namespace, "").results
    assert (Status.ERROR, ()) == (result.status, result.effects)
    assert [Status.PASS, Status.PASS] == [each.status for each in change("", "team", "").results]


def test_an_object_without_namespace_is_found_by_its_name() -> None:
    """The twin: kinds outside of namespaces have none, and a request has none for them."""
    rule = (
        "mutate:\n  targets:\n"
        "  - {apiVersion: v1, kind: Namespace, name: team, namespace: '{{ request.object.data.target }}'}\n"
        "  patchStrategicMerge:\n    metadata:\n      labels: {changed: 'yes'}"
    )
    stored = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}]
    engine = Engine(compiled(policy(rule)).policy_set(), OfflineHost(objects=ObjectStore(stored)))
    review = engine.review(Request.from_manifest({**CONFIG_MAP, "data": {"target": ""}}), MUTATING_EXISTING)
    assert [Status.PASS] == [each.status for each in review.results]


@pytest.mark.parametrize(
    ("kind", "namespace", "copied"),
    [
        ("v1/Secret", "team", ["own"]),
        ("v1/Secret", "", None),
        ("v1/Unknown", "", None),
    ],
)
def test_an_empty_text_of_a_request_clones_nothing(kind: str, namespace: str, copied: list[str] | None) -> None:
    """I10: Secrets of all namespaces are not copied to who leaves the name of one empty."""
    rule = (
        "generate:\n  namespace: copies\n  cloneList:\n"
        f"    namespace: '{{{{ request.object.data.from }}}}'\n    kinds: [{kind}]\n"
    )
    stored = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own", "namespace": "team"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "foreign", "namespace": "kube-system"}},
    ]
    engine = Engine(compiled(policy(rule)).policy_set(), OfflineHost(objects=ObjectStore(stored)))
    (result,) = engine.review(Request.from_manifest({**CONFIG_MAP, "data": {"from": namespace}}), GENERATING).results
    made = [each.resource["metadata"]["name"] for each in result.effects if isinstance(each, CreateEffect)]
    assert (Status.ERROR if copied is None else Status.PASS, copied or []) == (result.status, made)
