"""A tenant who may write policies, but not read Secrets, and writes policies that tell what is in them.

The controllers run with all permissions. Names of what is read come from variables, so that admission cannot see them;
`keeper` is the harmless twin, with permission to read Secrets.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.controllers.rights.authors import AuthorRights
from pyverno.controllers.rights.reads import AuthorReads
from pyverno.controllers.state.settings import PolicyRights
from pyverno.engine.host import Read
from pyverno.engine.request import User
from pyverno.errors import EvaluationError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.loopthread import LoopThread
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.telemetry.observer import Observers
from pyverno.testing import BACKGROUND, CLEANUP, REPORTS, PolicySandbox
from pyverno.value import dataclass, field, replace
from tests.security.strangers.test_tenant import GROUPS, POLICY_RESOURCES, RBAC, WRITE, Tenancy, binding, cel, role
from tests.support.loops import entered

CANARY, ENCODED = "canary-91fb", "Y2FuYXJ5LTkxZmI="
SETUP = f"""
apiVersion: v1
kind: Namespace
metadata: {{name: team}}
---
apiVersion: v1
kind: Secret
metadata: {{name: vault, namespace: team, labels: {{vault: "yes"}}}}
data: {{key: {ENCODED}}}
"""
OWN = (["", "apps"], ["serviceaccounts", "configmaps", "services"], WRITE)
POLICIES = (GROUPS, list(POLICY_RESOURCES), WRITE)
SECRETS = ([""], ["secrets"], ["get", "list", "create", "update", "delete"])
ROLES = (
    role("blind", OWN, POLICIES, ([""], ["secrets"], ["create", "update", "delete"])),
    role("keeper", OWN, POLICIES, SECRETS),
    binding("blind", "blind", "Role"),
    binding("keeper", "keeper", "Role"),
)
OFFSET = [timedelta()]
"""How far the clock of the cluster was moved."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Tenancy]:
    """Run one cluster with all controllers; names of policies and triggers are their own."""
    sandbox = Sandbox(Settings(kubelet=False, clock=lambda: datetime.now(UTC) + OFFSET[0]))

    @asynccontextmanager
    async def run() -> AsyncIterator[tuple[PolicySandbox, Client]]:
        settings = AdmissionSettings(qps=0, lease_retry=60)
        async with (
            PolicySandbox(sandbox, Observers(), settings, further=(BACKGROUND, CLEANUP, REPORTS)) as found,
            Client(load_kubeconfig(sandbox.kubeconfig, environment={}), qps=0) as client,
        ):
            yield found, client

    with LoopThread("cluster") as thread, entered(thread, run()) as (found, client):
        tenancy = Tenancy(thread, found, client)
        tenancy.apply(SETUP + "".join(f"---\n{yaml.safe_dump(body)}" for body in ROLES))
        yield tenancy


# ------------------------------------------------------------------------------------------------------------ policies

SOURCE = "request.object.metadata.annotations.source"
CALL = {"name": "found", "apiCall": {"urlPath": f"/api/v1/namespaces/team/secrets/{{{{ {SOURCE} }}}}"}}
LISTING = {"name": "found", "apiCall": {"urlPath": f"/api/v1/namespaces/team/{{{{ {SOURCE} }}}}?limit=500"}}
VALUE = "{{ found.data.key }}"
GOT = "resource.Get('v1', 'secrets', object.metadata.annotations.source).data.key"
LISTED = "resource.List('v1', object.metadata.annotations.source).items[0].data.key"
MADE = "'apiVersion': dyn('v1'), 'kind': dyn('ConfigMap')"
TARGET = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "team"}


def policy(name: str, rule: JSONObject, **spec: object) -> JSONObject:
    """Return a Policy of one rule for the ServiceAccount of its own name."""
    match = {"any": [{"resources": {"kinds": ["ServiceAccount"], "names": [name]}}]}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "Policy",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"rules": [{"name": "rule", "match": match, **rule}], **spec},
    }


