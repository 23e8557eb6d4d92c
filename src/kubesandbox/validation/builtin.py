"""The judge: which checks an object of a kind goes through, on create and on update.

Kinds without checks of their own are judged by what their schema requires.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubesandbox.objects.fielderrors import invalid, required
from kubesandbox.types.resources import ResourceType
from kubesandbox.validation.check import Check
from kubesandbox.validation.kinds import ADDED_CHECKS, UPDATE_CHECKS, Update, kind_checks
from kubesandbox.validation.names import (
    Form,
    dns_label_1035_problems,
    dns_label_problems,
    dns_subdomain_problems,
    path_segment_problems,
)
from kubesandbox.validation.required import RequiredFields
from pyverno.kube.json import JSONObject
from pyverno.kube.schemas import SchemaSet
from pyverno.kube.status import FieldError

__all__ = ["BuiltinValidation", "name_errors"]


_NAME_FORMS: Final[Mapping[str, Form]] = {
    "namespaces": dns_label_problems,
    "services": dns_label_1035_problems,
    "statefulsets.apps": dns_label_problems,
    "cronjobs.batch": lambda name: (
        ("must be no more than 52 characters",) if len(name) > 52 else dns_subdomain_problems(name)
    ),
    **dict.fromkeys(
        (
            "roles.rbac.authorization.k8s.io",
            "rolebindings.rbac.authorization.k8s.io",
            "clusterroles.rbac.authorization.k8s.io",
            "clusterrolebindings.rbac.authorization.k8s.io",
            "certificatesigningrequests.certificates.k8s.io",
            "events",
            "poddisruptionbudgets.policy",
        ),
        path_segment_problems,
    ),
}
"""Names that are not DNS subdomains, by resource."""


class BuiltinValidation:
    """The validation of the kinds of one Kubernetes version; `version` chooses the libraries of CEL."""

    def __init__(self, schemas: SchemaSet, version: tuple[int, int]) -> None:
        self._schemas = schemas
        self._required = RequiredFields(schemas)
        self._checks = kind_checks(version)

    def errors(
        self, type_: ResourceType, body: JSONObject, old: JSONObject | None = None, subresource: str = ""
    ) -> list[FieldError]:
        """Return the errors in an object, and in the change when the stored object is given."""
        errors: list[FieldError] = []
        if subresource == "status":
            return []  # what controllers report is checked against the schema only
        if old is None and not subresource:
            errors += name_errors(type_, body)
        update: Update | None = UPDATE_CHECKS.get(type_.key)
        if old is not None and update is not None and update(body, old, subresource, errors):
            return errors
        check: Check | None = self._checks.get(type_.key)
        if check is not None:
            check(body, "", errors)
        else:
            definition = self._schemas.kinds.get((type_.group, type_.version, type_.kind))
            if definition is not None:
                self._required.check(definition, body, errors)
        added = ADDED_CHECKS.get(type_.key)
        if added is not None:
            added(body, "", errors)
        return errors


def name_errors(type_: ResourceType, body: JSONObject) -> list[FieldError]:
    """Return the errors in the name of a new object.

    >>> from kubesandbox.types.resources import builtin_table
    >>> pods = builtin_table("1.35").find("", "v1", "pods")
    >>> [str(error) for error in name_errors(pods, {"metadata": {}})]
    ['metadata.name: Required value: name or generateName is required']
    """
    metadata = body.get("metadata") or {}
    name = str(metadata.get("name") or "")
    form = _NAME_FORMS.get(type_.key, dns_subdomain_problems)
    errors = []
    generate = str(metadata.get("generateName") or "")
    if generate:
        probe = f"{generate.removesuffix('-')}a" if generate.endswith("-") else generate
        errors += [invalid("metadata.generateName", generate, problem) for problem in form(probe)]
    if not name:
        if not generate:
            errors.append(required("metadata.name", "name or generateName is required"))
        return errors
    return errors + [invalid("metadata.name", name, problem) for problem in form(name)]
