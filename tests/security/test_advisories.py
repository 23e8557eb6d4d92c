"""Advisories of other projects, tried on this one: each bad input, and a harmless twin that still passes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

from kubesandbox.types.resources import builtin_table
from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine, Review
from pyverno.engine.host import NoHost
from pyverno.engine.phases import ADMISSION
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import Status
from pyverno.errors import DocumentError
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.files import load_files
from pyverno.offline.library import load_policies, review
from pyverno.webhook.server import WebhookServer
from tests.security.asking import CONFIG_MAP, POD, Spy, ask, compiled, only, policy
from tests.security.test_admission import NEEDS_LABEL, Caller, play

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "policies"
ENFORCED = "validate:\n  failureAction: Enforce\n"


def denied_when(key: str, operator: str, value: str) -> str:
    """Return a rule that denies by one condition."""
    condition = f"key: {key}\n        operator: {operator}\n        value: {value}\n"
    return f"{ENFORCED}  message: refused\n  deny:\n    conditions:\n      all:\n      - {condition}"


# ------------------------------------------------------------------------------------------------- files and documents


@pytest.mark.parametrize("start", ["\\\\server\\share\\", "//server/share/", "\\/server/share/", "//?/UNC/server/"])
def test_no_file_of_another_machine_is_read(start: str, tmp_path: Path) -> None:
    """OPA CVE-2024-8260: Windows would send the user's credentials to the machine in the path."""
    loaded = load_files([f"{start}policy.yaml"])
    assert ["is a path on another machine, which is not read"] == [
        str(error).partition("` ")[2] for error in loaded.errors
    ]
    (tmp_path / "policy.yaml").write_text("a: b\n")
    assert [{"a": "b"}] == [each.value for each in load_files([str(tmp_path / "policy.yaml")]).documents]


HOSTILE = ["{{ a }}", "- a", "a: b", "yes", "~", "0x1", "1e3", "'", '"', "#", " a", "a\n", "a\n\n b", "\u2028", "*",
           "&a", "!t", "|", ">-", "%", "@", "`", "?", "-", "---", "...", "\ttab", "null", "012",
           "2001-01-01", "=", "<<"]  # fmt: skip


@pytest.mark.parametrize(
    "path", [None, *sorted(LIBRARY.rglob("*policy.yaml"))], ids=lambda path: path and path.parent.name
)
def test_a_policy_that_we_print_reads_back_the_same(path: Path | None) -> None:
    """OPA CVE-2022-23628: a formatter may not change the meaning, whatever texts and keys a policy has."""
    hostile: JSON = {text: [text, {text: text}] for text in HOSTILE}
    values = [hostile] if path is None else [each.value for each in load_documents(path.read_bytes(), file="p.yaml")]
    for value in values:
        for printed in (
            dump_yaml(value),
            dump_yaml(value, indent=4, indent_lists=True),
            dump_yaml(value, sort_keys=False),
        ):
            assert [value] == [each.value for each in load_documents(printed.encode(), file="again.yaml")]


DEEP = 20_000


@pytest.mark.parametrize("text", ["[" * DEEP, "- " * DEEP, "{a: " * DEEP, "? " * DEEP, "a:\n" + " - \n" * DEEP + "}"])
def test_yaml_that_goes_deep_is_refused(text: str) -> None:
    """CVE-2019-11254: endless nesting is one error with its position; a document of a few levels is read."""
    with pytest.raises(DocumentError):
        load_documents(text.encode(), file="deep.yaml")
    assert 1 == len(load_documents(b"- - - [[[{a: b}]]]\n", file="flat.yaml"))


UNITS = {
    "cel": ["(", "[", "!", "-", "{'a':", "a.b(", "a ? ", "a["],
    "jmespath": ["(", "[", "!", "&", "length(", "a[", "a.["],
}


@pytest.mark.parametrize(("language", "unit"), [(name, unit) for name, units in UNITS.items() for unit in units])
def test_expressions_that_go_deep_are_refused(language: str, unit: str) -> None:
    """OPA CVE-2022-28946, CVE-2022-33082: the parser reports an error of the policy, and the process survives."""
    expression = json.dumps(unit * DEEP)
    if language == "cel":
        rule = f"validate:\n  cel:\n    expressions:\n    - expression: {expression}"
    else:
        rule = denied_when(json.dumps("{{ " + unit * DEEP + " }}"), "Equals", "1")
    codes = {error.code for error in compiled(policy(rule)).errors}
    assert codes - {"internal"} == codes != set()
    twin = {"cel": "validate:\n  cel:\n    expressions:\n    - expression: '((true))'",
            "jmespath": denied_when("'{{ length((request.object.data)) }}'", "Equals", "7")}[language]  # fmt: skip
    assert Status.PASS == only(ask(policy(twin)))[0]


