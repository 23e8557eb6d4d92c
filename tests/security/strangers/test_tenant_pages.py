"""A tenant who is admin of one namespace, and a user without any right, at the pages of a server that may read all.

The cluster is a sandbox with its RBAC, and the server has the rights of its administrator. The tenant forges reports in
the own namespace, which name objects of others. Canaries are in objects that neither of the two may read.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import pytest
import yaml
import yarl
from aiohttp import web

from kubesandbox import Sandbox, Settings
from pyverno.cli.ui import run
from pyverno.cli.ui.access import LoginOptions
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.install.definitions import definitions
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.value import dataclass
from tests.security.canaries import CANARY

SECRET: Final = f"{CANARY}secret"
"""Is in Secrets: for nobody."""
FOREIGN: Final = f"{CANARY}foreign"
"""Is in objects of another namespace and of the cluster: for the auditor."""
OWN: Final = f"{CANARY}own"
"""Is in objects of the tenant's namespace."""

_RBAC: Final = "rbac.authorization.k8s.io"
_CRDS: Final = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_REPORTS: Final = GVR("wgpolicyk8s.io", "v1alpha2", "policyreports")

OBJECTS: Final = f"""
apiVersion: v1
kind: Namespace
metadata: {{name: foreign, labels: {{team: {FOREIGN}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: foreign}}
data: {{value: {FOREIGN}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: token, namespace: foreign, annotations: {{note: {SECRET}}}}}
data: {{value: {base64.b64encode(SECRET.encode()).decode()}}}
---
apiVersion: v1
kind: Secret
metadata: {{name: token, namespace: own, annotations: {{note: {SECRET}}}}}
data: {{value: {base64.b64encode(SECRET.encode()).decode()}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: mine, namespace: own, annotations: {{note: {OWN}}}}}
data: {{value: mine}}
---
apiVersion: {_RBAC}/v1
kind: ClusterRole
metadata: {{name: hidden, annotations: {{note: {FOREIGN}}}}}
rules: []
---
apiVersion: {_RBAC}/v1
kind: ClusterRole
metadata: {{name: reports}}
rules:
- {{apiGroups: [wgpolicyk8s.io, openreports.io], resources: [policyreports, reports], verbs: [get, list]}}
---
apiVersion: {_RBAC}/v1
kind: ClusterRole
metadata: {{name: policies}}
rules:
- {{apiGroups: [kyverno.io, policies.kyverno.io], resources: [clusterpolicies, validatingpolicies], verbs: [get]}}
---
apiVersion: {_RBAC}/v1
kind: ClusterRole
metadata: {{name: configmaps}}
rules: [{{apiGroups: [''], resources: [configmaps], verbs: [get, list]}}]
---
apiVersion: {_RBAC}/v1
kind: RoleBinding
metadata: {{name: reader, namespace: own}}
subjects: [{{kind: User, name: reader, apiGroup: {_RBAC}}}]
roleRef: {{kind: ClusterRole, name: configmaps, apiGroup: {_RBAC}}}
---
apiVersion: {_RBAC}/v1
kind: ClusterRole
metadata: {{name: everything}}
rules: [{{apiGroups: ['*'], resources: ['*'], verbs: ['*']}}]
---
apiVersion: {_RBAC}/v1
kind: RoleBinding
metadata: {{name: admin, namespace: own}}
subjects: [{{kind: User, name: tenant, apiGroup: {_RBAC}}}]
roleRef: {{kind: ClusterRole, name: admin, apiGroup: {_RBAC}}}
---
apiVersion: {_RBAC}/v1
kind: RoleBinding
metadata: {{name: reports, namespace: own}}
subjects: [{{kind: User, name: tenant, apiGroup: {_RBAC}}}, {{kind: User, name: reader, apiGroup: {_RBAC}}}]
roleRef: {{kind: ClusterRole, name: reports, apiGroup: {_RBAC}}}
---
apiVersion: {_RBAC}/v1
kind: ClusterRoleBinding
metadata: {{name: policies}}
subjects: [{{kind: User, name: tenant, apiGroup: {_RBAC}}}, {{kind: User, name: reader, apiGroup: {_RBAC}}}]
roleRef: {{kind: ClusterRole, name: policies, apiGroup: {_RBAC}}}
---
apiVersion: {_RBAC}/v1
kind: ClusterRoleBinding
metadata: {{name: auditors}}
subjects: [{{kind: Group, name: auditors, apiGroup: {_RBAC}}}]
roleRef: {{kind: ClusterRole, name: everything, apiGroup: {_RBAC}}}
"""

