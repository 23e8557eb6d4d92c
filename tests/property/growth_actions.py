"""Every rule action under the doubling law: one policy each, reviewing objects that grow.

`POLICIES` has a row per action; a new action without a row fails the test. A policy is a tenant's own text too:
`policy_subjects` compiles policies that grow.
"""

# ruff: noqa: E501 - tables with a row each
from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pyverno.compiler import compile_documents
from pyverno.engine import actions
from pyverno.engine.engine import Engine
from pyverno.engine.host import NO_HOST
from pyverno.engine.phases import ADMISSION, DELETING, GENERATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.rule import CompiledPolicy
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.lang.runtime import Budget
from tests.bench.adversary import CONTAINERS, SPEC_LISTS, TEXTS
from tests.property.growth import Call, Shape, Subject
from tests.property.growth_inputs import text, text_names

__all__ = [
    "ACTIONS",
    "POLICIES",
    "WHOLES",
    "action_modules",
    "action_subjects",
    "compiles",
    "in_cel",
    "policy_subjects",
    "written",
    "written_in_cel",
]

_EACH = "request.object.spec.containers"
POLICIES: Mapping[str, JSONObject] = {
    "pattern": {"validate": {"message": "m {{ request.object.metadata.name }}", "pattern": {"spec": {"containers": [{"image": "!*:latest"}]}}}},
    "pattern with wildcards": {"validate": {"message": "m", "pattern": {"spec": {"containers": [{"name": "?*a?*b", "image": "*?a*?"}]}}}},
    "pattern of labels": {"validate": {"message": "m", "pattern": {"metadata": {"labels": {"z*": "?*"}}}}},
    "existence": {"validate": {"message": "m", "pattern": {"spec": {"^(containers)": [{"name": "zz"}]}}}},
    "condition anchors": {"validate": {"message": "m", "pattern": {"spec": {"containers": [{"(image)": "*:latest", "name": "x"}]}}}},
    "any pattern": {"validate": {"message": "m", "anyPattern": [
        {"spec": {"containers": [{"name": "?*"}], "z": "b"}}, {"spec": {"containers": [{"image": "?*"}], "=(initContainers)": [{"name": "y"}], "z": "b"}}]}},
    "deny": {"validate": {"message": "m", "deny": {"conditions": {"any": [
        {"key": "{{ " + _EACH + "[].image }}", "operator": "AnyNotIn", "value": ["a*", "b?"]}]}}}},
    "deny of two lists": {"validate": {"message": "m", "deny": {"conditions": {"any": [
        {"key": "{{ " + _EACH + "[].image }}", "operator": "AllIn", "value": "{{ " + _EACH + "[].name }}"}]}}}},
    "deny of two texts": {"validate": {"message": "m", "deny": {"conditions": {"all": [
        {"key": "{{ request.object.metadata.annotations.a || '' }}", "operator": "Equals", "value": "{{ request.object.metadata.annotations.b || '' }}"}]}}}},
    "foreach": {"validate": {"message": "m", "foreach": [{"list": _EACH, "pattern": {"image": "!*:latest"}}]}},
    "foreach with deny": {"validate": {"message": "m", "foreach": [{"list": _EACH, "deny": {"conditions": {"any": [
        {"key": "{{ element.image }}", "operator": "Equals", "value": "x"}]}}}]}},
    "foreach with context": {"validate": {"message": "m", "foreach": [{"list": _EACH, "context": [{"name": "v", "variable": {
        "jmesPath": "length(" + _EACH + ")"}}], "deny": {"conditions": {"any": [{"key": "{{ v }}", "operator": "Equals", "value": 0}]}}}]}},
    "images": {"validate": {"message": "m", "deny": {"conditions": {"any": [
        {"key": "{{ images.containers.*.registry }}", "operator": "AnyNotIn", "value": ["docker.io"]}]}}}},
    "baseline": {"validate": {"podSecurity": {"level": "baseline", "version": "latest"}}},
    "restricted with excludes": {"validate": {"podSecurity": {"level": "restricted", "version": "latest", "exclude": [
        {"controlName": "Capabilities", "images": ["*"], "restrictedField": "spec.containers[*].securityContext.capabilities.add", "values": ["A*"]}]}}},
    "cel": {"validate": {"cel": {"expressions": [{"expression": "object.spec.containers.all(c, c.image.startsWith('x') || c.image.contains('b'))"}]}}},
    "merge": {"mutate": {"patchStrategicMerge": {"spec": {"containers": [{"(name)": "*", "imagePullPolicy": "Always"}]}}}},
    "merge of one": {"mutate": {"patchStrategicMerge": {"spec": {"containers": [{"name": "c1", "imagePullPolicy": "Always"}]}}}},
    "merge of labels": {"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"+(a)": "b"}}}}},
    "merge of volumes": {"mutate": {"patchStrategicMerge": {"spec": {"volumes": [{"name": "n", "emptyDir": {}}]}}}},
    "json patch": {"mutate": {"patchesJson6902": '[{"op": "add", "path": "/spec/containers/0/x", "value": "y"}]'}},
    "foreach merge": {"mutate": {"foreach": [{"list": _EACH, "patchStrategicMerge": {"spec": {"containers": [
        {"(name)": "{{ element.name }}", "image": "r/{{ element.image }}"}]}}}]}},
    "foreach json patch": {"mutate": {"foreach": [{"list": _EACH, "patchesJson6902":
        '[{"op": "add", "path": "/spec/containers/{{ elementIndex }}/x", "value": "y"}]'}]}},
    "generate": {"generate": {"apiVersion": "v1", "kind": "ConfigMap", "name": "g", "namespace": "default", "data": {
        "data": {"a": "{{ request.object.spec.containers }}", "b": "{{ request.object.metadata.labels || '' }}"}}}},
    "preconditions": {"preconditions": {"all": [{"key": "{{ " + _EACH + "[?contains(image, 'b')] | length(@) }}", "operator": "GreaterThan", "value": 0}]},
        "validate": {"message": "{{ request.object }}", "deny": {}}},
}  # fmt: skip
"""A rule per action and per way of writing it; the rest of a policy is added."""

CEL_POLICIES: Mapping[str, str] = {
    "ValidatingPolicy": """
validations: [{expression: "object.spec.containers.all(c, c.name != 'a')", messageExpression: "object.metadata.name + 'x'"}]
variables: [{name: x, expression: "object.spec.containers.map(c, c.image)"}]
auditAnnotations: [{key: a, valueExpression: "string(size(variables.x))"}]""",
    "MutatingPolicy": """
mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}}]""",
    "DeletingPolicy": """
schedule: "0 0 * * *"
conditions: [{name: a, expression: "object.spec.containers.exists(c, c.name == 'zz')"}]""",
}
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "pattern": ("pattern", "any pattern"), "deny": ("deny",), "foreach": ("foreach",), "pod_security": ("baseline",),
    "cel.validate": ("cel", "ValidatingPolicy"), "cel.mutate": ("MutatingPolicy",), "cel.delete": ("DeletingPolicy",),
    "mutate": ("merge", "foreach merge"), "patches": ("json patch",), "generate": ("generate",),
    "elements": ("foreach",), "message": ("preconditions",), "cel.annotations": ("ValidatingPolicy",),
}  # fmt: skip
"""Rows by the module of `engine.actions` that they run."""
ELSEWHERE: Mapping[str, str] = {
    "cel.admission": "Kubernetes' own policies: the same expressions as ValidatingPolicy",
    "cel.authorize": "authorization requests, not admission reviews",
    "cel.images": "asks a registry: priced by calls; documents in `growth_images`",
    "verify_images": "asks a registry: priced by calls; documents in `growth_images`",
    "verify_manifests": "reads and compares manifests: rows in `growth_images`",
    "cel.generate": "asks the world: priced by calls",
    "cel.inplace": "asks the world: priced by calls; each object as MutatingPolicy",
    "existing": "asks the world: priced by calls",
    "cel.targets": "asks the world: priced by calls",
    "delete": "conditions as of deny",
    "exemption": "no action of its own",
    "unavailable": "an error and nothing else",
}