# -------------------------------------------------------------------------------------------------------- the webhook


PATHS = [
    "//validate/fail", "/validate//fail", "/validate/fail/", "/validate/./fail", "/validate/../validate/fail",
    "/validate", "/validate/fail/finegrained", "/validate/fail/finegrained//guard", "/validate/fail/finegrained/a/b/c",
    "/VALIDATE/fail", "/validate/fail%2ffinegrained", "/validate/%66ail", "/validate/fail;a=b",
    "/validate/fail/{{request}}", "/vpol",
    "/vpol/", "/vpol/a'b", "/validate/fail/finegrained/x[?(@)]", "/..", "/validate\\fail", "/validate/fail\u2028",
]  # fmt: skip


NAMED = ("/validate", "/vpol/a'b", "/validate/fail/finegrained/x[?(@)]", "/validate/%66ail", "/validate/fail\u2028")
"""Paths that the table has, so that the body is read, and the last one, which is no HTTP."""


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_one_of_the_table_or_nothing(path: str) -> None:
    """CVE-2020-8561: never 3xx. CVE-2025-46569, CVE-2026-26205: text of a path is looked up only."""

    async def scene(caller: Caller, _: WebhookServer) -> None:
        reader, writer = await caller.open()
        head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n{{}}".encode())
        code = int((await reader.readline()).split()[1])
        assert (400 if path in NAMED else 404) == code
        writer.close()
        assert not (await caller.ask("/validate/fail", CONFIG_MAP))["allowed"]

    play(NEEDS_LABEL, scene)


REPORTS = {
    "wgpolicyk8s.io/v1alpha2": ("PolicyReport", "policyreports"),
    "openreports.io/v1alpha1": ("Report", "reports"),
    "reports.kyverno.io/v1": ("EphemeralReport", "ephemeralreports"),
}


def _on_everything(kind: str, namespace: str) -> JSONObject:
    """Return a policy that denies or changes whatever it sees."""
    metadata = {"name": "guard", **({"namespace": namespace} if namespace else {})}
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["*"]}
    actions: dict[str, JSONObject] = {
        "deny": {"validate": {"failureAction": "Enforce", "message": "no", "deny": {}}},
        "change": {"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}},
    }
    if kind in actions:
        rule = {"name": "check", "match": {"any": [{"resources": {"kinds": ["*"]}}]}, **actions[kind]}
        spec: JSONObject = {"rules": [rule], "background": False}
        scope = "Policy" if namespace else "ClusterPolicy"
        return {"apiVersion": "kyverno.io/v1", "kind": scope, "metadata": metadata, "spec": spec}
    patch = "[JSONPatch{op: 'add', path: '/results', value: []}]"
    in_cel: dict[str, JSONObject] = {
        "ValidatingPolicy": {"validations": [{"expression": "false"}]},
        "MutatingPolicy": {"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]},
    }
    spec = {"matchConstraints": {"resourceRules": [everything]}, **in_cel[kind]}
    name = f"Namespaced{kind}" if namespace else kind
    return {"apiVersion": "policies.kyverno.io/v1", "kind": name, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("kind", ["deny", "change", "ValidatingPolicy", "MutatingPolicy"])
@pytest.mark.parametrize("api_version", REPORTS)
def test_no_policy_of_a_namespace_sees_reports(api_version: str, kind: str) -> None:
    """Kubewarden CVE-2025-24376: whose objects a report accuses may not refuse it, nor change what it says.

    The cluster-wide twin sees it, and the policy of the namespace sees every other kind.
    """
    group, _, version = api_version.partition("/")
    name, plural = REPORTS[api_version]
    report = {"apiVersion": api_version, "kind": name, "metadata": {"name": "a", "namespace": "team"}, "results": [{}]}

    def results(namespace: str, subject: JSONObject, gvr: GVR) -> int:
        made = compile_documents([Document(_on_everything(kind, namespace), "policy.yaml")])
        assert () == made.errors, [str(error) for error in made.errors]
        request = Request.from_manifest(subject, gvr=gvr)
        return len(Engine(made.policy_set(), NoHost()).review(request, ADMISSION).results)

    of_reports, of_config_maps = GVR(group, version, plural), GVR("", "v1", "configmaps")
    assert 0 == results("team", report, of_reports)
    assert (1, 1) == (results("", report, of_reports), results("team", CONFIG_MAP, of_config_maps))


# --------------------------------------------------------------------------------------------------------- the engine


PROGRAM = """
import sys
from tests.security.asking import ask, policy
rules = [policy("validate:\\n  message: refused\\n  pattern:\\n    metadata:\\n      annotations:\\n        x: '?*'"),
         policy("mutate:\\n  patchStrategicMerge:\\n    data:\\n      b: '{{ request.object.data.a }}'"),
         policy("validate:\\n  cel:\\n    expressions:\\n    - expression: object.data.a.matches('a') || true")]
def body(text):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "team",
            "annotations": {"x": text, "nginx.ingress.kubernetes.io/auth-url": text}}, "data": {"a": text, text: text}}
for rule in rules:
    ask(rule, body("first"))  # what is imported and made once is there now
events = []
sys.addaudithook(lambda name, arguments: events.append(name))
for rule in rules:
    for text in HOSTILE:
        ask(rule, body(text))
        ask(rule, {**body(text), "metadata": {**body(text)["metadata"], "name": "b"}})
bad = {"exec", "open", "os.system", "subprocess.Popen", "socket.connect", "socket.bind", "ctypes.dlopen", "os.rename"}
print(sorted(bad & set(events)))
"""
TEXTS = ["a\n}\nssl_engine /opt/x.so;", "http://a/#;\n}\n", "../../etc/passwd", "'); import os #", '"""', "{{ a }}",
         "$(id)", "lua_block { os.execute() }", "${jndi:ldap://a}", "%s%n", "{0.__class__}", "\x00"]  # fmt: skip


def test_nothing_is_made_of_an_object() -> None:
    """CVE-2025-1974: reviews compile no code, open no file, start no process and connect to nothing.

    Register: CVE-2023-5044, CVE-2025-1097, CVE-2025-1098, CVE-2025-24513, CVE-2025-24514, CVE-2026-1580,
    CVE-2026-24512, CVE-2026-24513, CVE-2026-24514, CVE-2026-4342.
    """
    program = f"HOSTILE = {TEXTS!r}\n{PROGRAM}"
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ("[]\n", "") == (ran.stdout, ran.stderr)


NODE: JSONObject = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"zone": "a"}}}


