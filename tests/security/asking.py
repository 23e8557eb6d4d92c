"""Review a policy and an object given as text in one line, with a Host that records its calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyverno.compiler import Compilation, compile_documents
from pyverno.engine.engine import Engine, Review
from pyverno.engine.host import Host, HttpCall, NoHost
from pyverno.engine.phases import ADMISSION
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.kube.apipath import ApiPath
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import expand_lists, load_documents
from pyverno.lang.runtime import Budget
from pyverno.offline.host import OfflineHost

CONFIG_MAP: JSONObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "team"},
    "data": {"a": "1"},
}
POD: JSONObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "team"},
    "spec": {"containers": [{"name": "app", "image": "nginx:1"}]},
}


def compiled(text: str) -> Compilation:
    """Compile policies; errors are in the returned compilation."""
    return compile_documents(expand_lists(load_documents(text.encode(), file="policy.yaml")))


def ask(
    text: str, resource: JSON = None, *, host: Host | None = None, budget: Budget | None = None, **how: Any
) -> Review:
    """Review an object by policies that must be valid."""
    compilation = compiled(text)
    assert () == compilation.errors, [str(error) for error in compilation.errors]
    engine = Engine(compilation.policy_set(), OfflineHost() if host is None else host)
    request = Request.from_manifest(CONFIG_MAP if resource is None else resource, **how)
    return engine.review(request, ADMISSION, budget=budget)


def only(review: Review) -> tuple[Status, str]:
    """Return status and message of the one result of a review."""
    (result,) = review.results
    return result.status, result.message


def policy(rule: str, *, kind: str = "ClusterPolicy", on: str = "ConfigMap", spec: str = "") -> str:
    """Wrap the body of one rule (YAML at no indentation)."""
    lines = "".join(f"    {line}\n" for line in rule.strip("\n").splitlines())
    namespace = "  namespace: team\n" if kind == "Policy" else ""
    settings = "".join(f"  {line}\n" for line in spec.splitlines())
    return (
        f"apiVersion: kyverno.io/v1\nkind: {kind}\nmetadata:\n  name: guard\n{namespace}spec:\n{settings}  rules:\n"
        f"  - name: check\n    match:\n      any:\n      - resources:\n          kinds: [{on}]\n{lines}"
    )


def found(entry: str, *, kind: str = "ClusterPolicy", on: str = "ConfigMap") -> str:
    """Return a policy that denies whatever its context entry `found` holds."""
    lines = "".join(f"  {line}\n" for line in entry.strip("\n").splitlines())
    return policy(
        f"context:\n- name: found\n{lines}validate:\n  failureAction: Enforce\n  message: '{{{{ found }}}}'\n"
        "  deny:\n    conditions:\n      all:\n      - key: '{{ found }}'\n"
        "        operator: NotEquals\n        value: ''\n",
        kind=kind,
        on=on,
    )


@dataclass(slots=True)
class Spy(NoHost):
    """A Host that answers every call with the same value and records the calls."""

    answer: JSON = None
    asked: list[str] = field(default_factory=list)

    def _take(self, what: str) -> Any:
        self.asked.append(what)
        return self.answer

    def api_call(self, path: ApiPath, *, method: str, body: JSON) -> JSON:
        return self._take(f"{method} {path}")

    def http_call(self, call: HttpCall) -> JSON:
        return self._take(f"{call.method} {call.url}")

    def config_map(self, namespace: str, name: str) -> JSONObject:
        return self._take(f"configmap {namespace}/{name}")

    def image_data(self, image: str, *, credentials: JSONObject | None) -> JSONObject:
        return self._take(f"image {image}")

    def global_entry(self, name: str) -> JSON:
        return self._take(f"global {name}")

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject | None:
        return self._take(f"get {kind} {namespace}/{name}")

    def list_objects(
        self, api_version: str, kind: str, namespace: str, selector: JSONObject | None
    ) -> tuple[JSONObject, ...]:
        self._take(f"list {kind} {namespace}")
        return ()

    def recorded_variables(self, policy: str, rule: str, resource: str) -> Mapping[str, JSON]:
        return {}
