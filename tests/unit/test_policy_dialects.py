"""The policy library in its two dialects: a ClusterPolicy and a CEL policy of one control do the same.

Policies that validate give the same verdicts, those that mutate leave the same object, those that generate make the
same objects.

A pod that is not well-formed (a string where a list belongs, a field missing that Kubernetes demands) never reaches an
admission webhook, and the dialects may treat it differently: patterns compare `"false"` with `false`, CEL does not.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from pyverno import ADMISSION, VALIDATING, Engine, PolicySet, Request, Review, load_documents, load_policies
from pyverno.engine.effects import CreateEffect
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import schema_set
from tests.bench.inputs import mutated_pods

LIBRARY = Path(__file__).resolve().parents[2] / "policies"
CEL = LIBRARY / "cel"
TWINS = {
    path.parent.relative_to(CEL).as_posix(): path
    for path in sorted(CEL.rglob("*policy.yaml"))
    if path.parent.name != "cases"
}
CONTROLS = tuple(control for control, path in TWINS.items() if path.name == "validatingpolicy.yaml")
SECURITY = tuple(each for each in CONTROLS if each.startswith(("pod-security/", "best-practices/")))


def resources(*names: str) -> Iterator[tuple[str, JSONObject]]:
    """Yield the controls, each with the resources in these files of its cases."""
    for control in TWINS:
        for path in (LIBRARY / control / "cases" / name for name in names):
            if path.is_file():
                yield from ((control, document.value) for document in load_documents(path.read_bytes(), file=path.name))


CASES = tuple(
    pytest.param(control, value, id=f"{Path(control).name}-{value['metadata']['name']}")
    for control, value in resources("good.yaml", "bad.yaml")
)
WHOLE_LEVELS = {"pod-security/levels/pod-security-baseline", "pod-security/levels/pod-security-restricted"}
_SEED = 20_260_105
_PODS = 2_800
_PODS_FOR_ALL = 250
_GENERATED_LABELS = ("generate.kyverno.io/", "app.kubernetes.io/managed-by")

Said = Mapping[str, set[tuple[str, str]]]


@cache
def pattern_policies(*controls: str) -> PolicySet:
    """Return the ClusterPolicies of controls, by default of all that validate in both dialects."""
    return load_policies(*(LIBRARY / control / "clusterpolicy.yaml" for control in controls or CONTROLS))


@cache
def cel_policies(*controls: str) -> PolicySet:
    """Return the CEL policies of the same controls."""
    return load_policies(*(TWINS[control] for control in controls or CONTROLS))


def said(policies: PolicySet, value: JSONObject) -> Said:
    """Return the status and the message of every result, by policy."""
    found: dict[str, set[tuple[str, str]]] = {Path(control).name: set() for control in CONTROLS}
    for result in Engine(policies).review(Request.from_manifest(value), VALIDATING).results:
        found[result.rule.policy.name].add((result.status.value, result.message))
    return found


def reviews(control: str, value: JSONObject) -> tuple[Review, Review]:
    """Review a resource with both policies of a control."""
    pattern, cel = (
        Engine(policies).review(Request.from_manifest(value), ADMISSION)
        for policies in (pattern_policies(control), cel_policies(control))
    )
    return pattern, cel


def outcome(review: Review) -> tuple[str, JSON, list[JSON]]:
    """Return the verdict, the object and the new objects of a review; a skipped rule lets pass."""
    statuses = {result.status.value for result in review.results}
    verdict = next((status for status in ("error", "fail") if status in statuses), "pass")
    return verdict, review.resource, generated_objects(review)


def generated_objects(review: Review) -> list[JSON]:
    """Return the objects that a review would create, without the labels that name the policy, in a fixed order."""
    created = [copy.deepcopy(each.resource) for each in review.effects if isinstance(each, CreateEffect)]
    for resource in created:
        labels = resource["metadata"].pop("labels", {})
        resource["metadata"]["labels"] = {
            key: text for key, text in labels.items() if not key.startswith(_GENERATED_LABELS)
        }
    return sorted(created, key=lambda resource: (resource["kind"], resource["metadata"]["name"]))


def passed(results: Said) -> set[str]:
    """Return the names of the policies that let it pass; a skipped rule lets pass, an error does not."""
    return {name for name, found in results.items() if all(status in ("pass", "skip") for status, _ in found)}


def test_every_control_has_both_dialects() -> None:
    """Only the two policies that judge a whole level with one rule have no counterpart in CEL."""
    written = {path.parent.relative_to(LIBRARY).as_posix() for path in LIBRARY.rglob("clusterpolicy.yaml")}
    assert written - WHOLE_LEVELS == set(TWINS)


@pytest.mark.parametrize("control", TWINS)
def test_both_dialects_describe_themselves_alike(control: str) -> None:
    """Name, title, category, severity, subject and description are the same."""
    files = (LIBRARY / control / "clusterpolicy.yaml", TWINS[control])
    pattern, cel = (load_documents(path.read_bytes(), file=str(path))[0].value["metadata"] for path in files)
    about = {key: text for key, text in pattern["annotations"].items() if key.startswith("policies.")}
    assert {"name": pattern["name"], "annotations": about} == cel


@pytest.mark.parametrize(("control", "value"), CASES)
def test_both_dialects_judge_the_cases_alike(control: str, value: JSONObject) -> None:
    """The resources of the cases of a control get one verdict, one object and the same new objects from both."""
    pattern, cel = reviews(control, value)
    assert outcome(pattern) == outcome(cel)
    assert outcome(pattern)[0] != "error"
    # where the pattern excludes or skips an object, the match conditions of the other leave it out
    assert cel.results or {"skip"} >= {result.status.value for result in pattern.results}


def test_both_dialects_judge_the_edges_alike() -> None:
    """So do resources that differ from the cases in one field, as long as an API server admits them."""
    edges = [(control, value) for control, value in resources("edges.yaml") if is_admitted(value)]
    assert len(edges) > 400
    differences = [
        (control, value)
        for control, value in edges
        for pattern, cel in [reviews(control, value)]
        if outcome(pattern) != outcome(cel)
    ]
    assert differences == []


def test_both_dialects_of_all_controls_judge_well_formed_pods_alike() -> None:
    """Controls of every category let pass the same pods, out of some with random changes."""
    pods = [pod for pod in mutated_pods(_SEED + 1, _PODS_FOR_ALL) if is_well_formed(pod)]
    assert len(pods) >= _PODS_FOR_ALL // 2
    differences = [
        (pod, passed(pattern) ^ passed(cel))
        for pod in pods
        for pattern, cel in [(said(pattern_policies(), pod), said(cel_policies(), pod))]
        if passed(pattern) != passed(cel)
    ]
    assert differences == []


def test_both_dialects_judge_well_formed_pods_alike() -> None:
    """Of more than two thousand pods with random changes every control of security lets pass the same ones."""
    pods = [pod for pod in mutated_pods(_SEED, _PODS) if is_well_formed(pod)]
    assert len(pods) >= 2000
    differences = [
        (pod, passed(pattern) ^ passed(cel))
        for pod in pods
        for pattern, cel in [(said(pattern_policies(*SECURITY), pod), said(cel_policies(*SECURITY), pod))]
        if passed(pattern) != passed(cel)
    ]
    assert differences == []


def test_templates_without_metadata_are_judged_alike() -> None:
    """Manifests often leave the metadata of a pod template out, which the API server adds; that is no error."""
    spec: JSONObject = {"template": {"spec": {"containers": [{"name": "app", "image": "ghcr.io/example/app:1.0"}]}}}
    cron: JSONObject = {"schedule": "0 3 * * *", "jobTemplate": {"spec": spec}}
    for value in (
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec},
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"}, "spec": cron},
    ):
        pattern, cel = said(pattern_policies(), value), said(cel_policies(), value)
        assert passed(pattern) == passed(cel)
        assert "error" not in {status for found in cel.values() for status, _ in found}


def test_the_messages_name_what_to_change() -> None:
    """The message ends with the containers at fault, and with the pod when its own field is."""
    pod: JSONObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {
            "securityContext": {"runAsUser": 0},
            "containers": [{"name": "good"}, {"name": "one", "securityContext": {"runAsUser": 0}}],
            "ephemeralContainers": [{"name": "two", "securityContext": {"runAsUser": 0}}],
        },
    }
    ((status, message),) = said(cel_policies(), pod)["disallow-root-user"]
    assert status == "fail"
    assert message.endswith(" in the pod, container one, container two")


def pod_with(container: JSONObject, **spec: JSON) -> JSONObject:
    """A pod of one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "app", **container}], **spec},
    }


