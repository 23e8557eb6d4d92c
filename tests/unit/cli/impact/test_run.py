"""`pyverno impact`: what a change of policies does to objects and to recorded requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubesandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from tests.support.commandline import Run

CONFIG_MAPS = GVR("", "v1", "configmaps")
NAMESPACES = GVR("", "v1", "namespaces")
POLICY = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: %s}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    %s
"""
AUDIT = "validate: {failureAction: Audit, message: no team, pattern: {metadata: {labels: {team: '?*'}}}}"
ENFORCE = AUDIT.replace("Audit", "Enforce")
LABEL = "mutate: {patchStrategicMerge: {metadata: {labels: {seen: 'yes'}}}}"
MAKE = "generate: {apiVersion: v1, kind: Secret, name: s, namespace: a, data: {type: Opaque}}"
CLEAN = """\
apiVersion: policies.kyverno.io/v1
kind: DeletingPolicy
metadata: {name: clean}
spec:
  schedule: "0 0 * * *"
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
"""


def settings(name: str, **labels: str) -> JSONObject:
    """Return a ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "a", "labels": {"x": "y", **labels}},
        "data": {"k": "v"},
    }


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """An API server without controllers."""
    with Sandbox(Settings(controllers=False)) as running:
        yield running


@pytest.fixture
def files(folder: Path) -> None:
    """Files with one policy each, and with two objects, one of which has a team."""
    for name, rule in (("audit", AUDIT), ("enforce", ENFORCE), ("label", LABEL), ("make", MAKE)):
        (folder / f"{name}.yaml").write_text(POLICY % (name.replace("enforce", "audit"), rule))
    (folder / "clean.yaml").write_text(CLEAN)
    (folder / "objects.yaml").write_text(
        "---\n".join(json.dumps(settings(*each)) + "\n" for each in (("one",), ("two",)))
    )
    (folder / "owned.yaml").write_text(json.dumps(settings("three", team="red")))


def changes(cli: Run, *words: str) -> list[tuple[str, str, str]]:
    """Return category, policy and object of each change."""
    listing = json.loads(cli("impact", *words, "-o", "json").out)
    return [(each["change"], each["policy"], each["name"]) for each in listing["changes"]]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("audit", "enforce", "refused"),
        ("enforce", "audit", "allowed"),
        ("", "audit", "reported"),
        ("audit", "label", "no longer reported"),
        ("", "label", "changed"),
        ("", "make", "generated"),
        ("make", "label", "no longer generated"),
        ("", "clean", "deleted"),
        ("clean", "label", "no longer deleted"),
    ],
)
def test_every_kind_of_change_is_named_with_its_policy(cli: Run, old: str, new: str, expected: str) -> None:
    """For each object that it concerns."""
    words = ("--from", f"{old}.yaml") if old else ()
    found = [each for each in changes(cli, *words, "--to", f"{new}.yaml", "-r", "objects.yaml") if each[0] == expected]
    policy = (old if expected in ("allowed",) or expected.startswith("no longer") else new).replace("enforce", "audit")
    assert [(expected, policy, "one"), (expected, policy, "two")] == found


@pytest.mark.usefixtures("files")
def test_the_same_policies_change_nothing(cli: Run) -> None:
    """On either side."""
    ran = cli("impact", "--from", "make.yaml", "--to", "make.yaml", "-r", "objects.yaml")
    assert (0, "2 judged: no change\n") == (ran.code, ran.out)


@pytest.mark.usefixtures("files")
def test_objects_that_no_rule_applies_to_are_named_as_such(cli: Run, folder: Path) -> None:
    """A misspelt kind would look like a change without consequences."""
    (folder / "typo.yaml").write_text((folder / "enforce.yaml").read_text().replace("[ConfigMap]", "[ConfigMpa]"))
    ran = cli("impact", "--to", "typo.yaml", "-r", "objects.yaml")
    assert (0, "2 judged: no change; no rule of either side applies to any of them\n") == (ran.code, ran.out)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("threshold", "code"), [("0", 0), ("2", 1), ("3", 0)])
def test_the_exit_code_shows_whether_the_threshold_is_reached(cli: Run, threshold: str, code: int) -> None:
    """Objects that would newly be refused count."""
    words = ("--from", "audit.yaml", "--to", "enforce.yaml", "-r", "objects.yaml", "-r", "owned.yaml")
    assert code == cli("impact", *words, "--fail-on", threshold).code


@pytest.mark.usefixtures("files")
def test_changes_are_grouped_by_policy_namespace_and_owner(cli: Run) -> None:
    """With examples."""
    ran = cli("impact", "--to", "label.yaml", "-r", "objects.yaml", "-r", "owned.yaml", "--examples", "1")
    _, first, second, last = ran.out.splitlines()
    assert ["changed", "label", "a", "2"] == first.split()[:4]
    assert first.endswith("ConfigMap/one (/metadata/labels/seen); and 1 more")
    assert ["changed", "label", "a", "red", "1"] == second.split()[:5]
    assert "3 judged: 3 changed" == last


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("form", ["markdown", "html"])
def test_texts_of_objects_and_policies_are_escaped(cli: Run, folder: Path, form: str) -> None:
    """They cannot add markup or columns."""
    (folder / "bad.yaml").write_text((POLICY % ("bad", ENFORCE)).replace("no team", "<b> a | b"))
    ran = cli("impact", "--to", "bad.yaml", "-r", "objects.yaml", "-o", form)
    assert "&lt;b&gt; a" in ran.out
    assert "<b>" not in ran.out
    assert form == "html" or "a \\| b" in ran.out


@pytest.mark.usefixtures("files")
def test_recorded_requests_are_judged(cli: Run, folder: Path) -> None:
    """AdmissionReviews and audit events with objects; others are counted."""
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "operation": "CREATE",
            "name": "reviewed",
            "namespace": "a",
            "userInfo": {"username": "bob"},
            "object": settings("reviewed"),
        },
    }
    event = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Event",
        "level": "RequestResponse",
        "stage": "ResponseComplete",
        "verb": "create",
        "user": {"username": "bob"},
        "objectRef": {"resource": "configmaps", "apiVersion": "v1", "namespace": "a", "name": "audited"},
        "requestObject": settings("audited"),
    }
    patched = {**event, "verb": "patch", "requestObject": {"data": {}}, "responseObject": settings("patched")}
    read = {**event, "verb": "get"}
    early = {**event, "stage": "RequestReceived"}
    records = folder / "records"
    records.mkdir()
    (records / "a.json").write_text(json.dumps(review))
    (records / "audit.log").write_text("".join(json.dumps(each) + "\n" for each in (event, patched, read, early)))
    words = ("--from", "audit.yaml", "--to", "enforce.yaml", "--recorded", "records")
    # the update leaves an object as it was, which existing violations allow
    expected = [("refused", "audit", "reviewed"), ("refused", "audit", "audited")]
    assert [*expected, ("no longer reported", "audit", "patched")] == changes(cli, *words)
    last = cli("impact", *words).out.splitlines()[-1]
    assert "3 judged: 2 refused, 1 no longer reported; 2 recorded events without an object are left out" == last


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--to", "audit.yaml"), "name objects with -r, --cluster or --recorded"),
        (("--to", "missing.yaml", "-r", "objects.yaml"), "missing.yaml"),
        (("--to", "audit.yaml", "--recorded", "audit.yaml"), "audit.yaml:1: the line is no JSON document"),
        (("--to", "audit.yaml", "-r", "empty.yaml"), "there is no object and no request to judge in `empty.yaml`"),
        (("--to", "empty.yaml", "-r", "objects.yaml"), "there is no policy in `empty.yaml`"),
    ],
)
def test_what_cannot_be_used_ends_with_2(cli: Run, folder: Path, words: tuple[str, ...], text: str) -> None:
    """With the reason on stderr; a comparison of nothing is no success."""
    (folder / "empty.yaml").write_text("# nothing yet\n")
    ran = cli("impact", *words, "--fail-on", "1")
    assert 2 == ran.code
    assert text in ran.err


def recorded(name: str, webhook: str, second: int, **more: object) -> str:
    """Return a line as the admission controller writes it; each webhook receives another uid."""
    request = {
        "uid": f"{webhook}-{second}",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "operation": "CREATE",
        "name": name,
        "namespace": "a",
        "userInfo": {"username": "bob"},
        "object": settings(name, **({"seen": "yes"} if webhook.startswith("/validate") else {})),
    }
    known = {"time": f"2026-01-01T10:00:{second:02}.5+00:00", "webhook": webhook, **more}
    return json.dumps({"kind": "AdmissionReview", "request": request, "recorded": known}) + "\n"


@pytest.mark.usefixtures("files")
def test_a_write_that_several_webhooks_received_counts_once(cli: Run, folder: Path) -> None:
    """As it was before policies changed it, in whichever order files hold it; the last line may still be written."""
    (folder / "r").mkdir()
    second = recorded("one", "/validate/fail", 2, redacted=True) + recorded("two", "/validate/fail", 5)
    (folder / "r" / "a.jsonl").write_text(second + recorded("one", "/validate/fail", 4) + '{"kind": "Admi')
    first = recorded("one", "/mutate/fail", 1, redacted=True) + recorded("one", "/mutate/fail", 3)
    (folder / "r" / "b.jsonl").write_text(first)
    assert [("changed", "label", "one")] * 2 == changes(cli, "--to", "label.yaml", "--recorded", "r")
    last = cli("impact", "--to", "enforce.yaml", "--recorded", "r").out.splitlines()[-1]
    assert "3 judged: 2 refused; 1 were judged without their confidential values" == last


@pytest.mark.parametrize(
    ("match", "refused"),
    [
        ("clusterRoles: [view]", True),
        ("clusterRoles: [edit]", False),
        ("roles: ['a:dev']", True),
        ("resources: {kinds: [ConfigMap], namespaceSelector: {matchLabels: {team: red}}}", True),
        ("resources: {kinds: [ConfigMap], namespaceSelector: {matchLabels: {team: blue}}}", False),
    ],
)
def test_roles_and_namespace_of_a_recorded_request_count(cli: Run, folder: Path, match: str, *, refused: bool) -> None:
    """As they were when the request was made."""
    block = match if match.startswith("resources") else f"{match}, resources: {{kinds: [ConfigMap]}}"
    text = (
        (POLICY % ("p", ENFORCE))
        .replace("spec:", "spec:\n  background: false", 1)
        .replace("resources: {kinds: [ConfigMap]}", block)
    )
    (folder / "p.yaml").write_text(text)
    known = {"roles": ["a:dev"], "clusterRoles": ["view"], "namespaceLabels": {"team": "red"}}
    (folder / "r.jsonl").write_text(recorded("one", "/validate/fail", 1, **known))
    found = [("refused", "p", "one")] if refused else []
    assert found == changes(cli, "--to", "p.yaml", "--recorded", "r.jsonl")


@pytest.mark.usefixtures("files")
def test_the_objects_of_a_cluster_are_judged(cli: Run, sandbox: Sandbox) -> None:
    """Of every kind that either side matches, and nothing is written."""

    async def fill() -> None:
        async with Client(load_kubeconfig(sandbox.kubeconfig, environment={}), qps=0) as client:
            await client.create(NAMESPACES, {"kind": "Namespace", "metadata": {"name": "a"}})
            for body in (settings("live"), settings("owned", team="red")):
                await client.create(CONFIG_MAPS, body, "a")

    sandbox.run(fill())
    words = ("--cluster", "--kubeconfig", sandbox.kubeconfig, "-n", "a")
    assert [("refused", "audit", "live")] == changes(cli, "--from", "audit.yaml", "--to", "enforce.yaml", *words)
    cleaned = changes(cli, "--to", "clean.yaml", *words)
    assert [("deleted", "clean", "live"), ("deleted", "clean", "owned")] == cleaned
    found = json.loads(cli("analyze", "enforce.yaml", *words[:3], "-n", "0", "--select", "PA4", "-o", "json").out)
    assert 2 <= found["summary"]["objects"]
