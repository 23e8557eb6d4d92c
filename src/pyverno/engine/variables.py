"""The variables that every rule has: request, serviceAccountName, serviceAccountNamespace, images.

All of them are lazy. Variables that a person supplied for a rule (values files) lie under those of the rule's own
context entries.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.engine.request import Request
from pyverno.engine.scope import Scope, UnboundNameError
from pyverno.errors import BudgetExceededError, EvaluationError, PyvernoError
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.runtime import Runtime

__all__ = ["base_scope", "merged", "rule_scope"]


def base_scope(request: Request, runtime: Runtime) -> Scope:
    """Return the variables that are the same for all rules."""
    service_account_namespace, service_account_name = request.user.service_account
    values: JSONObject = {}
    if not request.user.is_empty:
        values["serviceAccountName"] = service_account_name
        values["serviceAccountNamespace"] = service_account_namespace
    return Scope(values, thunks={"request": request.variables, "images": lambda: _images(request, runtime)})


def rule_scope(scope: Scope, supplied: Mapping[str, JSON]) -> Scope:
    """Return the variables of one rule before its context entries: the common ones and the supplied ones."""
    if not supplied:
        return scope
    plain = {name: value for name, value in supplied.items() if name != "request"}
    child = scope.with_mapping(plain) if plain else scope
    extra = supplied.get("request")
    if isinstance(extra, dict):
        return child.bind("request", lambda: merged(scope["request"], extra))
    return child


def merged(below: JSON, above: JSON) -> JSON:
    """Lay one JSON value over another: maps are merged key by key, anything else replaces.

    >>> merged({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})
    {'a': {'b': 3, 'c': 2}}
    """
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    result = dict(below)
    for key, value in above.items():
        result[key] = merged(result[key], value) if key in result else value
    return result


def _images(request: Request, runtime: Runtime) -> JSON:
    # imported here, because few rules look at images
    from pyverno.images import extract_images

    try:
        settings = request.settings
        found = extract_images(
            request.subject,
            default_registry=settings.default_registry,
            mutate_registry=settings.mutates_registry,
            runtime=runtime,
        )
    except BudgetExceededError:
        raise
    except PyvernoError as error:
        raise EvaluationError(f"failed to extract images: {error.message}") from error
    if not found:
        # expressions read a missing name as an unknown key
        raise UnboundNameError("images")
    return found
