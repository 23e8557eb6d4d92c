"""Webhooks that do not depend on policies: names, paths, rules and failure policies."""

from __future__ import annotations

import pytest

from pyverno.controllers.webhooks.fixed import cleanup_configurations, document_configurations
from pyverno.controllers.webhooks.sources import Endpoint
from pyverno.kube.json import JSONObject
from pyverno.webhook.configuration import Configuration

ENDPOINT = Endpoint(ca_bundle=b"CA")
GENERAL = Configuration.read({"webhookLabels": '{"a": "b"}', "webhookAnnotations": '{"c": "d"}'})


def configurations() -> dict[str, JSONObject]:
    """Return all configurations by name."""
    found = (*document_configurations(ENDPOINT, GENERAL, 7), *cleanup_configurations(ENDPOINT, GENERAL))
    return {each["metadata"]["name"]: each for each in found}


ROWS = [
    ("kyverno-policy-validating-webhook-cfg", "validate-policy.kyverno.svc", "/policyvalidate", "Fail", 7),
    ("kyverno-policy-mutating-webhook-cfg", "mutate-policy.kyverno.svc", "/policymutate", "Fail", 7),
    ("kyverno-exception-validating-webhook-cfg", "kyverno-svc.kyverno.svc", "/exceptionvalidate", "Fail", None),
    ("kyverno-cel-exception-validating-webhook-cfg", "kyverno-svc.kyverno.svc", "/celexception/validate", "Fail", None),
    (
        "kyverno-global-context-validating-webhook-cfg",
        "kyverno-svc.kyverno.svc",
        "/globalcontextvalidate",
        "Fail",
        None,
    ),
    ("kyverno-verify-mutating-webhook-cfg", "monitor-webhooks.kyverno.svc", "/verifymutate", "Ignore", 7),
    ("kyverno-cleanup-validating-webhook-cfg", "kyverno-svc.kyverno.svc", "/cleanuppolicyvalidate", "Fail", None),
    ("kyverno-ttl-validating-webhook-cfg", "kyverno-svc.kyverno.svc", "/verifyttl", "Ignore", None),
]


@pytest.mark.parametrize(("name", "hook_name", "path", "failure", "timeout"), ROWS)
def test_every_kind_of_document_has_its_webhook(
    name: str, hook_name: str, path: str, failure: str, timeout: int | None
) -> None:
    """An unchecked policy is refused, while an object with an unchecked label is stored."""
    found = configurations()
    assert {row[0] for row in ROWS} == set(found)
    [hook] = found[name]["webhooks"]
    assert (hook_name, path, failure, timeout) == (
        hook["name"],
        hook["clientConfig"]["service"]["path"],
        hook["failurePolicy"],
        hook.get("timeoutSeconds"),
    )
    assert ({"a": "b", "webhook.kyverno.io/managed-by": "kyverno"}, {"c": "d"}) == (
        found[name]["metadata"]["labels"],
        found[name]["metadata"]["annotations"],
    )


def test_the_heartbeat_is_registered_for_leases_of_kyverno_only() -> None:
    """The webhook may be reinvoked after another webhook."""
    [hook] = configurations()["kyverno-verify-mutating-webhook-cfg"]["webhooks"]
    assert {"matchLabels": {"app.kubernetes.io/name": "kyverno"}} == hook["objectSelector"]
    assert (["UPDATE"], ["leases"]) == (hook["rules"][0]["operations"], hook["rules"][0]["resources"])
    assert ("NoneOnDryRun", "IfNeeded") == (hook["sideEffects"], hook["reinvocationPolicy"])


def test_times_to_live_are_looked_at_on_every_object_with_the_label() -> None:
    """Every kind is covered; subresources are not."""
    [hook] = configurations()["kyverno-ttl-validating-webhook-cfg"]["webhooks"]
    assert {"matchExpressions": [{"key": "cleanup.kyverno.io/ttl", "operator": "Exists"}]} == hook["objectSelector"]
    assert [["*"], ["*"], ["*", "*/status"]] == [
        hook["rules"][0][key] for key in ("apiGroups", "apiVersions", "resources")
    ]


def test_policies_that_delete_are_checked_as_well() -> None:
    """CEL ones share the webhook of all policies; cleanup policies have a path that the cleanup controller may set."""
    found = configurations()
    [hook] = found["kyverno-policy-validating-webhook-cfg"]["webhooks"]
    resources = {name for rule in hook["rules"] for name in rule["resources"]}
    assert {"deletingpolicies", "namespaceddeletingpolicies", "clusterpolicies"} < resources
    [cleanup, _] = cleanup_configurations(Endpoint("kyverno-cleanup-controller"), GENERAL, policy_path="/validate")
    [hook] = cleanup["webhooks"]
    assert ("kyverno-cleanup-controller", "/validate") == (
        hook["clientConfig"]["service"]["name"],
        hook["clientConfig"]["service"]["path"],
    )
    assert ["cleanuppolicies", "clustercleanuppolicies"] == hook["rules"][0]["resources"]