def action_modules() -> frozenset[str]:
    """Return the names of the modules of actions."""
    found = pkgutil.walk_packages(actions.__path__, f"{actions.__name__}.")
    return frozenset(each.name.removeprefix(f"{actions.__name__}.") for each in found if not each.ispkg)


def action_subjects() -> Iterator[Subject]:
    """Yield every row with every shape of object."""
    for name, rule in POLICIES.items():
        yield Subject(f"rule {name}", _object_shapes(_compiled(written(rule))))
    for kind, spec in CEL_POLICIES.items():
        yield Subject(f"{kind}", _object_shapes(_compiled(written_in_cel(kind, spec))))


def written(rule: JSONObject, name: str = "p") -> JSONObject:
    whole = {"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, **rule}
    metadata = {"name": name, "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"}}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": {"rules": [whole]}}


def written_in_cel(kind: str, spec: str) -> JSONObject:
    header = f"""apiVersion: policies.kyverno.io/v1
kind: {kind}
metadata: {{name: p}}
spec:
  matchConstraints: {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}}]}}
"""
    (document,) = load_documents(header + "\n".join(f"  {line}" for line in spec.strip().splitlines()) + "\n")
    return document.value


def _compiled(value: JSONObject) -> tuple[CompiledPolicy, ...]:
    compilation = compile_documents([_document(value)])
    assert not compilation.errors, compilation.errors
    return compilation.policies