def expressing(kind: str, name: str, spec: JSONObject) -> JSONObject:
    """Return a policy in CEL for the ServiceAccount of its own name."""
    matched = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["serviceaccounts"], "resourceNames": [name]}
    rules = [{**matched, "operations": ["CREATE", "UPDATE"]}]
    return cel(kind, name, {"matchConstraints": {"resourceRules": rules}, **spec})


def deny(entry: JSONObject, value: str = VALUE) -> JSONObject:
    """Return a rule that tells a value in its message."""
    conditions = {"all": [{"key": value, "operator": "NotEquals", "value": ""}]}
    return {
        "context": [entry],
        "validate": {"failureAction": "Enforce", "message": value, "deny": {"conditions": conditions}},
    }


def labelling(value: str) -> JSONObject:
    """Return the mutation of a policy in CEL."""
    text = f"Object{{metadata: Object.metadata{{annotations: {{'told': {value}}}}}}}"
    return {"mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}]}


def telling(name: str, value: str) -> JSONObject:
    """Return a policy in CEL that tells a value in its message."""
    validations = [{"expression": "false", "messageExpression": f"string({value})"}]
    return expressing("NamespacedValidatingPolicy", name, {"validations": validations})


def patch(value: str) -> JSONObject:
    """Return a patch that tells a value."""
    return {"patchStrategicMerge": {"metadata": {"annotations": {"told": value}}}}


Policy = Callable[[str], JSONObject]
AT_ADMISSION: dict[str, Policy] = {
    "validate, apiCall": lambda name: policy(name, deny(CALL)),
    "validate, list": lambda name: policy(name, deny(LISTING, "{{ found.items[?metadata.name=='vault'] | [0].data }}")),
    "validate.foreach, apiCall": lambda name: policy(
        name,
        {
            "validate": {
                "failureAction": "Enforce",
                "message": "no",
                "foreach": [
                    {
                        "list": "[`1`]",
                        "context": [CALL],
                        "deny": {"conditions": {"all": [{"key": VALUE, "operator": "Equals", "value": ENCODED}]}},
                    }
                ],
            }
        },
    ),
    "mutate, apiCall": lambda name: policy(name, {"context": [CALL], "mutate": patch(VALUE)}),
    "CEL message": lambda name: expressing(
        "NamespacedValidatingPolicy",
        name,
        {"validations": [{"expression": "false", "messageExpression": f"string({GOT})"}]},
    ),
    "CEL list": lambda name: expressing(
        "NamespacedValidatingPolicy",
        name,
        {"validations": [{"expression": "false", "messageExpression": f"string({LISTED})"}]},
    ),
    "CEL variable": lambda name: expressing(
        "NamespacedValidatingPolicy",
        name,
        {
            "variables": [{"name": "a", "expression": GOT}],
            "validations": [{"expression": f"variables.a != '{ENCODED}'", "message": "no"}],
        },
    ),
    "CEL mutation": lambda name: expressing("NamespacedMutatingPolicy", name, labelling(GOT)),
}
"""Policies whose answer to a request tells what they read."""

IN_BACKGROUND: dict[str, Policy] = {
    "generate, apiCall": lambda name: policy(
        name,
        {
            "context": [CALL],
            "generate": {**TARGET, "name": f"made-{name}", "synchronize": False, "data": {"data": {"a": VALUE}}},
        },
    ),
    "mutate existing": lambda name: policy(
        name,
        {
            "context": [CALL],
            "mutate": {"targets": [{**TARGET, "name": f"made-{name}"}], **patch(VALUE)},
        },
    ),
    "CEL generator": lambda name: expressing(
        "NamespacedGeneratingPolicy",
        name,
        {
            "generate": [
                {
                    "expression": f"generator.Apply('team', [{{{MADE}, 'metadata': dyn({{'name': 'made-{name}'}}), "
                    f"'data': dyn({{'a': {GOT}}})}}])"
                }
            ]
        },
    ),
}
"""Policies that tell it in an object `made-NAME`."""

REFUSED = "cannot do what the policy does in namespace `team`: "


SILENT = ("CEL message", "CEL list")
"""Policies whose error is in the message only, which is then the message that Kyverno gives."""


def trigger(name: str) -> JSONObject:
    """Return a ServiceAccount that names what policies read."""
    annotations = {"source": "secrets" if "list" in name else "vault"}
    metadata = {"name": name, "namespace": "team", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def name_of(user: str, what: str) -> str:
    """Return the name of a policy."""
    return f"{user}-{what.lower().replace(', ', '-').replace('.', '-').replace(' ', '-')}"


def put_policy(cluster: Tenancy, user: str, body: JSONObject) -> None:
    """Write a policy as a user, whom admission lets, because it cannot see what is read."""
    assert "" == cluster.put(user, body)


@pytest.mark.parametrize("what", AT_ADMISSION)
def test_no_answer_tells_what_the_author_may_not_read(cluster: Tenancy, what: str) -> None:
    """The request gets the reason, and its object is not changed; the twin reads."""
    for user, reads in (("blind", False), ("keeper", True)):
        name = name_of(user, what)
        body = AT_ADMISSION[what](name)
        put_policy(cluster, user, body)
        answer = cluster.put("keeper", trigger(name))
        stored = cluster.get("v1", "ServiceAccount", f"team/{name}")
        told = answer + json.dumps(stored)
        cluster.delete(body["apiVersion"], body["kind"], f"team/{name}")
        cluster.delete("v1", "ServiceAccount", f"team/{name}") if stored else None
        if reads:
            assert (ENCODED in told or CANARY in told or "no" in answer, REFUSED in told) == (True, False), told
        else:
            assert (ENCODED in told, CANARY in told) == (False, False)
            if what not in SILENT:
                assert f"user `blind` {REFUSED}{'list' if 'list' in what else 'get'} " in told, told


@pytest.mark.parametrize("what", IN_BACKGROUND)
def test_no_object_tells_what_the_author_may_not_read(cluster: Tenancy, what: str) -> None:
    """Nothing is made, and an event names the permission; the twin's object is made."""
    kind = "ConfigMap"
    for user, reads in (("blind", False), ("keeper", True)):
        name = name_of(user, what)
        if "existing" in what:
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"made-{name}", "namespace": "team"}}
            assert "" == cluster.put("keeper", made)
        body = IN_BACKGROUND[what](name)
        put_policy(cluster, user, body)
        assert "" == cluster.put("keeper", trigger(name))
        place = f"team/made-{name}"
        if reads:
            cluster.until("v1", kind, place, lambda found: ENCODED in json.dumps(found))
            cluster.delete("v1", kind, place)
        else:
            wanted = f"user `blind` {REFUSED}get "

            def noted(policy_name: str = name, text: str = wanted) -> list[JSONObject]:
                return [
                    each
                    for each in cluster.events("team")
                    if text in str(each.get("note")) and policy_name in json.dumps(each)
                ]

            assert cluster.wait_for(noted, f"an event of {name}")
            assert ENCODED not in json.dumps(cluster.get("v1", kind, place))
        cluster.delete(body["apiVersion"], body["kind"], f"team/{name}")
        cluster.delete("v1", "ServiceAccount", f"team/{name}")


