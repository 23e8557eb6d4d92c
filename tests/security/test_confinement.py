"""I1 and I2: a policy of a namespace sees its namespace only, and only canonical API paths are ever sent."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from textwrap import indent
from typing import Any

import pytest

from pyverno.engine.broker import Broker
from pyverno.engine.host import HttpCall
from pyverno.engine.imagesource import ImageAccess, SignatureQuery
from pyverno.engine.result import Status
from pyverno.errors import EvaluationError, ValueSyntaxError
from pyverno.images.verification.stored import SignatureForm, StoredArtifact
from pyverno.kube.apipath import parse_api_path
from pyverno.kube.json import JSONObject
from pyverno.lang.runtime import Budget
from tests.security.asking import CONFIG_MAP, Spy, ask, compiled, found, only, policy

OWN = "/api/v1/namespaces/team/configmaps/settings"

FOREIGN_PATHS = [
    "/api/v1/namespaces/other/secrets/x",
    "/api/v1/secrets",
    "/api/v1/namespaces",
    "/api/v1/namespaces/team",
    "/apis/apps/v1/deployments",
    "/version",
    "/api/v1/namespaces/{{ request.object.data.elsewhere }}/secrets/x",
    "/api/v1/nodes/team/proxy",
    "/api/v1/pods?namespace=/namespaces/team/",
    "/api/v1/secrets?fieldSelector=metadata.namespace=/namespaces/team/",
]

ODD_PATHS = [
    "/api/v1/namespaces/team/../other/secrets/x",
    "/api/v1/namespaces/team/%2e%2e/other/secrets/x",
    "/api/v1/namespaces/team/%2E%2e/other/secrets/x",
    "/api/v1/namespaces/team/%252e%252e/other/secrets/x",
    "/api/v1/namespaces/team/..%2fother/secrets/x",
    "/api/v1/namespaces/team/%c0%ae%c0%ae/other",
    "/api/v1/namespaces/team/./secrets",
    "/api/v1//namespaces/team/secrets",
    "//api/v1/namespaces/team/secrets",
    "/api/v1/namespaces/team\\..\\other/secrets",
    "/api/v1/namespaces/team;x=y/secrets",
    "/api/v1/namespaces/team/secrets#/../other",
    "/api/v1/namespaces/team/secrets\n",
    "/api/v1/namespaces/team/\u2024\u2024/other",
    "api/v1/namespaces/team/secrets",
    "https://attacker.example.com/api/v1/namespaces/team/secrets",
    "/api/v1/namespaces/team/secrets?watch=1",
    "/api/v1/namespaces/team/secrets?as=admin",
]


@pytest.mark.parametrize("path", FOREIGN_PATHS)
def test_a_namespaced_policy_calls_no_foreign_path(path: str) -> None:
    """CVE-2026-22039: other namespaces, cluster scope and variables for a namespace are refused before the Host."""
    spy = Spy({"data": {}})
    resource = {**CONFIG_MAP, "data": {"elsewhere": "other"}}
    text = found(f"apiCall:\n  urlPath: '{path}'", kind="Policy")
    status, _ = only(ask(text, resource, host=spy))
    assert (Status.ERROR, []) == (status, spy.asked)


FOREIGN_ACCESS = ({"secrets": ["other/pull"]}, {"providers": ["amazon"]})
ARTIFACT = StoredArtifact("sha256:0", "application/json", 1, "sha256:1")
READS: dict[str, Callable[[Broker, Any], object]] = {
    "api_call": lambda broker, _: broker.api_call("/api/v1/namespaces/other/configmaps/a"),
    "http_call": lambda broker, _: broker.http_call(HttpCall("GET", "https://x.example.com")),
    "http_exchange": lambda broker, _: broker.http_exchange(HttpCall("GET", "https://x.example.com")),
    "config_map": lambda broker, _: broker.config_map("other", "a"),
    "global_entry": lambda broker, _: broker.global_entry("shared"),
    "get_object": lambda broker, _: broker.get_object("v1", "Secret", "other", "a"),
    "list_objects": lambda broker, _: broker.list_objects("v1", "Secret", "", None),
    "public_key": lambda broker, _: broker.public_key("k8s://other/key"),
    "image_data": lambda broker, access: broker.image_data("nginx", credentials=access),
    "resolve_images": lambda broker, access: broker.resolve_images([("nginx", ImageAccess(access))]),
    "image_signatures": lambda broker, access: broker.image_signatures(
        [SignatureQuery("nginx", "sha256:0", SignatureForm.SIGNATURE_TAG, ImageAccess(access))]
    ),
    "image_artifacts": lambda broker, access: broker.image_artifacts("nginx", "sha256:0", "a/b", ImageAccess(access)),
    "artifact_content": lambda broker, access: broker.artifact_content("nginx", ARTIFACT, ImageAccess(access)),
    "described_image": lambda broker, access: broker.described_image("nginx", ImageAccess(access)),
}
OPEN_READS = {
    "revocation": "the address is in a certificate, and the egress guard judges it",
    "trust_root": "the trust root of the installation is public",
}


@pytest.mark.parametrize("access", FOREIGN_ACCESS, ids=["secret", "cloud"])
@pytest.mark.parametrize("read", READS)
def test_no_read_of_a_namespaced_policy_leaves_its_namespace(read: str, access: JSONObject) -> None:
    """CVE-2026-22039 and its kind: one loader after the other forgot the namespace, so the law is for all of them.

    Register: CVE-2026-41068, CVE-2026-100703.
    """
    spy = Spy({})
    with pytest.raises(EvaluationError, match="a policy of namespace `team` may not"):
        READS[read](Broker(spy, Budget(), "team"), access)
    assert [] == spy.asked


def test_every_read_is_confined_or_open_on_purpose() -> None:
    """A new way to read appears here, with what it must not read."""
    named = {name for name, _ in inspect.getmembers(Broker, inspect.isfunction) if not name.startswith("_")}
    assert {*READS, *OPEN_READS} == named


ENTRIES = {
    "globalReference": "globalReference:\n  name: shared",
    "configMap": "configMap:\n  name: settings\n  namespace: other",
    "urlPath": "apiCall:\n  urlPath: /api/v1/namespaces/other/configmaps/a",
    "service": "apiCall:\n  service:\n    url: https://x.example.com",
    "imageRegistry": "imageRegistry:\n  reference: nginx\n  imageRegistryCredentials:\n    secrets: [other/pull]",
    "cloud identity": "imageRegistry:\n  reference: nginx\n  imageRegistryCredentials:\n    providers: [amazon]",
}


def _entry(text: str) -> str:
    return "context:\n- name: found\n" + indent(text, "  ")


_CONDITION = "conditions: {all: [{key: '{{ found.data }}', operator: NotEquals, value: ''}]}"
_PATCH = "patchStrategicMerge: {data: {b: '{{ found.data }}'}}"
PLACES = {
    "rule": lambda entry: f"{entry}\nvalidate:\n  deny: {{{_CONDITION}}}",
    "preconditions": lambda entry: (
        f"{entry}\npreconditions: {{all: [{{key: '{{{{ found.data }}}}', operator: NotEquals, value: ''}}]}}\n"
        "validate:\n  deny: {}"
    ),
    "validate.foreach": lambda entry: (
        f"validate:\n  foreach:\n  - list: '[`1`]'\n{indent(entry, '    ')}\n    deny: {{{_CONDITION}}}"
    ),
    "mutate": lambda entry: f"{entry}\nmutate:\n  {_PATCH}",
    "mutate.foreach": lambda entry: (
        f"mutate:\n  foreach:\n  - list: '[`1`]'\n{indent(entry, '    ')}\n    {_PATCH}"
    ),
    "mutate.targets": lambda entry: (
        "mutate:\n  targets:\n  - apiVersion: v1\n    kind: ConfigMap\n    namespace: team\n    name: x\n"
        f"{indent(entry, '    ')}\n  {_PATCH}"
    ),
    "generate": lambda entry: (
        f"{entry}\ngenerate:\n  apiVersion: v1\n  kind: ConfigMap\n  name: made\n  namespace: team\n"
        "  data: {data: {b: '{{ found.data }}'}}"
    ),
    "generate.foreach": lambda entry: (
        f"generate:\n  foreach:\n  - list: '[`1`]'\n{indent(entry, '    ')}\n    apiVersion: v1\n"
        "    kind: ConfigMap\n    name: made\n    namespace: team\n    data: {data: {b: '{{ found.data }}'}}"
    ),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", ENTRIES)
def test_no_context_entry_of_a_namespaced_policy_reads_elsewhere(what: str, place: str) -> None:
    """CVE-2026-41068, CVE-2026-100703: each loader at each place in a rule; the cluster-wide twin reads.

    A policy that was stored before its loader was closed is judged, too: its rule errs (the Broker's law above).
    """
    body = PLACES[place](_entry(ENTRIES[what]))
    target = {**CONFIG_MAP, "metadata": {"name": "x", "namespace": "team"}}
    own = "get ConfigMap team/x"
    spy = Spy(target)
    if not compiled(policy(body, kind="Policy")).errors:
        review = ask(policy(body, kind="Policy"), host=spy)
        assert [Status.ERROR] == [result.status for result in review.results]
    assert [] == [each for each in spy.asked if each != own]
    twin = Spy(target)
    ask(policy(body), host=twin)
    assert 1 == len([each for each in twin.asked if each != own])


def test_the_global_context_is_closed_when_a_policy_is_made() -> None:
    """CVE-2026-100703: the author learns at once that a policy of a namespace cannot read it."""
    text = found(ENTRIES["globalReference"], kind="Policy")
    assert ["namespaced-global-context"] == [error.code for error in compiled(text).errors]
    assert () == compiled(found(ENTRIES["globalReference"])).errors


def test_a_namespaced_policy_may_not_write() -> None:
    """CVE-2026-22039: POST is refused even inside the own namespace."""
    spy = Spy({})
    text = found(f"apiCall:\n  urlPath: {OWN}\n  method: POST\n  data: [{{key: a, value: b}}]", kind="Policy")
    status, _ = only(ask(text, host=spy))
    assert (Status.ERROR, []) == (status, spy.asked)


@pytest.mark.parametrize(
    ("entry", "asked"),
    [
        (f"apiCall:\n  urlPath: {OWN}", [f"GET {OWN}"]),
        ("configMap:\n  name: settings\n  namespace: team", ["configmap team/settings"]),
    ],
)
def test_a_namespaced_policy_reads_its_own_namespace(entry: str, asked: list[str]) -> None:
    """The harmless twin: the same loaders answer for the own namespace."""
    spy = Spy({"metadata": {}, "data": {"a": "1"}})
    text = found(entry, kind="Policy").replace("{{ found }}", "{{ found.data.a }}")
    status, message = only(ask(text, host=spy))
    assert (Status.FAIL, "1", asked) == (status, message, spy.asked)


def test_a_namespaced_policy_reads_no_foreign_config_map() -> None:
    """CVE-2026-41068: the same hole in the configMap loader."""
    spy = Spy({"metadata": {}, "data": {"a": "1"}})
    text = found("configMap:\n  name: settings\n  namespace: other", kind="Policy")
    text = text.replace("{{ found }}", "{{ found.data.a }}")
    compilation = compiled(text)
    if not compilation.errors:
        status, _ = only(ask(text, host=spy))
        assert Status.ERROR == status
    assert [] == spy.asked


def test_a_namespaced_policy_calls_no_service() -> None:
    """GHSA-459x: services are not for policies of a namespace."""
    spy = Spy({"a": 1})
    status, _ = only(ask(found("apiCall:\n  service:\n    url: https://x.example.com", kind="Policy"), host=spy))
    assert (Status.ERROR, []) == (status, spy.asked)


@pytest.mark.parametrize(
    "generate",
    [
        "clone:\n    namespace: other\n    name: source",
        "cloneList:\n    namespace: other\n    kinds: [v1/Secret]",
    ],
)
def test_a_namespaced_policy_clones_nothing_from_elsewhere(generate: str) -> None:
    """I1: clone sources go through the same gate."""
    spy = Spy({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "source", "namespace": "other"}})
    target = "apiVersion: v1\n  kind: Secret\n  name: copy\n  " if "cloneList" not in generate else ""
    text = policy(f"generate:\n  {target}namespace: team\n  {generate}", kind="Policy")
    compilation = compiled(text)
    if not compilation.errors:
        review = ask(text, host=spy)
        assert (() == review.effects, Status.ERROR) == (True, only(review)[0])
    assert [] == spy.asked


def test_a_namespaced_policy_patches_no_foreign_target() -> None:
    """I1, B13.8: targets of another namespace are never listed."""
    spy = Spy()
    rule = (
        "mutate:\n  targets:\n  - apiVersion: v1\n    kind: ConfigMap\n    namespace: other\n    name: x\n"
        "  patchStrategicMerge:\n    data:\n      b: '2'"
    )
    text = policy(rule, kind="Policy")
    if not compiled(text).errors:
        assert () == ask(text, host=spy).effects
    assert not [question for question in spy.asked if "other" in question]


@pytest.mark.parametrize(
    "rule",
    [
        "mutate:\n  targets:\n  - apiVersion: rbac.authorization.k8s.io/v1\n    kind: ClusterRole\n    name: NAME\n"
        '  patchesJson6902: \'[{"op": "add", "path": "/rules", "value": []}]\''.replace("NAME", name)
        for name in ("admin", "a*")
    ],
)
def test_a_namespaced_policy_patches_no_cluster_scoped_target(rule: str) -> None:
    """I1: the account that changes targets may change ClusterRoles, which the author of the policy may not."""
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "admin"}}
    text = policy(rule, kind="Policy")
    spy = Spy(role)
    if not compiled(text).errors:
        review = ask(text, host=spy)
        assert (Status.ERROR, ()) == (only(review)[0], review.effects)
    assert [] == spy.asked


def test_a_namespaced_policy_matches_no_other_namespace() -> None:
    """f68ce315: the namespace of the object must be that of the policy, exactly."""
    text = policy("validate:\n  message: matched\n  deny: {}", kind="Policy")
    elsewhere = {**CONFIG_MAP, "metadata": {"name": "settings", "namespace": "team-b"}}
    assert () == ask(text, elsewhere).results
    assert (Status.FAIL, "matched") == only(ask(text))


@pytest.mark.parametrize("path", ODD_PATHS)
def test_odd_paths_are_refused_for_every_policy(path: str) -> None:
    """CVE-2026-100706 and -100707: encoded, doubled, overlong or decorated paths are never interpreted.

    Register: CVE-2026-100706, CVE-2026-100707, CVE-2026-26205.
    """
    with pytest.raises(ValueSyntaxError):
        parse_api_path(path)


def test_an_odd_path_that_variables_made_is_refused() -> None:
    """I2: the path is judged after substitution, and nothing is sent."""
    spy = Spy({})
    resource = {**CONFIG_MAP, "data": {"name": "../../other/secrets/x"}}
    text = found("apiCall:\n  urlPath: '/api/v1/namespaces/team/configmaps/{{ request.object.data.name }}'")
    status, _ = only(ask(text, resource, host=spy))
    assert (Status.ERROR, []) == (status, spy.asked)


def test_the_path_that_is_sent_is_the_one_that_was_checked() -> None:
    """I2, R2: query split off, rebuilt from the parsed parts."""
    assert f"{OWN}?limit=2" == str(parse_api_path(f"{OWN}?limit=2"))


def test_clones_carry_no_owner_across_namespaces() -> None:
    """abc05c69: ownerReferences of a source in another namespace are dropped."""
    source = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "source",
            "namespace": "other",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "1"}],
        },
        "data": {"a": "1"},
    }
    rule = (
        "generate:\n  apiVersion: v1\n  kind: ConfigMap\n  name: copy\n  namespace: team\n"
        "  clone:\n    namespace: other\n    name: source"
    )
    (effect,) = ask(policy(rule), host=Spy(source)).effects
    assert "ownerReferences" not in effect.resource["metadata"]  # type: ignore[union-attr]
    assert {"a": "1"} == effect.resource["data"]  # type: ignore[union-attr]
