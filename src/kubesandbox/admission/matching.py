"""Match requests by rules, namespaceSelectors and objectSelectors, alike for webhooks and admission policies."""

from __future__ import annotations

from collections.abc import Sequence

from kubesandbox.admission.policies.requests import labels_of, namespace_object
from kubesandbox.attributes import Attributes
from kubesandbox.types.resources import ResourceTable, ResourceType
from kubesandbox.view import ClusterView
from pyverno.engine.cel.constraints import ResourceRule
from pyverno.engine.request import Operation
from pyverno.kube.json import JSON
from pyverno.kube.selector import LabelTest
from pyverno.kube.status import not_found

__all__ = ["is_namespace_selected", "is_object_selected", "matched_type"]


def matched_type(
    rules: Sequence[ResourceRule], attributes: Attributes, table: ResourceTable, *, is_equivalent: bool
) -> ResourceType | None:
    """Return the type through which rules match a request: its own, else one that holds the same objects.

    None when no rule matches; `is_equivalent` is true for `matchPolicy: Equivalent`.
    """
    if _fits(rules, attributes.type, attributes):
        return attributes.type
    if not is_equivalent:
        return None
    others = [each for each in table.versions_of(attributes.type.key) if each != attributes.type]
    # Kubernetes: earlier rules count first, then the versions in their order
    return next((other for rule in rules for other in others if _fits((rule,), other, attributes)), None)


def _fits(rules: Sequence[ResourceRule], type: ResourceType, attributes: Attributes) -> bool:
    operation, namespace = attributes.operation.value, attributes.namespace
    return any(
        rule.fits(type.gvr, attributes.subresource, operation, namespace) and rule.names_fit(attributes.name)
        for rule in rules
    )


def is_namespace_selected(selector: LabelTest | None, attributes: Attributes, cluster: ClusterView) -> bool:
    """Return whether a namespaceSelector selects the namespace of a request; raises StatusError 404 for a missing one.

    A Namespace in a request is selected by its new labels; other objects without a namespace are always selected.
    """
    is_namespace = attributes.type.key == "namespaces"
    if selector is None or (not attributes.namespace and not is_namespace):
        return True
    body: JSON = namespace_object(attributes, cluster)
    if is_namespace and not attributes.subresource and attributes.operation is not Operation.DELETE:
        body = attributes.object
    if body is None:
        raise not_found("", "namespaces", attributes.namespace)
    return selector(labels_of(body))


def is_object_selected(selector: LabelTest | None, attributes: Attributes) -> bool:
    """Return whether an objectSelector selects the new or the old object of a request."""
    if selector is None:
        return True
    return any(selector(labels_of(body)) for body in (attributes.object, attributes.old) if body is not None)
