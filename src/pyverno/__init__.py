"""Policy for Kubernetes: one engine for Kyverno policies.

The library in four lines:

    import pyverno
    policies = pyverno.load_policies("policies/")
    review = pyverno.review(pod, policies)
    print([(r.rule.name, r.status, r.message) for r in review.results])

Everything that `__all__` names is public; it is imported when it is first used, so that `import pyverno` costs nothing.
This module must never hold code of its own.
"""

from __future__ import annotations

from pyverno.version import __version__

TYPE_CHECKING = False  # not from `typing`: importing that alone takes longer than all of this module

if TYPE_CHECKING:
    from pyverno.compiler import Compilation, compile_documents
    from pyverno.engine.decision import Decision
    from pyverno.engine.engine import Engine, Review
    from pyverno.engine.host import Host
    from pyverno.engine.phases import ADMISSION, DELETING, GENERATING, MUTATING, MUTATING_EXISTING, VALIDATING
    from pyverno.engine.policyset import PolicySet
    from pyverno.engine.request import Operation, Request, User
    from pyverno.engine.result import FailureAction, ResourceRef, RuleResult, Status
    from pyverno.errors import (
        BudgetExceededError,
        ContextEntryError,
        DocumentError,
        EvaluationError,
        ExpressionError,
        ExpressionSyntaxError,
        HostError,
        HostUnavailableError,
        Location,
        NotFoundError,
        PatchError,
        PolicyError,
        PyvernoError,
        SubstitutionError,
        UnknownKeyError,
        UsageError,
        ValueSyntaxError,
    )
    from pyverno.kube.yaml.documents import Document, load_documents
    from pyverno.offline.host import OfflineHost
    from pyverno.offline.library import compile_policies, load_policies, review
    from pyverno.offline.objects import ObjectStore
    from pyverno.offline.session import Session

__all__ = [
    "ADMISSION",
    "DELETING",
    "GENERATING",
    "MUTATING",
    "MUTATING_EXISTING",
    "VALIDATING",
    "BudgetExceededError",
    "Compilation",
    "ContextEntryError",
    "Decision",
    "Document",
    "DocumentError",
    "Engine",
    "EvaluationError",
    "ExpressionError",
    "ExpressionSyntaxError",
    "FailureAction",
    "Host",
    "HostError",
    "HostUnavailableError",
    "Location",
    "NotFoundError",
    "ObjectStore",
    "OfflineHost",
    "Operation",
    "PatchError",
    "PolicyError",
    "PolicySet",
    "PyvernoError",
    "Request",
    "ResourceRef",
    "Review",
    "RuleResult",
    "Session",
    "Status",
    "SubstitutionError",
    "UnknownKeyError",
    "UsageError",
    "User",
    "ValueSyntaxError",
    "__version__",
    "compile_documents",
    "compile_policies",
    "load_documents",
    "load_policies",
    "review",
]

_MODULES = {
    "pyverno.compiler": ("Compilation", "compile_documents"),
    "pyverno.engine.decision": ("Decision",),
    "pyverno.engine.engine": ("Engine", "Review"),
    "pyverno.engine.host": ("Host",),
    "pyverno.engine.phases": ("ADMISSION", "DELETING", "GENERATING", "MUTATING", "MUTATING_EXISTING", "VALIDATING"),
    "pyverno.engine.policyset": ("PolicySet",),
    "pyverno.engine.request": ("Operation", "Request", "User"),
    "pyverno.engine.result": ("FailureAction", "ResourceRef", "RuleResult", "Status"),
    "pyverno.errors": (
        "BudgetExceededError",
        "ContextEntryError",
        "DocumentError",
        "EvaluationError",
        "ExpressionError",
        "ExpressionSyntaxError",
        "HostError",
        "HostUnavailableError",
        "Location",
        "NotFoundError",
        "PatchError",
        "PolicyError",
        "PyvernoError",
        "SubstitutionError",
        "UnknownKeyError",
        "UsageError",
        "ValueSyntaxError",
    ),
    "pyverno.kube.yaml.documents": ("Document", "load_documents"),
    "pyverno.offline.host": ("OfflineHost",),
    "pyverno.offline.library": ("compile_policies", "load_policies", "review"),
    "pyverno.offline.objects": ("ObjectStore",),
    "pyverno.offline.session": ("Session",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module `pyverno` has no attribute `{name}`")
    from importlib import import_module

    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