def test_no_report_tells_what_the_author_may_not_read(cluster: Tenancy) -> None:
    """A scan checks authors as a request does."""
    for user, expected in (("blind", f"{REFUSED}get secrets"), ("keeper", ENCODED)):
        name = f"{user}-report"
        audit = deny(CALL)
        audit["validate"]["failureAction"] = "Audit"
        assert "" == cluster.put("keeper", trigger(name))
        put_policy(cluster, user, policy(name, audit))

        def reported(policy_name: str = name, text: str = expected) -> list[JSONObject]:
            found = cluster.run(cluster.client.list(REPORTS_OF, "team"))["items"]
            results = [result for each in found for result in each.get("results") or ()]
            return [each for each in results if policy_name in each["policy"] and text in str(each.get("message"))]

        assert cluster.wait_for(reported, f"a result of {name}")
        if user == "keeper":
            cluster.delete("kyverno.io/v1", "Policy", f"team/{name}")
            cluster.delete("v1", "ServiceAccount", f"team/{name}")


REPORTS_OF = GVR("wgpolicyk8s.io", "v1alpha2", "policyreports")


def cleaning(name: str) -> JSONObject:
    """Return a CleanupPolicy that deletes a ConfigMap if a Secret has a certain content."""
    match = {"any": [{"resources": {"kinds": ["ConfigMap"], "names": [name]}}]}
    source = {"name": "source", "variable": {"value": "vault"}}
    call = {"name": "found", "apiCall": {"urlPath": "/api/v1/namespaces/team/secrets/{{ source }}"}}
    conditions = {"all": [{"key": VALUE, "operator": "Equals", "value": ENCODED}]}
    spec = {"schedule": "* * * * *", "match": match, "context": [source, call], "conditions": conditions}
    metadata = {"name": name, "namespace": "team"}
    return {"apiVersion": "kyverno.io/v2", "kind": "CleanupPolicy", "metadata": metadata, "spec": spec}