def test_the_old_object_is_what_the_api_server_sent() -> None:
    """CVE-2021-25735: old fields of a Node are those of the request's old object, never of the new one."""
    text = policy(denied_when("'{{ request.oldObject.metadata.labels.zone }}'", "Equals", "a"), on="Node")
    moved = {**NODE, "metadata": {"name": "n", "labels": {"zone": "b"}}}
    assert Status.FAIL == only(ask(text, moved, old=NODE, operation=Operation.UPDATE))[0]
    assert Status.PASS == only(ask(text, NODE, old=moved, operation=Operation.UPDATE))[0]


BAD_PARTS: dict[str, tuple[str, JSONObject]] = {
    "restrict-image-registries": ("image", {"image": "evil.example/a:1"}),
    "disallow-secrets-from-env": (
        "env",
        {"env": [{"name": "a", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
    ),
    "disallow-secrets-from-env, all": ("envFrom", {"envFrom": [{"secretRef": {"name": "s"}}]}),
}


@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize("case", BAD_PARTS)
def test_no_kind_of_container_is_forgotten(case: str, kind: str) -> None:
    """CVE-2023-2727, CVE-2023-2728, CVE-2024-3177: images and secrets of every kind of container, also as `images`."""
    part = BAD_PARTS[case][1]
    good = {"name": "a", "image": "registry.k8s.io/a:1"}
    spec = {"containers": [good], kind: [{**good, **part, "name": "b"}]}
    policies = load_policies(str(LIBRARY / "best-practices" / case.partition(",")[0] / "clusterpolicy.yaml"))
    assert "fail" in {each.status.value for each in review({**POD, "spec": spec}, policies).results}
    assert {"pass"} == {each.status.value for each in review({**POD, "spec": {"containers": [good]}}, policies).results}
    if "image" in part:
        text = policy(denied_when("'{{ images.*.*.registry[] }}'", "AnyIn", "[evil.example]"), on="Pod")
        assert Status.FAIL == only(ask(text, {**POD, "spec": spec}))[0]
        assert Status.PASS == only(ask(text, {**POD, "spec": {"containers": [good]}}))[0]


def test_the_subresource_that_adds_containers_is_judged_as_a_pod() -> None:
    """CVE-2023-2727: Pod rules judge `pods/ephemeralcontainers`; Capsule CVE-2026-30963: and no other one."""
    text = policy(denied_when("'{{ request.object.metadata.name }}'", "Equals", "web"), on="Pod")
    how = {"operation": Operation.UPDATE, "old": {**POD, "metadata": {"name": "before", "namespace": "team"}}}
    assert Status.FAIL == only(ask(text, POD, subresource="ephemeralcontainers", **how))[0]
    assert () == ask(text, POD, subresource="status", **how).results
    named = policy(denied_when("'{{ request.object.metadata.name }}'", "Equals", "web"), on="Pod/status")
    assert Status.FAIL == only(ask(named, POD, subresource="status", **how))[0]


def test_external_addresses_of_services_are_denied() -> None:
    """CVE-2020-8554: the library's policy denies any number of them; a Service without them passes."""
    policies = load_policies(str(LIBRARY / "best-practices" / "restrict-external-ips" / "clusterpolicy.yaml"))
    service: JSONObject = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": []}}
    for addresses, expected in (["1.2.3.4"], "fail"), ([], "fail"), (None, "pass"):
        spec = service["spec"] | ({} if addresses is None else {"externalIPs": addresses})
        assert {expected} == {each.status.value for each in review({**service, "spec": spec}, policies).results}


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "a{1001}", "(?<=a)b", "\\", "(?P<a", "*", "\\p{Nope}"])
def test_a_bad_regular_expression_is_an_error_of_its_rule(pattern: str) -> None:
    """Capsule CVE-2026-65834: one that is built at run time errs and denies; the other rules are judged as before."""
    key = "'{{ regex_match(request.object.data.p, `\"a\"`) }}'"
    text = policy(denied_when(key, "Equals", "true")).replace("name: guard", "name: a-regex")
    other = policy("validate:\n  message: x\n  pattern:\n    data:\n      a: '1'")
    found = ask(f"{text}---\n{other}", {**CONFIG_MAP, "data": {"a": "1", "p": pattern}})
    by_policy = {each.rule.policy.name: each.status for each in found.results}
    assert ({"a-regex": Status.ERROR, "guard": Status.PASS}, False) == (by_policy, found.decision.allowed)
    assert () == found.faults
    assert Status.PASS == only(ask(text, {**CONFIG_MAP, "data": {"p": "^b$"}}))[0]


@pytest.mark.parametrize("kind", ["ClusterRole", "Namespace", "CustomResourceDefinition"])
def test_a_policy_of_a_namespace_generates_nothing_outside_of_one(kind: str) -> None:
    """Capsule CVE-2026-22872, CVE-2026-65835: a kind without a namespace is refused; one in its own is not."""
    versions = {"ClusterRole": "rbac.authorization.k8s.io/v1", "Namespace": "v1"}
    target = f"apiVersion: {versions.get(kind, 'apiextensions.k8s.io/v1')}\n  kind: {kind}\n  name: a\n"
    for namespace in ("", "  namespace: team\n"):
        rule = f"generate:\n  {target}{namespace}  data:\n    metadata: {{}}\n"
        assert () != compiled(policy(rule, kind="Policy")).errors
    own = "generate:\n  apiVersion: v1\n  kind: ConfigMap\n  name: a\n  namespace: team\n  data:\n    data: {}\n"
    assert () == compiled(policy(own, kind="Policy")).errors


CHOSEN = "apiVersion: '{{ request.object.data.version }}'\n  kind: '{{ request.object.data.kind }}'\n  name: made\n"
CHOOSING = {
    "data": f"generate:\n  {CHOSEN}  namespace: team\n  data: {{metadata: {{}}}}\n",
    "foreach": "generate:\n  foreach:\n  - list: '[`1`]'\n"
    f"{indent(CHOSEN.replace(chr(10) + '  ', chr(10)), '    ')}    namespace: team\n    data: {{metadata: {{}}}}\n",
    "clone": f"generate:\n  {CHOSEN}  namespace: team\n  clone: {{namespace: team, name: source}}\n",
}


@pytest.mark.parametrize("how", CHOOSING)
@pytest.mark.parametrize(
    ("version", "kind"),
    [("rbac.authorization.k8s.io/v1", "ClusterRole"), ("v1", "Namespace"), ("v1", "Node")],
)
def test_a_kind_that_a_variable_names_stays_in_the_namespace(version: str, kind: str, how: str) -> None:
    """Capsule CVE-2026-65835, CVE-2026-54523: the namespace that was checked is no limit for a kind without one."""
    spy = Spy({"apiVersion": version, "kind": kind, "metadata": {"name": "source"}})

    def made(version: str, kind: str) -> Review:
        resource = {**CONFIG_MAP, "data": {"version": version, "kind": kind}}
        return ask(policy(CHOOSING[how], kind="Policy"), resource, host=spy)

    review = made(version, kind)
    assert ((), [Status.ERROR]) == (review.effects, [result.status for result in review.results])
    assert [Status.PASS] == [result.status for result in made("v1", "Secret").results]


def test_every_kind_is_requested_by_its_plural() -> None:
    """Capsule CVE-2026-55636: a webhook rule for `ingresss` would match no request; the two tables of plurals agree."""
    served = {GVK(each.group, each.version, each.kind): each for each in builtin_table("1.35")}
    known = {kind: BUILTIN_KINDS.find(kind) for kind in served}
    assert {kind: (each.plural, each.namespaced) for kind, each in served.items()} == {
        kind: info and (info.gvr.resource, info.namespaced) for kind, info in known.items()
    }
    assert {"pods", "ingresses", "networkpolicies", "endpoints"} <= {each.plural for each in served.values()}