CONTEXTS: Final[Mapping[str, str]] = {
    "nothing": "variable: {value: {data: {value: x}}}",
    "configmap": "configMap: {name: settings, namespace: foreign}",
    "object": "apiCall: {urlPath: /api/v1/namespaces/foreign/configmaps/settings}",
    "list": "apiCall: {urlPath: /api/v1/namespaces/foreign/configmaps, jmesPath: 'items[0]'}",
    "all": "apiCall: {urlPath: '/api/v1/configmaps?fieldSelector=metadata.name=settings', jmesPath: 'items[0]'}",
    "namespace": "apiCall: {urlPath: /api/v1/namespaces/foreign, jmesPath: '{data: {value: metadata.labels.team}}'}",
    "secret": "apiCall: {urlPath: /api/v1/namespaces/foreign/secrets/token}",
    "own-secret": "apiCall: {urlPath: /api/v1/namespaces/own/secrets/token}",
    "secrets": "apiCall: {urlPath: /api/v1/secrets, jmesPath: 'items[0]'}",
    "entry": "globalReference: {name: settings, jmesPath: '[0]'}",
    "polled": "globalReference: {name: polled}",
    "secret-entry": "globalReference: {name: tokens, jmesPath: '[0]'}",
}
"""What a rule reads, by the name of its policy."""
SHOWN_TO_AUDITORS: Final = (
    *("configmap", "object", "list", "all", "namespace", "entry", "polled"),
    *("cel", "cel-list", "cel-entry"),
)

ENTRIES: Final = """
apiVersion: kyverno.io/v2
kind: GlobalContextEntry
metadata: {name: settings}
spec: {kubernetesResource: {group: '', version: v1, resource: configmaps, namespace: foreign}}
---
apiVersion: kyverno.io/v2
kind: GlobalContextEntry
metadata: {name: polled}
spec: {apiCall: {urlPath: /api/v1/namespaces/foreign/configmaps/settings, refreshInterval: 10m}}
---
apiVersion: kyverno.io/v2
kind: GlobalContextEntry
metadata: {name: tokens}
spec: {kubernetesResource: {group: '', version: v1, resource: secrets, namespace: foreign}}
"""

CEL: Final = {
    "cel": "resource.Get('v1', 'configmaps', 'foreign', 'settings')",
    "cel-list": "resource.List('v1', 'configmaps', 'foreign').items[0]",
    "cel-secret": "resource.Get('v1', 'secrets', 'foreign', 'token')",
    "cel-secrets": "resource.List('v1', 'secrets', 'foreign').items[0]",
    "cel-entry": "globalContext.Get('settings', '')[0]",
    "cel-secret-entry": "globalContext.Get('tokens', '')[0]",
}
"""What an expression reads, by the name of its policy."""


def cel_policy(name: str, expression: str) -> JSONObject:
    """Return a policy whose message shows what an expression reads."""
    text = f"""
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}}]
  variables: [{{name: found, expression: "dyn({expression})"}}]
  validations:
  - {{expression: "variables.found.data.value == 'x'", messageExpression: "string(variables.found.data.value)"}}
"""
    found: JSONObject = yaml.safe_load(text)
    return found


HIDDEN: Final = f"""
apiVersion: kyverno.io/v1
kind: Policy
metadata: {{name: hidden, namespace: foreign, annotations: {{note: {FOREIGN}}}}}
spec:
  rules:
  - name: r
    match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}
    validate: {{message: {FOREIGN}, pattern: {{metadata: {{labels: {{team: '?*'}}}}}}}}
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {{name: hidden, namespace: foreign, annotations: {{note: {FOREIGN}}}}}
spec:
  exceptions: [{{policyName: nothing, ruleNames: [r]}}]
  match: {{any: [{{resources: {{kinds: [ConfigMap], names: ['{FOREIGN}']}}}}]}}
"""

