"""Type errors of `validate.cel` rules, as warnings when a ClusterPolicy or Policy is written.

The schemas are those of Kubernetes, and of the CustomResourceDefinitions of the kinds that the rule matches.
(Kyverno: pkg/validation/policy/validate.go)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyverno.cluster.client import Client
from pyverno.controllers.state.targets import targets_of
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS, KindTable
from pyverno.kube.status import StatusError
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.validate import Validate
from pyverno.threads import in_thread

__all__ = ["cel_type_warnings"]

_DEFINITIONS: Final = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_CHECKED: Final = ("expression", "messageExpression")


async def cel_type_warnings(client: Client, policy: ClusterPolicy, kinds: KindTable) -> tuple[str, ...]:
    """Return a warning for each expression of a policy with one `validate.cel` rule that has the wrong type.

    Kinds whose definition cannot be read are not checked.
    """
    if len(policy.spec.rules) != 1:
        return ()
    [rule] = policy.spec.rules
    if not isinstance(rule.action, Validate) or rule.action.cel is None:
        return ()
    names = {
        f"{target.resource}.{target.group}"
        for text in rule.match.kinds()
        for target in targets_of(text, kinds)
        if target.group and not BUILTIN_KINDS.by_resource(GVR(target.group, target.version, target.resource))
    }
    definitions = [each for each in [await _definition(client, name) for name in sorted(names)] if each is not None]
    return await in_thread(_warnings, policy, definitions)


async def _definition(client: Client, name: str) -> JSONObject | None:
    try:
        return await client.get(_DEFINITIONS, name)
    except (HostError, StatusError):
        return None  # of an aggregated API, or not for us to read: nothing is known about its fields


def _warnings(policy: ClusterPolicy, definitions: Iterable[JSONObject]) -> tuple[str, ...]:
    from pyverno.compiler.cel.typechecking import check_types, known_schemas
    from pyverno.kube.schemas import schema_set

    found = check_types(policy, known_schemas(schema_set(), definitions)).warnings
    return tuple(
        f"{each.field_ref}:{each.warning.replace(chr(10), ';')}"
        for each in found
        if ".cel.expressions[" in each.field_ref and each.field_ref.endswith(_CHECKED)
    )
