"""Tests of `migration.patterns.maps`: the CEL of a pattern against the pattern itself, on admitted objects."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from pyverno.cli.equivalent.admission import admission_of
from pyverno.compiler.equivalence.objects import ObjectMaker
from pyverno.compiler.equivalence.vocabulary import vocabulary_of
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.compiler.migration.patterns import any_holds, holds, parts_of
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.text import Reference
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.cel import types
from pyverno.lang.cel.presets import kubernetes_environment
from pyverno.lang.pattern.outcome import Status
from pyverno.lang.pattern.validate import compile_pattern
from pyverno.policy.kinds import KNOWN_KINDS

BOOK = SchemaBook()
CEL = kubernetes_environment().with_variables({"object": types.DYN})
ADMIT = admission_of("1.35")
LABEL = "corp/team"
CASES: list[tuple[str, JSON, str]] = [
    ("Pod", {"metadata": {"labels": {"team": "?*"}}}, "object.metadata.?labels.?team.orValue('') != ''"),
    ("Pod", {"spec": {"hostNetwork": False}}, "!object.spec.?hostNetwork.orValue(true)"),
    ("Pod", {"spec": {"=(hostNetwork)": False}}, "!object.spec.?hostNetwork.orValue(false)"),
    (
        "Pod",
        {"spec": {"=(securityContext)": {"=(runAsNonRoot)": True}}},
        "!has(object.spec.securityContext) || object.spec.securityContext.?runAsNonRoot.orValue(true)",
    ),
    (
        "Pod",
        {"spec": {"containers": [{"image": "!*:latest"}]}},
        "object.spec.containers.all(c, !c.image.endsWith(':latest'))",
    ),
    (
        "Pod",
        {"spec": {"containers": [{"(name)": "istio-*", "image": "reg.io/*"}]}},
        "object.spec.containers.all(c, !c.name.startsWith('istio-') || c.image.startsWith('reg.io/'))",
    ),
    (
        "Pod",
        {"spec": {"(hostNetwork)": True, "serviceAccountName": "net-*"}},
        "!object.spec.?hostNetwork.orValue(false) || object.spec.?serviceAccountName.orValue('').startsWith('net-')",
    ),
    (
        "Pod",
        {"spec": {"^(containers)": [{"name": "web"}]}},
        "object.spec.containers.exists(c, c.name == 'web')",
    ),
    (
        "Pod",
        {"spec": {"=(volumes)": [{"X(hostPath)": "null"}]}},
        "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))",
    ),
    ("Deployment", {"spec": {"replicas": ">=2"}}, "object.spec.?replicas.orValue(0) >= 2"),
    (
        "Pod",
        {"spec": {"containers": [{"imagePullPolicy": "Always | IfNotPresent | Never"}]}},
        "object.spec.containers.all(c, c.?imagePullPolicy.orValue('') in ['Always', 'IfNotPresent', 'Never'])",
    ),
]
OTHERS: list[tuple[str, JSON]] = [
    ("Pod", {"spec": {"containers": [{"name": "*", "<(image)": "ghcr.io/*"}], "serviceAccountName": "net"}}),
    ("Pod", {"spec": {"containers": [{"resources": {"limits": {"memory": "<=1Gi"}}}]}}),
    ("Pod", {"spec": {"containers": [{"resources": {"requests": {"cpu": "?*"}, "limits": {"memory": "?*"}}}]}}),
    ("Pod", {"spec": {"=(initContainers)": [{"=(securityContext)": {"=(privileged)": "false"}}]}}),
    ("Pod", {"metadata": {"=(labels)": {LABEL: "a|b"}}}),
    ("Pod", {"metadata": {"labels": {"corp/*": "?*"}}}),
    ("Pod", {"metadata": {"annotations": {"X(corp/*)": "null"}}}),
    ("Pod", {"spec": {"(volumes)": [{"(hostPath)": {"path": "/var/*"}}], "=(hostPID)": False}}),
    ("Pod", {"spec": {"=(tolerations)": [{"key": "!node-role*"}]}}),
    ("Pod", {"spec": {"containers": [{"(securityContext)": {"privileged": True}, "image": "ghcr.io/*"}]}}),
    ("Pod", {"spec": {"containers": [{"=(ports)": [{"=(hostPort)": 0}]}]}}),
    ("Pod", {"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": "80 | web"}}}]}}),
    ("Pod", {"spec": {"priorityClassName": None}}),
    ("Deployment", {"spec": {"replicas": "2-5", "template": {"spec": {"=(hostIPC)": "false"}}}}),
    ("Deployment", {"spec": {"replicas": ">1 & <5 | 10"}}),
    ("ClusterRole", {"rules": [{"verbs": "!*"}]}),
    ("ClusterRole", {"=(rules)": [{"=(resources)": "!secrets"}]}),
    ("Service", {"spec": {"=(type)": "!LoadBalancer", "=(ports)": [{"=(nodePort)": "30000-31000"}]}}),
    ("Ingress", {"spec": {"rules": [{"host": "a*.ex?mple.com"}]}}),
    ("NetworkPolicy", {"spec": {"=(egress)": [{"=(to)": [{"X(ipBlock)": "null"}]}], "policyTypes": ["Ingress"]}}),
    ("ConfigMap", {"=(data)": {"size": ">5"}}),
    ("ConfigMap", {"data": {"period": "<=10m", "count": "!5"}}),
]


def _blocked(kind: str, patterns: list[JSON], expression: str, *, is_any: bool) -> Counter[tuple[bool, bool]]:
    """Count how often the patterns fail, and the expression is not true, on admitted objects."""
    document: JSONObject = {"spec": {"match": {"any": [{"resources": {"kinds": [kind]}}]}, "pattern": patterns}}
    info = KNOWN_KINDS.by_kind(kind)[0]
    maker, program = ObjectMaker(vocabulary_of([document]), 7), CEL.compile(expression)
    compiled = [compile_pattern(each, float_numbers=is_any) for each in patterns]
    found: Counter[tuple[bool, bool]] = Counter()
    made: list[JSONObject] = []
    for number in range(60):
        body = maker.vary(made[number % len(made)]) if made and number % 2 else maker.make(info)
        admitted = None if body is None else ADMIT(body)
        if admitted is None:
            continue
        made.append(admitted)
        statuses = [each.match(admitted).status for each in compiled]
        passes = Status.PASS in statuses or all(each is Status.SKIP for each in statuses)
        try:
            allows = program.evaluate({"object": admitted}) is True
        except Exception:
            allows = False
        found[not passes, not allows] += 1
    return found


@pytest.mark.parametrize(("kind", "pattern", "expected"), CASES)
def test_common_patterns_become_readable_expressions(kind: str, pattern: JSON, expected: str) -> None:
    """The text of what policies mostly ask for."""
    info = KNOWN_KINDS.by_kind(kind)[0]
    reference = Reference("object", BOOK.of(info.group, info.version, kind))
    assert expected == str(holds(pattern, reference, "pattern"))


@pytest.mark.parametrize(("kind", "pattern"), [*((kind, pattern) for kind, pattern, _ in CASES), *OTHERS])
def test_the_expression_blocks_what_the_pattern_blocks(kind: str, pattern: JSON) -> None:
    """Both decide alike on every admitted object, and some object is decided."""
    info = KNOWN_KINDS.by_kind(kind)[0]
    reference = Reference("object", BOOK.of(info.group, info.version, kind))
    found = _blocked(kind, [pattern], holds(pattern, reference, "pattern").text, is_any=False)
    assert {(False, False), (True, True)} >= set(found)
    assert found.total() > 20


def test_one_of_several_patterns_is_enough() -> None:
    """anyPattern is an `||`; a pattern that only skips does not count as passed beside one that fails."""
    reference = Reference("object", BOOK.of("", "v1", "Pod"))
    patterns: list[JSON] = [
        {"spec": {"securityContext": {"runAsNonRoot": True}}},
        {"spec": {"containers": [{"(name)": "web", "image": "ghcr.io/*"}]}},
    ]
    found = _blocked("Pod", patterns, any_holds(patterns, reference, "anyPattern").text, is_any=True)
    assert {(False, False), (True, True)} == set(found)


def test_a_pattern_falls_into_parts() -> None:
    """Keys that all must hold can be validations of their own."""
    reference = Reference("object", BOOK.of("", "v1", "Pod"))
    pattern: JSON = {"spec": {"=(hostPID)": False, "=(hostIPC)": False}}
    assert [
        "!object.spec.?hostIPC.orValue(false)",
        "!object.spec.?hostPID.orValue(false)",
    ] == [str(each) for each in parts_of(pattern, reference, "pattern")]


@pytest.mark.parametrize(
    ("pattern", "code", "path"),
    [
        ({"metadata": {"name": "{{ request.name }}"}}, "pattern-variable", "pattern.metadata.name"),
        ({"spec": {"containers": [{"args": [["a"]]}]}}, "nested-list", "pattern.spec.containers[0].args"),
        ({"metadata": {"labels": {"(corp/*)": "a", "b": "c"}}}, "label-wildcard", "pattern.metadata.labels.(corp/*)"),
        (
            {"spec": {"containers": [{"resources": {"limits": {"cpu": 1}}}]}},
            "quantity-number",
            "pattern.spec.containers[0].resources.limits.cpu",
        ),
    ],
)
def test_what_cannot_be_said_is_refused_at_its_place(pattern: JSON, code: str, path: str) -> None:
    """A refusal has a code and the path of the field."""
    reference = Reference("object", BOOK.of("", "v1", "Pod"))
    with pytest.raises(UnconvertibleError) as caught:
        holds(pattern, reference, "pattern")
    assert (code, path) == (caught.value.refused.code, caught.value.refused.path)


def test_a_custom_kind_without_schema_is_refused() -> None:
    """Without a field's type the comparison of its value is unknown."""
    with pytest.raises(UnconvertibleError) as caught:
        holds({"spec": {"size": ">5"}}, Reference("object", BOOK.of("example.com", "v1", "Widget")), "pattern")
    assert "no-schema" == caught.value.refused.code


def test_random_patterns_block_alike() -> None:
    """A few patterns that no person would write."""
    random = Random(7)  # noqa: S311 - the same patterns in every run
    reference = Reference("object", BOOK.of("", "v1", "Pod"))
    leaves: list[JSON] = ["?*", "a*|web", "!web", ">1", None, "*"]
    for _ in range(25):
        anchors = ["{}", "=({})", "({})", "<({})", "X({})"]
        entry: JSONObject = {
            random.choice(anchors).format(name): random.choice(leaves)
            for name in random.sample(["name", "image", "workingDir", "imagePullPolicy"], 2)
        }
        spec: JSONObject = {random.choice(["containers", "=(initContainers)", "^(containers)"]): [entry]}
        spec[random.choice(anchors[:4]).format("hostNetwork")] = random.choice([True, False, "true", "*"])
        pattern: JSON = {"spec": spec}
        try:
            expression = holds(pattern, reference, "pattern").text
        except UnconvertibleError:
            continue
        assert {(False, False), (True, True)} >= set(_blocked("Pod", [pattern], expression, is_any=False)), pattern