CLAIMS: Final[tuple[JSONObject, ...]] = (
    {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "foreign", "name": "settings"},
    {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "uid": "0"},
    *({"apiVersion": version, "kind": "Secret", "name": "token"} for version in ("v1", "v9", "", "v1/x", "core/v1")),
    *({"apiVersion": "v1", "kind": kind, "name": "token"} for kind in ("secret", "secrets", "SecretList", "Secret/x")),
    {"apiVersion": "v1", "kind": "Namespace", "name": "foreign"},
    {"apiVersion": "", "kind": "Namespace", "name": "foreign"},
    {"apiVersion": "v1", "kind": "Namespace", "namespace": "", "name": "own"},
    {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "name": "hidden"},
    {"apiVersion": f"{_RBAC}/v1beta1", "kind": "ClusterRole", "name": "hidden"},
    *(
        {"apiVersion": "v1", "kind": "ConfigMap", "name": name}
        for name in (
            *("../../foreign/configmaps/settings", "../../../namespaces/foreign", "foreign/settings", "", ".", ".."),
            *("settings?x=y", "%2e%2e%2fsettings", "mine/../../secrets/token", "\x00", "settings#", "mine/status"),
        )
    ),
    {"apiVersion": "v1", "kind": "ConfigMap/../secrets", "name": "token"},
    {"apiVersion": "v1", "kind": "Pod/exec", "name": "mine"},
    {"apiVersion": "autoscaling/v1", "kind": "Scale", "name": "mine"},
    {"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy", "name": "cel"},
    {},
)
"""Objects that forged reports name."""
MINE: Final = {"apiVersion": "v1", "kind": "ConfigMap", "name": "mine"}


def policy(name: str, context: str) -> JSONObject:
    """Return a policy whose rule shows what its context reads."""
    found: JSONObject = yaml.safe_load(f"""
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: {name}}}
spec:
  rules:
  - name: r
    match: {{any: [{{resources: {{kinds: [ConfigMap, Secret, Namespace, ClusterRole]}}}}]}}
    context:
    - name: found
      {context}
    validate:
      message: "{{{{ found.data.value }}}}"
      deny:
        conditions: {{any: [{{key: "{{{{ found.data.value }}}}", operator: NotEquals, value: other}}]}}
""")
    return found


def gvr_of(body: JSONObject) -> GVR:
    """Return the resource of an object of these tests."""
    group, _, version = body["apiVersion"].rpartition("/")
    known = [each for each in BUILTIN_KINDS.by_kind(body["kind"]) if (each.group, each.version) == (group, version)]
    return known[0].gvr if known else GVR(group, version, f"{body['kind'].lower()}s".replace("ys", "ies"))


def report(namespace: str, name: str, results: Sequence[JSONObject]) -> JSONObject:
    """Return a PolicyReport."""
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "wgpolicyk8s.io/v1alpha2",
        "kind": "PolicyReport",
        "metadata": metadata,
        "results": [*results],
    }


def forged() -> Iterator[JSONObject]:
    """Yield the reports of the tenant, and one of another namespace."""
    named = ("nothing", "foreign/hidden", "hidden", "../hidden", "")
    results = [
        {"policy": key, "rule": "r", "result": "fail", "message": "m", "resources": [claim]}
        for claim in CLAIMS
        for key in named
    ]
    results += [
        {"policy": key, "rule": "r", "result": "fail", "message": "m", "resources": [MINE]} for key in (*CONTEXTS, *CEL)
    ]
    results.append({"policy": "foreign/hidden", "rule": "r", "result": "fail", "message": "m", "resources": [MINE]})
    yield report("own", "forged", results)
    other = {"policy": FOREIGN, "rule": FOREIGN, "result": "fail", "message": FOREIGN, "properties": {FOREIGN: "x"}}
    at = {"apiVersion": "v1", "kind": "ConfigMap", "name": FOREIGN}
    yield report("foreign", "other", [{**other, "resources": [at]}, {**other, "rule": "none"}])