def deleting(name: str) -> JSONObject:
    """Return a NamespacedDeletingPolicy that does the same."""
    matched = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "resourceNames": [name]}
    text = f"resource.Get('v1', 'secrets', object.data.source).data.key == '{ENCODED}'"
    conditions = [{"name": "a", "expression": text}]
    spec = {"schedule": "* * * * *", "matchConstraints": {"resourceRules": [matched]}, "conditions": conditions}
    return cel("NamespacedDeletingPolicy", name, spec)


def test_no_deletion_tells_what_the_author_may_not_read(cluster: Tenancy) -> None:
    """Conditions of cleanup policies read for the author, too: only the objects of the twin go."""
    names = {f"{user}-{kind}": (user, make) for user in ("blind", "keeper")
             for kind, make in (("cleaning", cleaning), ("deleting", deleting))}  # fmt: skip
    for name, (user, make) in names.items():
        metadata = {"name": name, "namespace": "team"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"source": "vault"}}
        assert "" == cluster.put("keeper", body)
        put_policy(cluster, user, make(name))
    OFFSET[0] += timedelta(seconds=61)
    kept = {name for name, (user, _) in names.items() if user == "blind"}

    def left() -> set[str]:
        return {each["metadata"]["name"] for each in cluster.list("v1", "ConfigMap", "team")} & {*names}

    cluster.wait_for(lambda: left() <= kept, "the objects of the twin are gone")
    assert kept == left()


def test_a_cleanup_judges_what_its_author_may_read(cluster: Tenancy) -> None:
    """Whoever may delete Secrets, but not read them, gets no policy that selects them by their content.

    Admission refuses it; an author who lost the permission since is stopped when the policy runs.
    """
    match = {"any": [{"resources": {"kinds": ["Secret"], "names": ["doomed-*"]}}]}
    spec = {"schedule": "* * * * *", "match": match}
    for user in ("former", "keeper"):
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"doomed-{user}", "namespace": "team"}}
        assert "" == cluster.put("keeper", secret)
    metadata = {"name": "selecting", "namespace": "team"}
    body = {"apiVersion": "kyverno.io/v2", "kind": "CleanupPolicy", "metadata": metadata, "spec": spec}
    assert "get secrets" in cluster.put("blind", body)
    cluster.apply(yaml.safe_dump(binding("former", "keeper", "Role")))
    match["any"][0]["resources"]["names"] = ["doomed-former"]
    assert "" == cluster.put("former", body)
    cluster.delete(f"{RBAC}", "RoleBinding", "team/former-keeper")
    cluster.apply(yaml.safe_dump(binding("former", "blind", "Role")))
    time.sleep(11)  # permissions that were checked are remembered for ten seconds
    match["any"][0]["resources"]["names"] = ["doomed-keeper"]
    assert "" == cluster.put("keeper", {**body, "metadata": {**metadata, "name": "twin"}})
    OFFSET[0] += timedelta(seconds=61)
    cluster.wait_for(lambda: cluster.get("v1", "Secret", "team/doomed-keeper") is None, "the Secret of the twin")
    assert cluster.get("v1", "Secret", "team/doomed-former") is not None


