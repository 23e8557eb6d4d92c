"""The engine's results for a case, as plain data for `expected.yaml`.

Whatever is empty is left out, so that a snapshot shows what matters. Nothing here decides what is right.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyverno.engine.effects import CreateEffect, DeleteEffect, Effect, PatchEffect
from pyverno.engine.engine import Engine, Review
from pyverno.engine.phases import ADMISSION, DELETING
from pyverno.engine.result import PodSecurityDetail, ResourceRef, RuleResult
from pyverno.errors import PolicyError
from pyverno.kube.json import JSONObject
from pyverno.kube.patch.jsondiff import create_patch
from pyverno.kube.yaml.writer import dump_yaml
from tests.cases.case import Case

PHASES = ADMISSION + DELETING


def reviews_of(case: Case) -> list[Review]:
    """Ask the library about every object of a case."""
    engine = Engine(case.compilation.policy_set(), case.host)
    return [engine.review(request, PHASES) for request in case.requests()]


def snapshot(case: Case) -> str:
    """Return the text of a case's `expected.yaml`."""
    compiled = case.compilation
    value: JSONObject = {
        "errors": [problem(error) for error in compiled.errors],
        "warnings": list(compiled.warnings),
        "reviews": [review_object(review) for review in reviews_of(case)],
    }
    return dump_yaml(filled(value), sort_keys=False)


def problem(error: PolicyError) -> JSONObject:
    """Return an error of a policy."""
    return {"code": error.code, "location": str(error.location), "path": error.path, "message": error.message}


def review_object(review: Review) -> JSONObject:
    """Return a review: results, decision and effects."""
    decision = review.decision
    effects = review.effects
    return filled(
        {
            "resource": str(ResourceRef.of(review.request.subject)),
            "operation": review.request.operation.value,
            "results": [result_object(result) for result in review.results],
            "allowed": decision.allowed,
            "denial": decision.message,
            "warnings": list(decision.warnings),
            "patch": list(decision.patch),
            "creates": [creation(each) for each in effects if isinstance(each, CreateEffect)],
            "patches": [patching(each) for each in effects if isinstance(each, PatchEffect)],
            "deletes": [str(each.target) for each in effects if isinstance(each, DeleteEffect)],
        }
    )


def result_object(result: RuleResult) -> JSONObject:
    """Return the result of one rule as plain data."""
    checks = result.detail.checks if isinstance(result.detail, PodSecurityDetail) else ()
    return filled(
        {
            "policy": result.rule.policy.key,
            "rule": result.rule.name,
            "status": result.status.value,
            "message": result.message,
            "action": result.action.value,
            "controls": [str(check.get("id")) for check in checks],
            "properties": dict(result.properties),
            "exceptions": list(result.exceptions),
            "target": str(result.target) if result.target is not None else "",
        }
    )


def creation(effect: CreateEffect) -> JSONObject:
    """Return an object that a rule wants to exist."""
    return filled(
        {
            "resource": effect.resource,
            "synchronize": effect.synchronize,
            "source": str(effect.source) if effect.source is not None else "",
        }
    )


def patching(effect: PatchEffect) -> JSONObject:
    """Return a change of an existing object."""
    return {"target": str(effect.target), "patch": create_patch(effect.before, effect.after)}


def said(results: Iterable[RuleResult]) -> list[tuple[str, str, str, str]]:
    """Return policy, rule, status and message of results, for comparing doors."""
    return [(each.rule.policy.key, each.rule.name, each.status.value, each.message) for each in results]


def effect_names(effects: Iterable[Effect]) -> list[str]:
    """Return the names of the objects that effects create or change, for comparing doors."""
    return [
        str(ResourceRef.of(each.resource)) if isinstance(each, CreateEffect) else str(each.target) for each in effects
    ]


def filled(value: JSONObject) -> JSONObject:
    """Leave out what is empty (but keep `allowed`)."""
    return {
        key: item
        for key, item in value.items()
        if item is True or key == "allowed" or item not in ("", [], {}, None, False)
    }