@cache
def _sample() -> Document:
    (document,) = load_documents("a: b")
    return document


def _document(value: JSONObject) -> Document:
    from dataclasses import replace

    return replace(_sample(), value=value)


def _object_shapes(policies: tuple[CompiledPolicy, ...]) -> dict[str, Shape]:
    engine = Engine(PolicySet(policies), NO_HOST)
    phases = DELETING if any(policy.info.kind == "DeletingPolicy" for policy in policies) else (*ADMISSION, *GENERATING)
    shapes: dict[str, Shape] = {}

    def reviewed(make: Any) -> Shape:
        def shape(size: int) -> Call:
            request = Request.from_manifest(make(size))

            def run(budget: Budget) -> object:
                review = engine.review(request, phases, budget=budget)
                return review, review.decision

            return run

        return shape

    for name in ("bare", "bad", "wildcard", "capabilities", "ports", "image", "unicode", "tiny"):
        weight = len(str(CONTAINERS[name](100)))
        shapes[f"containers {name}"] = reviewed(
            lambda size, name=name, weight=weight: _pod(
                [CONTAINERS[name](each) for each in range(max(1, size // weight))]
            )
        )
    for name, unit in SPEC_LISTS.items():
        shapes[name] = reviewed(
            lambda size, name=name, unit=unit: _pod(
                [CONTAINERS["bare"](1)], **{name: [unit(each) for each in range(size // 40)]}
            )
        )
    for each in (*TEXTS, "?a"):
        shapes[f"image of {each!r}"] = reviewed(
            lambda size, each=each: _pod([{"name": "c", "image": each * (size // len(each))}])
        )
        shapes[f"annotations of {each!r}"] = reviewed(
            lambda size, each=each: _pod(
                [CONTAINERS["bare"](1)],
                metadata={"a": each * (size // 2 // len(each)), "b": each * (size // 2 // len(each)) + "b"},
            )
        )
        shapes[f"name of {each!r}"] = reviewed(
            lambda size, each=each: _pod([{"name": each * (size // len(each)), "image": "a"}])
        )
    shapes["many labels"] = reviewed(
        lambda size: _pod([CONTAINERS["bare"](1)], labels={f"k{number}": "v" for number in range(size // 12)})
    )
    return shapes


def _pod(containers: list[Any], *, metadata: Any = None, labels: Any = None, **spec: Any) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "annotations": metadata or {}, "labels": labels or {}},
        "spec": {"containers": containers, **spec},
    }


def policy_subjects() -> Iterator[Subject]:
    """Yield the compiler, with policies that grow as its input."""
    for where, write in _PLACES.items():
        shapes = {f"text {each}": _compiles_text(write, text_name=each) for each in text_names()}
        yield Subject(f"compile {where}", shapes, largest=1 << 18)
    yield Subject("compile whole policies", {name: compiles(make) for name, make in WHOLES.items()}, largest=1 << 18)
    from tests.property.growth_faults import FAULTY  # which has the policies of this module

    for name, make in FAULTY.items():
        yield Subject(f"compile {name}", {name: compiles(make)}, largest=1 << 17)


def _compiles_text(write: Any, *, text_name: str) -> Shape:
    return compiles(lambda size: write(text(text_name, size)))


def compiles(make: Any) -> Shape:
    def shape(size: int) -> Call:
        document = _document(make(size))
        return lambda budget: compile_documents([document])

    return shape


def in_cel(expression: str) -> JSONObject:
    value = written_in_cel("ValidatingPolicy", "validations: [{expression: 'true'}]")
    return {**value, "spec": {**value["spec"], "validations": [{"expression": expression}]}}


_PLACES: Mapping[str, Any] = {
    "pattern": lambda given: written({"validate": {"message": "m", "pattern": {"a": given}}}),
    "pattern key": lambda given: written({"validate": {"message": "m", "pattern": {given: "a"}}}),
    "message": lambda given: written({"validate": {"message": given, "pattern": {"a": "b"}}}),
    "variable": lambda given: written({"validate": {"message": "{{ " + given + " }}", "pattern": {"a": "b"}}}),
    "regular expression": lambda given: written({"validate": {"message": "{{ regex_match('" + given.replace("'", "") + "', 'a') }}", "pattern": {"a": "b"}}}),
    "condition": lambda given: written({"validate": {"message": "m", "deny": {"conditions": {"any": [{"key": given, "operator": "Equals", "value": given}]}}}}),
    "json patch": lambda given: written({"mutate": {"patchesJson6902": given}}),
    "kind": lambda given: written({"match": {"any": [{"resources": {"kinds": [given]}}]}, "validate": {"message": "m", "pattern": {"a": "b"}}}),
    "name": lambda given: written({"match": {"any": [{"resources": {"kinds": ["Pod"], "names": [given]}}]}, "validate": {"message": "m", "pattern": {"a": "b"}}}),
    "cel": in_cel,
    "cel regular expression": lambda given: in_cel("object.metadata.name.matches(r\"" + given.replace('"', "") + "\")"),
}  # fmt: skip


def _rules(count: int) -> JSONObject:
    value = written({"validate": {"message": "m", "pattern": {"spec": {"containers": [{"name": "a"}]}}}})
    rule = value["spec"]["rules"][0]
    return {
        **value,
        "metadata": {"name": "p"},
        "spec": {"rules": [{**rule, "name": f"r{number}"} for number in range(count)]},
    }


def _nested(count: int) -> JSONObject:
    pattern: Any = "a"
    for _ in range(min(count, 400)):
        pattern = {"a": [pattern]}
    return written({"validate": {"message": "m", "pattern": pattern}})


WHOLES: Mapping[str, Any] = {
    "rules": lambda size: _rules(max(1, size // 200)),
    "deep pattern": lambda size: _nested(size // 8),
    "wide pattern": lambda size: written({"validate": {"message": "m", "pattern": {f"k{n}": "a" for n in range(size // 10)}}}),
    "wide conditions": lambda size: written({"validate": {"message": "m", "pattern": {"a": [{f"(k{n})": "a"} for n in range(size // 20)]}}}),
    "any patterns": lambda size: written({"validate": {"message": "m", "anyPattern": [{"a": f"{n}"} for n in range(size // 12)]}}),
    "context": lambda size: written({"context": [{"name": f"v{n}", "variable": {"value": f"{{{{ v{max(0, n - 1)} }}}}"}} for n in range(size // 50)],
                                      "validate": {"message": "m", "pattern": {"a": "b"}}}),
    "conditions": lambda size: written({"validate": {"message": "m", "deny": {"conditions": {"any": [
        {"key": "{{ request.object.a }}", "operator": "Equals", "value": n} for n in range(size // 70)]}}}}),
    "kinds": lambda size: written({"match": {"any": [{"resources": {"kinds": [f"Pod{n}" for n in range(size // 8)]}}]}, "validate": {"message": "m", "pattern": {"a": "b"}}}),
    "references": lambda size: written({"validate": {"message": "m", "pattern": {"a": "b", **{f"k{n}": "$(./a)" for n in range(size // 20)}}}}),
    "cel and": lambda size: in_cel(" && ".join(["object.a"] * (size // 12))),
    "cel or in parentheses": lambda size: in_cel("(" * min(size // 4, 240) + "true" + ")" * min(size // 4, 240)),
    "cel list": lambda size: in_cel("[" + ", ".join(["1"] * (size // 3)) + "].size() > 0"),
    "cel deep list": lambda size: in_cel("[" * min(size // 4, 240) + "1" + "]" * min(size // 4, 240) + " == []"),
    "cel macros": lambda size: in_cel(" && ".join(["object.a.all(x, x.b)"] * (size // 25))),
    "cel nested macros": lambda size: in_cel("object.a" + ".map(x, x)" * min(size // 10, 200) + " == []"),
    "cel macros in macros": lambda size: in_cel("object.all(x, " * min(size // 30, 60) + "true" + ")" * min(size // 30, 60)),
    "cel binds": lambda size: in_cel("cel.bind(x, [x, x], " * min(size // 30, 40) + "true" + ")" * min(size // 30, 40)),
    "cel generics": lambda size: in_cel("cel.bind(x, [1], " + "cel.bind(x, {1: x}, " * min(size // 30, 40) + "true" + ")" * (1 + min(size // 30, 40))),
    "cel optionals": lambda size: in_cel("object" + ".?a" * min(size // 3, 240) + ".hasValue()"),
    "cel text": lambda size: in_cel("'" + "a" * size + "' == ''"),
    "cel plus": lambda size: in_cel(" + ".join(["1"] * (size // 4)) + " > 0"),
    "cel conditional": lambda size: in_cel("true ? true : " * min(size // 14, 200) + "true"),
    "cel not": lambda size: in_cel("!" * min(size, 200) + "true"),
}  # fmt: skip