@dataclass(frozen=True, slots=True)
class Pages:
    """The address of the server, a client, its routes, and the cluster."""

    url: str
    session: aiohttp.ClientSession
    app: web.Application
    client: Client

    async def ask(self, user: str, target: str, method: str = "GET", body: object = None) -> tuple[int, str]:
        """Return status and text of a request by a user; auditors are a group."""
        headers = {"X-User": user, "X-Groups": "auditors"} if user == "auditor" else {"X-User": user}
        sent: dict[str, Any] = {"json": body} if method == "POST" else {}
        address = yarl.URL(f"{self.url}{target}", encoded=True)
        async with self.session.request(method, address, headers=headers, **sent) as response:
            if response.content_type == "text/event-stream":
                return response.status, (await response.content.readline()).decode()
            return response.status, (await response.read()).decode("utf-8", "replace")

    def routes(self) -> set[tuple[str, str]]:
        """Return method and path of all routes but the files of the pages."""
        found = {(each.method, each.resource.canonical) for each in self.app.router.routes() if each.resource}
        return {each for each in found if "/static/" not in each[1] and each[0] != "HEAD"}


@asynccontextmanager
async def pages(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pages]:
    """Serve the pages of the cluster behind a proxy that names the user."""
    apps: list[web.Application] = []
    build = run.build_app

    def noted(*args: Any, **kwargs: Any) -> web.Application:
        apps.append(build(*args, **kwargs))
        return apps[0]

    monkeypatch.setattr(run, "build_app", noted)
    login = LoginOptions(proxy_user_header="X-User", proxy_groups_header="X-Groups", proxy_peers=("127.0.0.1",))
    with Sandbox(Settings(controllers=False, namespaces=("own",))) as sandbox:
        async with Client(load_kubeconfig(sandbox.kubeconfig, "", {}), qps=0) as client:
            await _fill(client)
            options = run.UiOptions(kubeconfig=sandbox.kubeconfig, port=0, login=login)
            async with run.serving(options) as url, aiohttp.ClientSession() as session:
                served = Pages(url.rstrip("/"), session, apps[0], client)
                await _until_filled(served)
                yield served


async def _fill(client: Client) -> None:
    for body in definitions():
        await client.create(_CRDS, body)
    texts = (OBJECTS, ENTRIES, HIDDEN)
    objects = [body for text in texts for body in yaml.safe_load_all(text)]
    objects += [policy(name, context) for name, context in CONTEXTS.items()]
    objects += [cel_policy(name, expression) for name, expression in CEL.items()]
    for body in objects:
        await client.create(gvr_of(body), body, body["metadata"].get("namespace", ""))
    for body in forged():
        await client.create(_REPORTS, body, body["metadata"]["namespace"])


async def _until_filled(served: Pages) -> None:
    async with asyncio.timeout(60):
        while FOREIGN not in (await served.ask("auditor", "/api/v1/results?limit=500"))[1]:
            await asyncio.sleep(0.1)


def play(monkeypatch: pytest.MonkeyPatch, scene: Callable[[Pages], Awaitable[None]]) -> None:
    """Run a scene at the pages."""

    async def played() -> None:
        async with pages(monkeypatch) as served:
            await scene(served)

    asyncio.run(played())


_LIST: Final = ("", "?state=all&limit=500", "?fields=policy,namespace,name,rule", "?by=namespace&by=policy")
_EXPORTS: Final = tuple(f"?format={each}" for each in ("csv", "json", "html", "sarif", "junit", "markdown", "yaml"))
_V2: Final = ("", "?namespaces=foreign", "?search=foreign")
_TEXTS: Final = {"policies": yaml.safe_dump(policy("x", CONTEXTS["configmap"])), "resources": yaml.safe_dump(MINE)}
_KEYS: Final = ("foreign/hidden", "hidden", *CONTEXTS, *CEL, "own/none", "..%2fhidden")