@pytest.mark.parametrize(
    ("control", "capabilities"),
    [
        ("disallow-added-capabilities", {"add": ["SYS_*"]}),
        ("disallow-added-capabilities", {"add": ["CHOWN", "*"]}),
        ("require-drop-all-capabilities", {"drop": ["A*"]}),
        ("require-drop-all-capabilities", {"drop": ["?LL", "*"]}),
        ("require-drop-all-capabilities", {"drop": ["ALL"], "add": ["NET_BIND*"]}),
    ],
)
def test_wildcards_in_capabilities_of_a_pod_are_no_wildcards(control: str, capabilities: JSONObject) -> None:
    """The name in the pod has to be the capability itself, in both dialects."""
    pod = pod_with({"securityContext": {"capabilities": capabilities}})
    assert control not in passed(said(pattern_policies(), pod))
    assert control not in passed(said(cel_policies(), pod))


@pytest.mark.parametrize(
    ("system", "expected"), [("windows", True), ("linux", False), ("Windows", False), ("win*", False)]
)
def test_pods_for_windows_are_exempt_from_what_only_linux_has(system: str, expected: bool) -> None:
    """Since v1.25 of the standards, as the podSecurity rules judge; anything else is as for Linux."""
    pod = pod_with({"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}, os={"name": system})
    for control in ("disallow-privilege-escalation", "require-drop-all-capabilities", "require-seccomp"):
        assert expected is (control in passed(said(pattern_policies(), pod)))
        assert expected is (control in passed(said(cel_policies(), pod)))
    # what the baseline demands holds everywhere
    assert "disallow-added-capabilities" not in passed(said(pattern_policies(), pod)) | passed(
        said(cel_policies(), pod)
    )


EMPTY = {"type": "", "user": "", "role": ""}


@pytest.mark.parametrize(
    ("control", "pod"),
    [
        ("restrict-selinux", pod_with({"securityContext": {"seLinuxOptions": EMPTY}})),
        ("restrict-selinux", pod_with({}, securityContext={"seLinuxOptions": EMPTY})),
        ("disallow-probe-hosts", pod_with({"livenessProbe": {"httpGet": {"port": 1, "host": ""}}})),
        ("disallow-probe-hosts", pod_with({"lifecycle": {"preStop": {"tcpSocket": {"port": 1, "host": ""}}}})),
    ],
)
def test_an_empty_text_is_as_good_as_none(control: str, pod: JSONObject) -> None:
    """The standards allow both."""
    assert control in passed(said(pattern_policies(), pod))
    assert control in passed(said(cel_policies(), pod))


@pytest.mark.parametrize(("profile", "expected"), [("", True), ("runtime/default", True), ("unconfined", False)])
def test_an_empty_apparmor_annotation_is_allowed(profile: str, expected: bool) -> None:
    """Kubernetes takes it for the profile of the runtime."""
    pod = pod_with({})
    pod["metadata"]["annotations"] = {"container.apparmor.security.beta.kubernetes.io/app": profile}
    assert expected is ("restrict-apparmor" in passed(said(pattern_policies(), pod)))
    assert expected is ("restrict-apparmor" in passed(said(cel_policies(), pod)))


# --- pods that Kubernetes would take ---------------------------------------------------------------------------------

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def is_admitted(value: JSONObject) -> bool:
    """Return whether an API server would admit an object, as far as its schema and the names of volumes decide."""
    group, _, version = value["apiVersion"].rpartition("/")
    schema = schema_set().find(group, version, value["kind"])
    names = [each.get("name") for each in value.get("spec", {}).get("volumes", ()) if isinstance(each, dict)]
    return (schema is None or _fits(value, schema)) and len(names) == len(set(names))


def is_well_formed(pod: JSONObject) -> bool:
    """Return whether a pod has a spec and fits the types of its schema; unknown fields are none of its business."""
    schema = schema_set().find("", "v1", "Pod")
    assert schema is not None
    return "spec" in pod and _fits(pod, schema)


def _fits(value: JSON, schema: JSONObject) -> bool:
    if "$ref" in schema:
        schema = schema_set().definitions[schema["$ref"]]
    if "oneOf" in schema:
        return any(_fits(value, choice) for choice in schema["oneOf"])
    # schemas say `[type, "null"]`; here null fits nothing, as Kubernetes drops it
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind is not None and (not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return False
    if isinstance(value, dict):
        known = schema.get("properties", {})
        every = schema.get("additionalProperties", {})
        return all(name in value for name in schema.get("required", ())) and all(
            _fits(child, known.get(key, every)) for key, child in value.items()
        )
    return not isinstance(value, list) or all(_fits(item, schema.get("items", {})) for item in value)
