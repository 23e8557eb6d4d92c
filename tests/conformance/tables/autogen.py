"""Table `autogen`: eligibility, controllers and copies of rules, names of copies, variable paths in copies."""

from __future__ import annotations

from typing import Any

from pyverno.compiler.autogen.patterns import ANNOTATION, autogen_controllers, expand, is_autogen_name
from tests.conformance.outcome import NO_ASSERTION, Claim, NotRun
from tests.conformance.policies import written_policy
from tests.conformance.tables.go_structs import as_json

_DENY = {"message": "no", "deny": {}}
_POD_TEMPLATES = {"Pod": "Deployment", "Cronjob": "CronJob", "CronJob": "CronJob"}


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row by the fields that it has."""
    if "policy" in row and "expectedControllers" in row:
        wanted = sorted(set(row["expectedControllers"] or ()) - {"none"})
        return Claim(wanted, sorted(autogen_controllers(written_policy(row["policy"]))))
    if "policy" in row and "expectedRules" in row:
        return _rules(row)
    if "meta" in row:
        return _annotation(row)
    if "prefix" in row and "ruleName" in row:
        return _copy_name(row)
    if "ruleName" in row and isinstance(row.get("expected"), bool):
        return Claim(row["expected"], is_autogen_name(row["ruleName"]))
    if "pbyte" in row:
        shift = _shifted if row["pbyte"].startswith("request.") else _shifted_cel
        return Claim(row["want"], shift(row["pbyte"], _POD_TEMPLATES[row["kind"]]))
    if "expectedPod" in row:
        raise NotRun("about a Go function that has no counterpart here")
    raise NotRun(NO_ASSERTION)


def _rules(row: dict[str, Any]) -> Claim:
    rules = expand(written_policy(row["policy"]))
    wanted = row["expectedRules"]
    if all(isinstance(name, str) for name in wanted):
        return Claim(wanted, [rule.name for rule in rules])
    # rows leave out rules that Go code makes of named constants, so each rule is compared with that of its name
    made = {rule.name: as_json(rule.raw) for rule in rules}
    listed = {rule["name"]: rule for rule in as_json(wanted)}
    return Claim(listed, {name: made.get(name) for name in listed})


def _policy(name: str, validate: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    rule = {"name": name, "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "validate": validate}
    metadata = {"name": "row", "annotations": annotations}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": {"rules": [rule]}}


def _copy_name(row: dict[str, Any]) -> Claim:
    """Ask for the copy that has the prefix: the one for CronJobs, or that for the other controllers."""
    controller = "CronJob" if row["prefix"].endswith("cronjob") else "Deployment"
    policy = _policy(row["ruleName"], _DENY, {ANNOTATION: controller})
    return Claim(row["expected"], expand(written_policy(policy))[-1].name)


def _shifted(expression: str, controller: str) -> str:
    denial = {**_DENY, "message": "{{ " + expression + " }}"}
    policy = _policy("row", denial, {ANNOTATION: controller})
    message = expand(written_policy(policy))[-1].raw["validate"]["message"]
    return str(message).removeprefix("{{ ").removesuffix(" }}")


def _shifted_cel(expression: str, controller: str) -> str:
    policy = _policy("row", {"cel": {"expressions": [{"expression": expression}]}}, {ANNOTATION: controller})
    validate = expand(written_policy(policy))[-1].raw["validate"]
    return str(validate["cel"]["expressions"][0]["expression"])


def _annotation(row: dict[str, Any]) -> Claim:
    """Compare the controllers that autogen derives from the annotation; a nil result in Go means "all"."""
    written = list((row["meta"].get("Annotations") or {}).values())
    annotations = {ANNOTATION: written[0]} if written else {}
    got = autogen_controllers(written_policy(_policy("row", _DENY, annotations)))
    everything = autogen_controllers(written_policy(_policy("row", _DENY, {})))
    wanted = row["expectedControllers"]
    if wanted is None:
        return Claim(sorted(everything), sorted(got))
    return Claim(sorted([wanted] if isinstance(wanted, str) else wanted), sorted(got))