# ----------------------------------------------------------------------------------------------------------- admission

NAMED = {"name": "found", "apiCall": {"urlPath": "/api/v1/namespaces/{{ request.namespace }}/secrets/vault"}}
MAPPED = {"name": "found", "configMap": {"name": "settings", "namespace": "team"}}
PULLING = {"name": "found", "imageRegistry": {"reference": "a", "imageRegistryCredentials": {"secrets": ["vault"]}}}
KEYED = {
    "imageReferences": ["*"],
    "mutateDigest": False,
    "attestors": [{"entries": [{"keys": {"publicKeys": "k8s://team/vault"}}]}],
}
PARAMETERS = {
    "validate": {
        "cel": {
            "paramKind": {"apiVersion": "v1", "kind": "Secret"},
            "paramRef": {"name": "vault", "namespace": "team", "parameterNotFoundAction": "Deny"},
            "expressions": [{"expression": "params.data.key == ''"}],
        }
    }
}


def on_pods(rule: JSONObject) -> JSONObject:
    """Return a policy of images."""
    found = policy("images", rule)
    found["spec"]["rules"][0]["match"] = {"any": [{"resources": {"kinds": ["Pod"]}}]}
    return found


def judging(*kinds: str) -> JSONObject:
    """Return a policy that tells what is in the objects that it judges."""
    message = {"message": "{{ request.object.data }}", "deny": {}}
    found = policy("judging", {"validate": message}, background="*" not in kinds)
    found["spec"]["rules"][0]["match"] = {"any": [{"resources": {"kinds": list(kinds)}}]}
    return found


def judging_in_cel(resource: str, group: str = "") -> JSONObject:
    """Return a policy in CEL that does the same."""
    matched = {"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": ["CREATE"]}
    spec = {"validations": [{"expression": "false", "messageExpression": "string(object.data)"}]}
    return cel("NamespacedValidatingPolicy", "judging", {**spec, "matchConstraints": {"resourceRules": [matched]}})


