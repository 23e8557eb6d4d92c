"""Policies that are wrong in many places, or name many things: what the compiler does with them grows as they do.

A row makes a policy of about a size. Errors are reported with their places, and some with what was probably meant, so
that a policy with thousands of them must not be gone over for each.
"""

# ruff: noqa: E501 - a table with a row each
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyverno.kube.json import JSON, JSONObject
from tests.property.growth_actions import in_cel, written, written_in_cel

__all__ = ["FAULTY"]

Make = Callable[[int], JSON]
_VALIDATE: Final = {"message": "m", "pattern": {"a": "b"}}


def _entry(name: str, value: JSON = 1) -> JSONObject:
    return {"name": name, "variable": {"value": value}}


def _entries(count: int, entry: Make, message: Callable[[int], str] = lambda _: "m") -> JSONObject:
    """Return a rule with so many context entries, and a part of its message for each."""
    text = " ".join(message(number) for number in range(count))
    return written({"context": [entry(number) for number in range(count)], "validate": {**_VALIDATE, "message": text}})


def _rules(count: int, make: Make) -> JSONObject:
    value = written({"validate": _VALIDATE})
    rule = value["spec"]["rules"][0]
    return {**value, "spec": {"rules": [{**rule, "name": f"r{number}", **make(number)} for number in range(count)]}}


def _matching(**blocks: JSON) -> JSONObject:
    return written({**{name: {"any": found} for name, found in blocks.items()}, "validate": _VALIDATE})


def _conditions(count: int, make: Make) -> JSONObject:
    found = [make(number) for number in range(count)]
    return written({"validate": {"message": "m", "deny": {"conditions": {"any": found}}}})


def _pattern(count: int, key: str, value: str) -> JSONObject:
    """Return a pattern of so many keys; `#` in key and value is the number."""
    found = {key.replace("#", str(number)): value.replace("#", str(number)) for number in range(count)}
    return written({"validate": {"message": "m", "pattern": found}})


def _patch(count: int, operation: str) -> JSONObject:
    text = "".join(f"- {operation}\n".replace("#", str(number)) for number in range(count))
    return written({"mutate": {"patchesJson6902": text}})


def _cel(**fields: JSON) -> JSONObject:
    value = written_in_cel("ValidatingPolicy", "validations: [{expression: 'true'}]")
    return {**value, "spec": {**value["spec"], **fields}}


def _expressions(count: int, text: str) -> list[JSON]:
    return [{"expression": text.replace("#", str(number))} for number in range(count)]


def _variables(count: int, first: str, text: str) -> list[JSON]:
    """Return variables in CEL; `#` in the text is the number of the one before."""
    texts = (text.replace("#", str(number - 1)) if number else first for number in range(count))
    return [{"name": f"v{number}", "expression": each} for number, each in enumerate(texts)]