ROWS: Final[Mapping[tuple[str, str], tuple[object, ...]]] = {
    ("GET", "/"): ("",),
    ("GET", "/healthz"): ("",),
    ("GET", "/ready"): ("",),
    ("GET", "/api/v1/config"): ("",),
    ("GET", "/api/v1/events"): ("",),
    ("GET", "/api/v1/views"): ("",),
    ("POST", "/api/v1/views"): ({"text": "customBoards: [{name: b, namespaces: {selector: {}}}]"},),
    **{
        ("GET", f"/api/v1/{each}"): _LIST[:2]
        for each in ("results", "resources", "policies", "namespaces", "sources", "history", "trend", "facets/keys")
    },
    ("GET", "/api/v1/facets"): _LIST[:3],
    ("GET", "/api/v1/summary"): ("", "?by=namespace", "?by=policy", "?by=name"),
    ("GET", "/api/v1/export"): _EXPORTS,
    ("GET", "/api/v1/results/{id}"): ("",),
    ("GET", "/api/v1/resources/{id}"): ("",),
    ("GET", "/api/v1/results/{id}/explanation"): ("",),
    ("GET", "/api/v1/results/{id}/exception"): ("",),
    ("GET", "/api/v1/policies/{key}"): _KEYS,
    ("GET", "/api/v1/exceptions"): ("",),
    ("GET", "/api/v1/targets"): ("",),
    ("GET", "/api/v1/examples"): ("",),
    ("GET", "/api/v1/examples/{name}"): ("foreign/hidden", "nothing"),
    ("POST", "/api/v1/review"): (_TEXTS, {**_TEXTS, "explain": True}),
    ("POST", "/api/v1/testcase"): (_TEXTS,),
    ("POST", "/api/v1/complete"): ({"text": "kind: ", "line": 1, "column": 6},),
    ("POST", "/api/v1/hover"): ({"text": "kind: ", "line": 1, "column": 1},),
    ("POST", "/api/v1/import"): ({"text": "x"},),
    ("POST", "/v2/namespaces/resolve-selector"): ({}, {"team": "x"}, {"kubernetes.io/metadata.name": "foreign"}),
    **{("GET", f"/v2/{each}"): _V2 for each in ("sources", "sources/categories", "namespaces", "policies", "targets")},
    **{("GET", f"/v2/{each}"): _V2 for each in ("findings", "severity-findings", "results-without-resources")},
    ("GET", "/v2/properties/{property}"): (FOREIGN, "x"),
    **{
        ("GET", f"/v2/{scope}-scoped/{each}"): _V2
        for scope in ("namespace", "cluster")
        for each in ("results", "resource-results", "kinds")
    },
    **{
        ("GET", f"/v2/{owner}/{each}"): ("kyverno", "")
        for owner in ("sources/{source}", "namespace-scoped/{source}", "cluster-scoped/{source}")
        for each in ("status-counts", "severity-counts")
    },
    ("GET", "/v2/sources/{source}/use-resources"): ("kyverno",),
    **{
        ("GET", f"/v2/resource/{{id}}{each}"): ("",)
        for each in ("", "/results", "/resource-results", "/status-counts", "/severity-counts", "/source-categories")
    },
}
"""What is asked of every route: queries, values of the path, or bodies; `{id}` is every id that there is."""


def targets(route: str, given: object, ids: int) -> Iterator[str]:
    """Yield the targets of a row."""
    if "{id}" in route:
        yield from (route.replace("{id}", str(number)) for number in range(1, ids + 1))
    elif "{" in route:
        yield re.sub(r"\{[^}]*\}", str(given), route)
    else:
        yield f"{route}{given if isinstance(given, str) else ''}"


async def sweep(served: Pages, user: str, ids: int) -> Mapping[str, str]:
    """Return the answers of every route to a user, by method and target."""
    found = {}
    for (method, route), row in ROWS.items():
        for given in row:
            for target in targets(route, given, ids):
                body = given if isinstance(given, dict) else None
                status, text = await served.ask(user, target, method, body)
                assert status < 500, (target, text)
                found[f"{method} {target} {json.dumps(body)[:40]}"] = text.replace(target, "").replace(
                    f"`{FOREIGN}`", ""
                )
    return found


def holds(text: str, canary: str) -> bool:
    """Return whether a text shows a canary, or its Base64 as a Secret has it."""
    return canary in text or base64.b64encode(canary.encode()).decode() in text


