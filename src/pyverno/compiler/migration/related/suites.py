"""Suites of the command line (`kyverno-test.yaml`) for converted policies: names, files, rules and flags of the rows.

Rows of several rules that became one policy are joined: the worst result counts. Rows of rules that stay as they are
are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyverno.compiler.migration.outcome import Converted, Note, UnconvertibleError
from pyverno.compiler.migration.related.successors import Successor, Successors
from pyverno.kube.json import JSONObject

__all__ = ["convert_suite"]

_FLAGS: Final = {
    "ValidatingPolicy": "isValidatingPolicy",
    "MutatingPolicy": "isMutatingPolicy",
    "GeneratingPolicy": "isGeneratingPolicy",
    "ImageValidatingPolicy": "isImageValidatingPolicy",
    "DeletingPolicy": "isDeletingPolicy",
    "ValidatingAdmissionPolicy": "isValidatingAdmissionPolicy",
    "MutatingAdmissionPolicy": "isMutatingAdmissionPolicy",
}
_WORST: Final = ("error", "fail", "warn", "pass", "skip")
_OWN: Final = ("patchedResources", "patchedResource", "generatedResource", "generatedResources", "cloneSourceResource")


def convert_suite(
    suite: JSONObject, successors: Successors, files: Mapping[str, Sequence[str]] | None = None
) -> Converted:
    """Return a suite with the new policies; raises UnconvertibleError.

    `files` maps files that the suite names under `policies` and `exceptions` to those that take their place.
    """
    notes: list[Note] = []
    changed = dict(suite)
    for name in ("policies", "exceptions"):
        if isinstance(suite.get(name), list):
            found = [each for path in suite[name] for each in (files or {}).get(path, (path,))]
            changed[name] = list(dict.fromkeys(found))
    rows: dict[tuple[object, ...], JSONObject] = {}
    for number, row in enumerate(suite.get("results") or ()):
        for place, converted in _rows(row, successors, f"results[{number}]"):
            if converted.get(_FLAGS["MutatingPolicy"]) and (row.get("result") or row.get("status")) == "skip":
                text = "a policy in CEL passes where it changes nothing, so rows that expect a skip are left out"
                notes.append(Note("suite-skip", f"results[{number}]", text))
                continue
            same = rows.get(place)
            rows[place] = converted if same is None else _worse(same, converted)
    changed["results"] = _group(list(rows.values()))
    values = suite.get("values")
    if suite.get("variables") or (isinstance(values, dict) and values.get("policies")):
        text = "values of single rules have no place in policies in CEL: give the data as resources or global entries"
        notes.append(Note("suite-values", "variables", text))
    return Converted((changed,), tuple(dict.fromkeys(notes)))


def _rows(row: JSONObject, successors: Successors, path: str) -> Sequence[tuple[tuple[object, ...], JSONObject]]:
    """Return the rows that take the place of one, each for one resource."""
    policy, rule = str(row.get("policy") or ""), str(row.get("rule") or "")
    kind = str(row.get("kind") or "")
    everything = successors.of_policy(policy) or successors.of_policy(policy.rpartition("/")[2])
    key = everything[0].policy if everything else policy
    found = _successors(successors, key, rule, kind)
    if not found:
        if everything and not any(rule in ("", name) for one, name in successors.kept if one == key):
            reason = f"rule `{rule}` of policy `{policy}` was not converted for {kind or 'any kind'}"
            raise UnconvertibleError("suite-rule", path, reason, "mend the row")
        return [((policy, rule, kind, number, path), row) for number in (0,)]
    made = []
    names = {(each.name, each.kind): each for each in found}
    for successor in names.values():
        rest = {name: value for name, value in row.items() if name not in ("policy", "rule", "resources", "resource")}
        rest = {name: value for name, value in rest.items() if name not in _FLAGS.values()}
        flag = _FLAGS[successor.kind.removeprefix("Namespaced")]
        head = {"policy": _policy_name(policy, successor), flag: True, **rest}
        own = tuple(str(row.get(name)) for name in _OWN if row.get(name) is not None)
        for resource in row.get("resources") or ([row["resource"]] if row.get("resource") else [None]):
            body = head if resource is None else {**head, "resources": [resource]}
            made.append(((successor.name, successor.kind, kind, str(resource), own), body))
    return made


def _successors(successors: Successors, policy: str, rule: str, kind: str) -> Sequence[Successor]:
    """Return the successors of a rule; copies for controllers may go by the name of the rule."""
    names = (rule, f"autogen-{rule}", f"autogen-cronjob-{rule}") if rule else ("",)
    found = [each for name in names for each in successors.find(policy, name)]
    return [each for each in found if not kind or kind in each.kinds or "*" in each.kinds]


def _policy_name(written: str, successor: Successor) -> str:
    namespace = written.partition("/")[0] if "/" in written else ""
    return f"{namespace}/{successor.name}" if namespace else successor.name


def _worse(one: JSONObject, other: JSONObject) -> JSONObject:
    results = [str(each.get("result") or each.get("status")) for each in (one, other)]
    ranks = [_WORST.index(each) if each in _WORST else len(_WORST) for each in results]
    return one if ranks[0] <= ranks[1] else other


def _group(rows: Sequence[JSONObject]) -> list[JSONObject]:
    """Merge rows that differ only in their resource."""
    groups: dict[str, JSONObject] = {}
    for row in rows:
        rest = {name: value for name, value in row.items() if name != "resources"}
        same = groups.get(repr(rest))
        if same is not None and "resources" in row and "resources" in same:
            same["resources"] = [*same["resources"], *row["resources"]]
        else:
            groups.setdefault(repr(rest), dict(row))
    return list(groups.values())
