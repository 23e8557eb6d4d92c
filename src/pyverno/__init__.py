"""Policy for Kubernetes: one engine for Kyverno policies.

The library in four lines:

    import pyverno
    policies = pyverno.load_policies("policies/")
    review = pyverno.review(pod, policies)
    print([(r.rule.name, r.status, r.message) for r in review.results])

Everything that `__all__` names is public and imported on first use, so that `import pyverno` costs nothing.
"""

from __future__ import annotations

from pyverno.version import __version__

TYPE_CHECKING = False  # not from `typing`: importing that alone takes longer than all of this module

if TYPE_CHECKING:
    from pyverno.compiler import Compilation, compile_documents
    from pyverno.engine.decision import Decision
    from pyverno.engine.effects import CreateEffect, DeleteEffect, Effect, PatchEffect
    from pyverno.engine.engine import Engine, Review
    from pyverno.engine.explain.change import Change
    from pyverno.engine.explain.explanation import Explanation
    from pyverno.engine.host import Host, HttpCall, NoHost
    from pyverno.engine.phases import ADMISSION, DELETING, GENERATING, MUTATING, MUTATING_EXISTING, VALIDATING, Phase
    from pyverno.engine.policyset import PolicySet
    from pyverno.engine.request import Operation, Request, User
    from pyverno.engine.result import FailureAction, ResourceRef, RuleResult, RuleType, Status
    from pyverno.engine.rule import PolicyInfo, RuleInfo
    from pyverno.errors import (
        BudgetExceededError,
        CombinedError,
        ContextEntryError,
        DocumentError,
        EvaluationError,
        ExpressionError,
        ExpressionSyntaxError,
        HostError,
        HostUnavailableError,
        Location,
        NotFoundError,
        NullArgumentError,
        PatchError,
        PolicyError,
        PyvernoError,
        SubstitutionError,
        UnknownKeyError,
        UsageError,
        ValueSyntaxError,
        VerificationError,
    )
    from pyverno.kube.apipath import ApiPath
    from pyverno.kube.json import JSON, JSONObject
    from pyverno.kube.kinds import KindTable
    from pyverno.kube.yaml.documents import Document, load_documents
    from pyverno.offline.host import OfflineHost
    from pyverno.offline.library import areview, compile_policies, load_policies, review
    from pyverno.offline.objects import ObjectStore
    from pyverno.offline.session import Session
    from pyverno.registry.verification import DemandVerdict, ImageVerdict, verify_image

__all__ = [
    "ADMISSION",
    "DELETING",
    "GENERATING",
    "JSON",
    "MUTATING",
    "MUTATING_EXISTING",
    "VALIDATING",
    "ApiPath",
    "BudgetExceededError",
    "Change",
    "CombinedError",
    "Compilation",
    "ContextEntryError",
    "CreateEffect",
    "Decision",
    "DeleteEffect",
    "DemandVerdict",
    "Document",
    "DocumentError",
    "Effect",
    "Engine",
    "EvaluationError",
    "Explanation",
    "ExpressionError",
    "ExpressionSyntaxError",
    "FailureAction",
    "Host",
    "HostError",
    "HostUnavailableError",
    "HttpCall",
    "ImageVerdict",
    "JSONObject",
    "KindTable",
    "Location",
    "NoHost",
    "NotFoundError",
    "NullArgumentError",
    "ObjectStore",
    "OfflineHost",
    "Operation",
    "PatchEffect",
    "PatchError",
    "Phase",
    "PolicyError",
    "PolicyInfo",
    "PolicySet",
    "PyvernoError",
    "Request",
    "ResourceRef",
    "Review",
    "RuleInfo",
    "RuleResult",
    "RuleType",
    "Session",
    "Status",
    "SubstitutionError",
    "UnknownKeyError",
    "UsageError",
    "User",
    "ValueSyntaxError",
    "VerificationError",
    "__version__",
    "areview",
    "compile_documents",
    "compile_policies",
    "load_documents",
    "load_policies",
    "review",
    "verify_image",
]


