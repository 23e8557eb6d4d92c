"""The client of PyPI's `kubernetes` package: typed, dynamic, and its watches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client as typed
from kubernetes import config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, DynamicApiError, NotFoundError, UnprocessibleEntityError

from kubesandbox import Sandbox

WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.clients.example.com"},
    "spec": {
        "group": "clients.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wdg"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer", "minimum": 1, "default": 3}},
                            },
                            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture
def api(sandbox: Sandbox) -> Iterator[typed.ApiClient]:
    """Connect with the kubeconfig that the sandbox wrote."""
    with config.new_client_from_config(sandbox.kubeconfig) as made:
        yield made


@pytest.fixture
def found(api: typed.ApiClient, tmp_path: Any) -> dynamic.DynamicClient:
    """Discover the served resources with a fresh cache."""
    return dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovery.json"))


def pod(name: str, **labels: str) -> dict[str, Any]:
    """Return a Pod with one container."""
    container = {"name": "main", "image": "nginx:1.27"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [container]},
    }


def settings(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_typed_objects_go_there_and_back(api: typed.ApiClient, namespace: str) -> None:
    """Create, read, patch, replace, list and delete a Deployment; defaults come back as fields."""
    apps = typed.AppsV1Api(api)
    template = typed.V1PodTemplateSpec(
        metadata=typed.V1ObjectMeta(labels={"app": "web"}),
        spec=typed.V1PodSpec(containers=[typed.V1Container(name="web", image="nginx:1.27")]),
    )
    selector = typed.V1LabelSelector(match_labels={"app": "web"})
    body = typed.V1Deployment(
        metadata=typed.V1ObjectMeta(name="web"), spec=typed.V1DeploymentSpec(selector=selector, template=template)
    )
    made = apps.create_namespaced_deployment(namespace, body)
    assert (1, "RollingUpdate", 1) == (made.spec.replicas, made.spec.strategy.type, made.metadata.generation)
    assert "IfNotPresent" == made.spec.template.spec.containers[0].image_pull_policy
    patched = apps.patch_namespaced_deployment("web", namespace, {"spec": {"replicas": 2}})
    assert (2, 2) == (patched.spec.replicas, patched.metadata.generation)
    assert 2 == apps.read_namespaced_deployment_scale("web", namespace).spec.replicas
    scaled = apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 3}})
    assert 3 == scaled.spec.replicas
    listed = apps.list_namespaced_deployment(namespace, field_selector="metadata.name=web")
    assert [("web", 3)] == [(item.metadata.name, item.spec.replicas) for item in listed.items]
    assert "Success" == apps.delete_namespaced_deployment("web", namespace)["status"]
    with pytest.raises(ApiException) as caught:
        apps.read_namespaced_deployment("web", namespace)
    assert (404, "NotFound") == (caught.value.status, json.loads(caught.value.body)["reason"])


def test_old_versions_are_refused(api: typed.ApiClient, namespace: str) -> None:
    """A replacement that has not seen the newest state is a conflict."""
    core = typed.CoreV1Api(api)
    seen = core.create_namespaced_config_map(namespace, settings("a", x="1"))
    core.patch_namespaced_config_map("a", namespace, {"data": {"x": "2"}})
    seen.data = {"x": "3"}
    with pytest.raises(ApiException) as caught:
        core.replace_namespaced_config_map("a", namespace, seen)
    body = json.loads(caught.value.body)
    assert (409, "Conflict") == (caught.value.status, body["reason"])
    assert "the object has been modified; please apply your changes to the latest version" in body["message"]


def test_long_lists_come_in_pages(api: typed.ApiClient, namespace: str) -> None:
    """The client follows continue tokens until the last page has none."""
    core = typed.CoreV1Api(api)
    for number in range(5):
        core.create_namespaced_config_map(namespace, settings(f"page-{number}"))
    names: list[str] = []
    token: str | None = None
    while token != "":
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    assert ["kube-root-ca.crt", *(f"page-{number}" for number in range(5))] == names


def test_evictions_take_pods_away(api: typed.ApiClient, namespace: str) -> None:
    """A disruption budget can refuse the eviction."""
    core, policy = typed.CoreV1Api(api), typed.PolicyV1Api(api)
    core.create_namespaced_pod(namespace, pod("free"))
    core.create_namespaced_pod(namespace, pod("kept", app="kept"))
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}}
    policy.create_namespaced_pod_disruption_budget(namespace, budget)
    eviction = typed.V1Eviction(metadata=typed.V1ObjectMeta(name="free"))
    # the answer is a Status, which this method would read as an Eviction
    answer = core.create_namespaced_pod_eviction("free", namespace, eviction, _preload_content=False)
    assert "Success" == json.loads(answer.data)["status"]
    with pytest.raises(ApiException) as caught:
        core.create_namespaced_pod_eviction("kept", namespace, typed.V1Eviction(metadata={"name": "kept"}))
    body = json.loads(caught.value.body)
    assert (429, "DisruptionBudget") == (caught.value.status, body["details"]["causes"][0]["reason"])


def test_tokens_authenticate_their_account(sandbox: Sandbox, api: typed.ApiClient, namespace: str) -> None:
    """A token of a service account lets it in as that account."""
    core = typed.CoreV1Api(api)
    core.create_namespaced_service_account(namespace, {"metadata": {"name": "robot"}})
    request = typed.AuthenticationV1TokenRequest(spec=typed.V1TokenRequestSpec(audiences=[], expiration_seconds=3600))
    token = core.create_namespaced_service_account_token("robot", namespace, request).status.token
    own = typed.Configuration(host=sandbox.url)
    own.ssl_ca_cert = api.configuration.ssl_ca_cert
    own.api_key["authorization"] = f"Bearer {token}"
    with typed.ApiClient(own) as robot:
        review = typed.AuthenticationV1Api(robot).create_self_subject_review({})
        assert f"system:serviceaccount:{namespace}:robot" == review.status.user_info.username
        with pytest.raises(ApiException) as caught:
            typed.CoreV1Api(robot).list_namespaced_secret(namespace)
        assert 403 == caught.value.status


def test_a_watch_continues_where_it_ended(api: typed.ApiClient, namespace: str) -> None:
    """The second stream begins after what the first one has seen."""
    core = typed.CoreV1Api(api)
    start = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, settings("one"))
    core.create_namespaced_config_map(namespace, settings("two"))
    first, second = watch.Watch(), watch.Watch()
    seen: list[tuple[str, str]] = []
    for event in first.stream(core.list_namespaced_config_map, namespace, resource_version=start, timeout_seconds=10):
        seen.append((event["type"], event["object"].metadata.name))
        first.stop()
    core.delete_namespaced_config_map("one", namespace)
    going_on = {"resource_version": first.resource_version, "timeout_seconds": 10}
    for event in second.stream(core.list_namespaced_config_map, namespace, **going_on):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            second.stop()
    assert [("ADDED", "one"), ("ADDED", "two"), ("DELETED", "one")] == seen


def test_bookmarks_end_the_first_events(api: typed.ApiClient, namespace: str) -> None:
    """Informers of newer clients get all existing objects as events, then a bookmark."""
    core = typed.CoreV1Api(api)
    core.create_namespaced_config_map(namespace, settings("there"))
    query = {
        "send_initial_events": True,
        "resource_version_match": "NotOlderThan",
        "allow_watch_bookmarks": True,
        "timeout_seconds": 10,
    }
    stream = watch.Watch()
    seen: list[str] = []
    for event in stream.stream(core.list_namespaced_config_map, namespace, **query):
        seen.append(event["type"])
        if event["type"] == "BOOKMARK":
            marks = event["raw_object"]["metadata"]["annotations"]
            stream.stop()
    assert (["ADDED", "ADDED", "BOOKMARK"], {"k8s.io/initial-events-end": "true"}) == (seen, marks)


def test_versions_that_are_none_are_refused(api: typed.ApiClient, namespace: str) -> None:
    """Text is a bad request, a version that is still to come a timeout that may be tried again."""
    core = typed.CoreV1Api(api)
    found = []
    for version in ("nonsense", "999999999"):
        with pytest.raises(ApiException) as caught:
            core.list_namespaced_config_map(namespace, resource_version=version)
        found.append((caught.value.status, json.loads(caught.value.body)["reason"]))
    assert [(400, "BadRequest"), (504, "Timeout")] == found


def test_dynamic_objects_are_discovered(found: dynamic.DynamicClient, namespace: str) -> None:
    """Kinds, short names and verbs come from discovery; server-side apply tracks field ownership."""
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    assert ("configmaps", True, ["cm"]) == (maps.name, maps.namespaced, maps.short_names)
    body = settings("shared", mine="1")
    one = maps.server_side_apply(body=body, name="shared", namespace=namespace, field_manager="one")
    assert [("one", "Apply")] == [(entry.manager, entry.operation) for entry in one.metadata.managedFields]
    with pytest.raises(ConflictError) as caught:
        other = settings("shared", mine="2")
        maps.server_side_apply(body=other, name="shared", namespace=namespace, field_manager="two")
    causes = json.loads(caught.value.body)["details"]["causes"]
    assert [("FieldManagerConflict", ".data.mine")] == [(cause["reason"], cause["field"]) for cause in causes]
    forced = maps.server_side_apply(
        body=other, name="shared", namespace=namespace, field_manager="two", force_conflicts=True
    )
    assert {"mine": "2"} == forced.data.to_dict()
    assert "Success" == maps.delete(name="shared", namespace=namespace).status
    with pytest.raises(NotFoundError):
        maps.get(name="shared", namespace=namespace)


def test_defined_kinds_are_there_at_once(found: dynamic.DynamicClient, namespace: str) -> None:
    """A definition, objects with defaults and a status, and what does not fit."""
    definitions = found.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    definitions.create(body=WIDGETS)
    widgets = found.resources.get(api_version="clients.example.com/v1", kind="Widget")
    head = {"apiVersion": "clients.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    made = widgets.create(body={**head, "spec": {}}, namespace=namespace)
    assert {"size": 3} == made.spec.to_dict()
    done = widgets.status.patch(
        body={"status": {"phase": "Done"}},
        name="w",
        namespace=namespace,
        content_type="application/merge-patch+json",
    )
    assert ("Done", 1) == (done.status.phase, done.metadata.generation)
    with pytest.raises(UnprocessibleEntityError) as refused:
        widgets.patch(
            body={"spec": {"size": 0}}, name="w", namespace=namespace, content_type="application/merge-patch+json"
        )
    assert "spec.size in body should be greater than or equal to 1" in json.loads(refused.value.body)["message"]
    with pytest.raises(DynamicApiError) as unsupported:
        widgets.patch(body={"spec": {"size": 4}}, name="w", namespace=namespace)
    assert 415 == unsupported.value.status
    assert ["w"] == [item.metadata.name for item in widgets.get(namespace=namespace).items]


def test_dynamic_watches_follow_one_object(found: dynamic.DynamicClient, namespace: str) -> None:
    """Each change of a pod by the sandbox's kubelet arrives as an event."""
    pods = found.resources.get(api_version="v1", kind="Pod")
    pods.create(body=pod("seen"), namespace=namespace)
    phases: list[str] = []
    watcher = watch.Watch()
    for event in pods.watch(namespace=namespace, name="seen", timeout=300, watcher=watcher):
        status = event["raw_object"]["status"]
        phases.append(status["phase"])
        if any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ())):
            watcher.stop()
    assert ("Running", {"Pending", "Running"}) == (phases[-1], {"Pending", *phases})