def test_every_view_shows_users_what_they_may_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every route and format, and every forged claim; an auditor finds what the others do not, but no Secret."""

    async def scene(served: Pages) -> None:
        assert set(ROWS) == served.routes(), "a route has no row: what does it show to whom?"
        everything = json.loads((await served.ask("auditor", "/api/v1/results?limit=500&state=all"))[1])
        ids = max(each["id"] for each in everything["items"])
        seen = {user: await sweep(served, user, ids) for user in ("nobody", "tenant", "auditor")}
        for user, answers in seen.items():
            assert [] == [target for target, text in answers.items() if holds(text, SECRET)], user
        for user in ("nobody", "tenant"):
            assert [] == [target for target, text in seen[user].items() if holds(text, FOREIGN)], user
        assert [] == [target for target, text in seen["nobody"].items() if holds(text, OWN)]
        assert 20 < sum(holds(text, FOREIGN) for text in seen["auditor"].values())
        assert any("explanation" in target and holds(text, OWN) for target, text in seen["tenant"].items())

    play(monkeypatch, scene)


def test_what_a_rule_reads_is_read_with_the_rights_of_the_viewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict is then an error, with the missing right; an auditor sees the same values but those of Secrets."""

    async def scene(served: Pages) -> None:
        items = json.loads((await served.ask("tenant", "/api/v1/results?limit=500&name=mine&kind=ConfigMap"))[1])[
            "items"
        ]
        ids = {each.get("policy"): each["id"] for each in items}
        shown: dict[str, dict[str, str]] = {}
        for user in ("tenant", "auditor"):
            for name in (*CONTEXTS, *CEL):
                _, text = await served.ask(user, f"/api/v1/results/{ids[name]}/explanation")
                shown.setdefault(user, {})[name] = text
        own = json.loads(shown["tenant"]["nothing"])["rules"][0]
        assert ["fail"] == own["statuses"]
        assert any("exceptions for this policy, which you may not read" in line["text"] for line in own["lines"])
        for name in (*CONTEXTS, *CEL):
            statuses = json.loads(shown["tenant"][name])["rules"][0]["statuses"]
            assert [["error"], ["fail"]][name == "nothing"] == statuses, name
        assert sorted(SHOWN_TO_AUDITORS) == sorted(
            name for name, text in shown["auditor"].items() if holds(text, FOREIGN)
        )

    play(monkeypatch, scene)


def test_a_policy_reads_the_same_whether_it_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise reports that name guesses would find the policies of other namespaces."""
    keys = ("foreign/hidden", "foreign/none")

    async def scene(served: Pages) -> None:
        results = [{"policy": key, "rule": "guess", "result": "fail", "resources": [MINE]} for key in keys]
        await served.client.create(_REPORTS, report("own", "guess", results), "own")
        found: list[JSONObject] = []
        async with asyncio.timeout(30):
            while len(found) < len(keys):
                found = json.loads((await served.ask("auditor", "/api/v1/results?rule=guess"))[1])["items"]
        answers = [
            (await served.ask("tenant", f"/api/v1/results/{each['id']}/explanation"))[1].replace(each["policy"], "KEY")
            for each in found
        ]
        assert ['{"error": "the cluster has no policy `KEY` any more, or you may not `get` it"}'] * 2 == answers

    play(monkeypatch, scene)


def test_labels_of_a_namespace_are_for_those_who_may_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An explanation and a selection by labels tell them; a reader of ConfigMaps has no such right."""

    async def scene(served: Pages) -> None:
        query = "/api/v1/results?limit=500&name=mine&kind=ConfigMap&policy=nothing"
        shown = {}
        for user in ("reader", "tenant"):
            (found,) = json.loads((await served.ask(user, query))[1])["items"]
            status, text = await served.ask(user, f"/api/v1/results/{found['id']}/explanation")
            labels = {"kubernetes.io/metadata.name": "own"}
            _, names = await served.ask(user, "/v2/namespaces/resolve-selector", "POST", labels)
            shown[user] = (status, "`get` namespaces `own`" in text, names)
        assert {"reader": (403, True, "[]"), "tenant": (200, False, '["own"]')} == shown

    play(monkeypatch, scene)