def _compiler() -> object:
    from pyverno import compiler

    return compiler


def _engine_decision() -> object:
    from pyverno.engine import decision

    return decision


def _engine_engine() -> object:
    from pyverno.engine import engine

    return engine


def _engine_host() -> object:
    from pyverno.engine import host

    return host


def _engine_phases() -> object:
    from pyverno.engine import phases

    return phases


def _engine_policyset() -> object:
    from pyverno.engine import policyset

    return policyset


def _engine_request() -> object:
    from pyverno.engine import request

    return request


def _engine_result() -> object:
    from pyverno.engine import result

    return result


def _errors() -> object:
    from pyverno import errors

    return errors


def _kube_yaml_documents() -> object:
    from pyverno.kube.yaml import documents

    return documents


def _offline_host() -> object:
    from pyverno.offline import host

    return host


def _offline_library() -> object:
    from pyverno.offline import library

    return library


def _offline_objects() -> object:
    from pyverno.offline import objects

    return objects


def _offline_session() -> object:
    from pyverno.offline import session

    return session


def _registry_verification() -> object:
    from pyverno.registry import verification

    return verification


def _engine_effects() -> object:
    from pyverno.engine import effects

    return effects


def _engine_explain_change() -> object:
    from pyverno.engine.explain import change

    return change


def _engine_explain_explanation() -> object:
    from pyverno.engine.explain import explanation

    return explanation


def _engine_rule() -> object:
    from pyverno.engine import rule

    return rule


def _kube_apipath() -> object:
    from pyverno.kube import apipath

    return apipath


def _kube_json() -> object:
    from pyverno.kube import json

    return json


def _kube_kinds() -> object:
    from pyverno.kube import kinds

    return kinds


_MODULES = {
    _kube_kinds: ("KindTable",),
    _kube_json: (
        "JSON",
        "JSONObject",
    ),
    _kube_apipath: ("ApiPath",),
    _engine_rule: (
        "PolicyInfo",
        "RuleInfo",
    ),
    _engine_explain_explanation: ("Explanation",),
    _engine_explain_change: ("Change",),
    _engine_effects: (
        "CreateEffect",
        "DeleteEffect",
        "Effect",
        "PatchEffect",
    ),
    _compiler: (
        "Compilation",
        "compile_documents",
    ),
    _engine_decision: ("Decision",),
    _engine_engine: (
        "Engine",
        "Review",
    ),
    _engine_host: (
        "HttpCall",
        "NoHost",
        "Host",
    ),
    _engine_phases: (
        "Phase",
        "ADMISSION",
        "DELETING",
        "GENERATING",
        "MUTATING",
        "MUTATING_EXISTING",
        "VALIDATING",
    ),
    _engine_policyset: ("PolicySet",),
    _engine_request: (
        "Operation",
        "Request",
        "User",
    ),
    _engine_result: (
        "RuleType",
        "FailureAction",
        "ResourceRef",
        "RuleResult",
        "Status",
    ),
    _errors: (
        "BudgetExceededError",
        "CombinedError",
        "ContextEntryError",
        "DocumentError",
        "EvaluationError",
        "ExpressionError",
        "ExpressionSyntaxError",
        "HostError",
        "HostUnavailableError",
        "Location",
        "NotFoundError",
        "NullArgumentError",
        "PatchError",
        "PolicyError",
        "PyvernoError",
        "SubstitutionError",
        "UnknownKeyError",
        "UsageError",
        "ValueSyntaxError",
        "VerificationError",
    ),
    _kube_yaml_documents: (
        "Document",
        "load_documents",
    ),
    _offline_host: ("OfflineHost",),
    _offline_library: (
        "areview",
        "compile_policies",
        "load_policies",
        "review",
    ),
    _offline_objects: ("ObjectStore",),
    _offline_session: ("Session",),
    _registry_verification: ("DemandVerdict", "ImageVerdict", "verify_image"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module `pyverno` has no attribute `{name}`")
    value: object = getattr(module(), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