CLONING = {
    **TARGET, "kind": "Secret", "name": "copy", "synchronize": False,
    "clone": {"namespace": "team", "name": f"{{{{ {SOURCE} }}}}"},
}  # fmt: skip
ATTEMPTS: dict[str, tuple[JSONObject, str]] = {
    "clone": (policy("static", {"generate": CLONING}), "get secrets"),
    "context": (policy("static", deny(NAMED)), "get secrets `vault` (spec.rules[0].context[0])"),
    "list": (
        policy("static", deny({"name": "found", "apiCall": {"urlPath": "/api/v1/namespaces/team/secrets?limit=1"}})),
        "list secrets",
    ),
    "parameters": (policy("static", PARAMETERS), "get secrets `vault`"),
    "pull secret": (policy("static", deny(PULLING)), "get secrets `vault`"),
    "key": (on_pods({"verifyImages": [KEYED]}), "get secrets `vault`"),
    "judged": (judging("Secret"), "get secrets"),
    "judged, all": (judging("*"), "get secrets"),
    "judged, CEL": (judging_in_cel("secrets"), "get secrets"),
    "judged, all in CEL": (judging_in_cel("*", "*"), "get secrets"),
    "call in CEL": (
        expressing(
            "NamespacedValidatingPolicy",
            "static",
            {"validations": [{"expression": "resource.Get('v1', \"secrets\", 'vault').data.key == ''"}]},
        ),
        "get secrets `vault`",
    ),
    "list in CEL": (
        expressing(
            "NamespacedValidatingPolicy",
            "static",
            {"validations": [{"expression": "resource.List('v1', 'secrets').items.size() > 0"}]},
        ),
        "list secrets",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ATTEMPTS)
def test_a_policy_is_admitted_only_if_its_author_may_read_what_it_reads(cluster: Tenancy, what: str) -> None:
    """The denial names what the text fixes; the twin is admitted."""
    body, permission = ATTEMPTS[what]
    denial = cluster.put("blind", body)
    assert "user `blind` lacks permissions" in denial
    assert permission in denial
    if what != "key":  # the twin may not read Pods
        assert "" == cluster.put("keeper", {**body, "metadata": {**body["metadata"], "name": "twin"}})
        cluster.delete(body["apiVersion"], body["kind"], "team/twin")


# -------------------------------------------------------------------------------------------------------------- memory


@dataclass(frozen=True, slots=True)
class Asking:
    """A policy that reads."""

    api_version: str = "kyverno.io/v1"
    kind: str = "Policy"
    namespace: str = "team"
    name: str = "asking"
    annotations: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(user: str) -> Asking:
        """Return the policy of an author."""
        return Asking(annotations={"pyverno.io/author": json.dumps(User(user).to_json())})


def test_a_decision_about_a_read_is_short_lived(cluster: Tenancy) -> None:
    """Memory answers for seconds, of permissions and of their lack, and never for another author or name."""
    now = [0.0]
    rights = AuthorReads(AuthorRights(cluster.client, lambda: KNOWN_KINDS, PolicyRights.AUTHOR), lambda: now[0])
    vault = Read("get", "", "secrets", name="vault")
    blind, keeper = Asking.of("blind"), Asking.of("keeper")
    assert not rights.is_granted(keeper, vault)
    cluster.run(rights.require(keeper, vault))
    assert rights.is_granted(keeper, vault)
    for other, read in ((blind, vault), (keeper, replace(vault, name="x")), (replace(keeper, name="x"), vault)):
        assert not rights.is_granted(other, read)
    with pytest.raises(EvaluationError, match="get secrets `vault`"):
        cluster.run(rights.require(blind, vault))
    with pytest.raises(EvaluationError, match="get secrets `vault`"):
        rights.is_granted(blind, vault)
    now[0] = 30.0
    assert (False, False) == (rights.is_granted(keeper, vault), rights.is_granted(blind, vault))


def test_decisions_about_reads_are_bounded(cluster: Tenancy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that requests choose fill no memory."""
    monkeypatch.setattr("pyverno.controllers.rights.reads._MAX_MEMO", 3)
    rights = AuthorReads(AuthorRights(cluster.client, lambda: KNOWN_KINDS, PolicyRights.AUTHOR))
    keeper, reads = Asking.of("keeper"), [Read("get", "", "secrets", name=f"n{each}") for each in range(5)]
    for read in reads:
        cluster.run(rights.require(keeper, read))
    assert 2 == sum(rights.is_granted(keeper, read) for read in reads)


def test_a_policy_without_an_author_reads_nothing(cluster: Tenancy) -> None:
    """It was stored before there were authors; with the flag for Kyverno's behaviour nothing is asked."""
    vault = Read("get", "", "secrets", name="vault")
    rights = AuthorReads(AuthorRights(cluster.client, lambda: KNOWN_KINDS, PolicyRights.AUTHOR))
    with pytest.raises(EvaluationError, match="has no author on record"):
        cluster.run(rights.require(Asking(), vault))
    free = AuthorReads(AuthorRights(cluster.client, lambda: KNOWN_KINDS, PolicyRights.CONTROLLER))
    assert free.is_granted(Asking(), vault)


# --------------------------------------------------------------------------------------------------- what is left after

SEEN = (
    GVR("", "v1", "configmaps"),
    GVR("", "v1", "serviceaccounts"),
    GVR("events.k8s.io", "v1", "events"),
    GVR("kyverno.io", "v2", "updaterequests"),
    GVR("reports.kyverno.io", "v1", "ephemeralreports"),
)
"""Where a tenant might find what policies read."""


def test_the_canary_is_nowhere(cluster: Tenancy) -> None:
    """After all attempts above, the twin's events aside, no kind of object has the content of the Secret."""
    for gvr in SEEN:
        for namespace in ("team", "kyverno"):
            for each in cluster.run(cluster.client.list(gvr, namespace))["items"]:
                text = json.dumps(each)
                assert "keeper" in text or (ENCODED not in text and CANARY not in text), text