FAULTY: Final[Mapping[str, Callable[[int], JSONObject]]] = {
    "entries and variables": lambda size: _entries(size // 50, lambda n: _entry(f"v{n}"), lambda n: f"{{{{ v{n} }}}}"),
    "entries and others": lambda size: _entries(size // 50, lambda n: _entry(f"v{n}"), lambda n: f"{{{{ w{n} }}}}"),
    "entries and one other": lambda size: _entries(size // 50, lambda n: _entry(f"v{n}"), lambda _: "{{ w }}"),
    "entries with wildcards": lambda size: _entries(size // 50, lambda n: _entry(f"v?{n}"), lambda n: f"{{{{ w{n} }}}}"),
    "variables that do not parse": lambda size: _entries(size // 20, lambda n: _entry(f"v{n}"), lambda n: "{{ a ||| b }}"),
    "different variables that do not parse": lambda size: _entries(size // 20, lambda n: _entry(f"v{n}"), lambda n: f"{{{{ a{n} ||| b }}}}"),
    "queries that do not parse": lambda size: _entries(size // 60, lambda n: {"name": f"v{n}", "variable": {"jmesPath": "a ||| b"}}),
    "different queries that do not parse": lambda size: _entries(size // 60, lambda n: {"name": f"v{n}", "variable": {"jmesPath": f"a{n} ||| b"}}),
    "entries of nothing": lambda size: _entries(size // 20, lambda n: {"name": f"v{n}"}),
    "entries without names": lambda size: _entries(size // 40, lambda _: {"variable": {"value": 1}}),
    "entries of one name": lambda size: _entries(size // 40, lambda _: _entry("v")),
    "entries with unknown fields": lambda size: _entries(size // 40, lambda n: {"name": f"v{n}", "vriable": {"value": 1}}),
    "calls": lambda size: _entries(size // 90, lambda n: {"name": f"v{n}", "apiCall": {"urlPath": f"/api/{{{{ v{n} }}}}", "jmesPath": "a ||| b"}}),
    "references to nothing": lambda size: _entries(size // 60, lambda n: _entry(f"v{n}", "$(./zz)")),
    "references in a pattern": lambda size: _pattern(size // 20, "k#", "$(./zz)"),
    "keys that do not parse": lambda size: _pattern(size // 20, "{{ a# ||| }}", "b"),
    "values that do not parse": lambda size: _pattern(size // 20, "k#", "{{ a ||| b }}"),
    "keys that are not defined": lambda size: _pattern(size // 20, "{{ a# }}", "b"),
    "values that are not defined": lambda size: _pattern(size // 20, "k#", "{{ a# }}"),
    "values of one variable": lambda size: _pattern(size // 20, "k#", "{{ a }}"),
    "anchors that do not end": lambda size: _pattern(size // 10, "^(k#", "a"),
    "anchors of patches": lambda size: _pattern(size // 10, "+(k#)", "a"),
    "existence anchors": lambda size: _pattern(size // 10, "^(k#)", "a"),
    "operations without paths": lambda size: _patch(size // 12, "{op: add}"),
    "unknown operations": lambda size: _patch(size // 32, "{op: add#, path: /a, value: 1}"),
    "operations that do not parse": lambda size: _patch(size // 45, "{op: add, path: /a, value: '{{ a ||| b }}'}"),
    "operations that are not defined": lambda size: _patch(size // 45, "{op: add, path: /a, value: '{{ a# }}'}"),
    "operations with variables": lambda size: _patch(size // 45, "{op: add, path: /a, value: {{ request.object.a }} }"),
    "paths with variables": lambda size: _patch(size // 45, "{op: add, path: '/{{ request.object.a }}', value: 1}"),
    "rules of one name": lambda size: _rules(size // 120, lambda _: {"name": "r"}),
    "rules with unknown fields": lambda size: _rules(size // 120, lambda _: {"vlidate": {}}),
    "rules without actions": lambda size: _rules(size // 120, lambda _: {"validate": {}}),
    "rules without match": lambda size: _rules(size // 120, lambda _: {"match": {}}),
    "rules of unknown kinds": lambda size: _rules(size // 120, lambda n: {"match": {"any": [{"resources": {"kinds": [f"Nope{n}"]}}]}}),
    "rules with a variable": lambda size: _rules(size // 120, lambda _: {"validate": {"message": "{{ a }}", "pattern": {"a": "b"}}}),
    "rules with users": lambda size: _rules(size // 150, lambda _: {"match": {"any": [{"subjects": [{"kind": "User", "name": "a"}]}]}}),
    "unknown operators": lambda size: _conditions(size // 50, lambda n: {"key": "a", "operator": f"Equals{n}", "value": 1}),
    "conditions with unknown fields": lambda size: _conditions(size // 50, lambda _: {"kye": "a", "operator": "Equals", "value": 1}),
    "conditions that are not defined": lambda size: _conditions(size // 50, lambda n: {"key": f"{{{{ a{n} }}}}", "operator": "Equals", "value": 1}),
    "conditions that do not parse": lambda size: _conditions(size // 50, lambda _: {"key": "{{ a ||| b }}", "operator": "Equals", "value": 1}),
    "conditions of users": lambda size: _conditions(size // 50, lambda n: {"key": f"{{{{ request.userInfo.a{n} }}}}", "operator": "Equals", "value": 1}),
    "conditions of operations": lambda size: _conditions(size // 50, lambda n: {"key": "{{ request.operation }}", "operator": "Equals", "value": f"CREATE{n}"}),
    "unknown fields": lambda size: {**written({"validate": _VALIDATE}), **{f"k{n}": 1 for n in range(size // 8)}},
    "unknown fields of a rule": lambda size: written({"validate": _VALIDATE, **{f"k{n}": 1 for n in range(size // 8)}}),
    "loops that do not parse": lambda size: written({"validate": {"message": "m", "foreach": [{"list": "a ||| b", "pattern": {"a": "b"}}] * (size // 50)}}),
    "loops with entries": lambda size: written({"validate": {"message": "m", "foreach": [
        {"list": "a", "context": [_entry(f"v{n}")], "deny": {"conditions": {"any": [{"key": f"{{{{ w{n} }}}}", "operator": "Equals", "value": 1}]}}} for n in range(size // 120)]}}),
    "loops of wrong patches": lambda size: written({"mutate": {"foreach": [{"list": "a", "patchesJson6902": "- {op: ad}"}] * (size // 50)}}),
    "targets": lambda size: written({"mutate": {"targets": [{"apiVersion": "v1", "kind": "Pod", "name": f"{{{{ w{n} }}}}"} for n in range(size // 50)], "patchStrategicMerge": {"a": "b"}}}),
    "targets with entries": lambda size: written({"mutate": {"targets": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "context": [_entry(f"v{n}")]} for n in range(size // 90)], "patchStrategicMerge": {"a": "{{ target.a }}"}}}),
    "generated data": lambda size: written({"generate": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "b", "data": {"data": {f"k{n}": f"{{{{ w{n} }}}}" for n in range(size // 20)}}}}),
    "generating loops": lambda size: written({"generate": {"foreach": [{"list": "a", "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "b", "data": {}}] * (size // 100)}}),
    "images": lambda size: written({"verifyImages": [{"imageReferences": [f"a{n}*"], "attestors": [{"entries": [{"keys": {"publicKeys": "x"}}]}]} for n in range(size // 100)]}),
    "references of images": lambda size: written({"verifyImages": [{"imageReferences": [f"a{n}*" for n in range(size // 8)], "attestors": [{"entries": [{"keys": {"publicKeys": "x"}}]}]}]}),
    "attestations": lambda size: written({"verifyImages": [{"imageReferences": ["*"], "attestations": [
        {"name": f"a{n}", "type": "x", "conditions": [{"all": [{"key": "{{ w }}", "operator": "Equals", "value": 1}]}]} for n in range(size // 120)]}]}),
    "unknown controls": lambda size: written({"validate": {"message": "m", "podSecurity": {"level": "baseline", "exclude": [{"controlName": f"X{n}"} for n in range(size // 25)]}}}),
    "the same control": lambda size: written({"validate": {"message": "m", "podSecurity": {"level": "baseline", "exclude": [{"controlName": "Capabilities", "images": ["*"]}] * (size // 50)}}}),
    "labels of a selector": lambda size: _matching(match=[{"resources": {"kinds": ["Pod"], "selector": {"matchLabels": {f"k{n}*": "?" for n in range(size // 10)}}}}]),
    "blocks that match": lambda size: _matching(match=[{"resources": {"kinds": ["Pod"], "names": [f"a{n}"]}} for n in range(size // 50)]),
    "blocks that match and exclude": lambda size: _matching(**{name: [{"resources": {"kinds": ["Pod"], "names": [f"{name}{n}"]}} for n in range(size // 100)] for name in ("match", "exclude")}),
    "kinds with wildcards": lambda size: _matching(match=[{"resources": {"kinds": [f"*/P{n}*/*" for n in range(size // 10)]}}]),
    "CEL: unknown names": lambda size: _cel(validations=_expressions(size // 30, "objct.a# == 1")),
    "CEL: syntax": lambda size: _cel(validations=_expressions(size // 30, "object.a == ")),
    "CEL: variables": lambda size: _cel(variables=_variables(size // 60, "object.a", "object.a"), validations=_expressions(size // 60, "variables.v# == 1")),
    "CEL: variables and others": lambda size: _cel(variables=_variables(size // 60, "object.a", "object.a"), validations=_expressions(size // 60, "variables.w# == 1")),
    "CEL: variables of variables": lambda size: _cel(variables=_variables(size // 60, "object.a", "variables.v#")),
    "CEL: variables that are used twice": lambda size: _cel(variables=_variables(size // 60, "object.a", "variables.v# + variables.v#")),
    "CEL: variables of one name": lambda size: _cel(variables=[{"name": "v", "expression": "object.a"}] * (size // 60)),
    "CEL: unknown names in one expression": lambda size: in_cel(" && ".join(f"objct.a{n}" for n in range(size // 12))),
    "CEL: unknown functions in one expression": lambda size: in_cel(" && ".join(f"fn{n}(object)" for n in range(size // 12))),
    "CEL: unknown names on lines": lambda size: in_cel(" &&\n ".join(f"objct.a{n}" for n in range(size // 12))),
    "CEL: match conditions": lambda size: _cel(matchConditions=[{"name": f"m{n}", "expression": "object.a ="} for n in range(size // 50)]),
    "CEL: match conditions of one name": lambda size: _cel(matchConditions=[{"name": "m", "expression": "object.a == 1"}] * (size // 50)),
    "CEL: rules": lambda size: _cel(matchConstraints={"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREAT"], "resources": [f"pods{n}"]} for n in range(size // 90)]}),
    "CEL: resources": lambda size: _cel(matchConstraints={"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [f"pods{n}" for n in range(size // 8)]}]}),
    "CEL: annotations": lambda size: _cel(auditAnnotations=[{"key": f"a{n}", "valueExpression": "object.b +"} for n in range(size // 50)]),
    "CEL: expressions of containers": lambda size: _cel(validations=_expressions(size // 60, "object.spec.containers.all(c, c.name != 'a')")),
}  # fmt: skip
"""Policies by what they have many of."""
