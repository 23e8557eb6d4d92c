"""The front doors, each as a function from a case to the rules' results for each object.

A door that cannot see all facts of a case (such as recorded answers) gives the reason instead of judging less. This
module must never judge by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyverno.cli.apply.judge import JudgedResource, judge
from pyverno.cli.apply.load import load_inputs, open_session
from pyverno.cli.apply.options import ApplyOptions
from pyverno.cli.test.suite import load_suite
from pyverno.engine.engine import Engine, Review
from pyverno.engine.request import Request
from pyverno.engine.rule import Stage
from pyverno.kube.json import JSONObject
from pyverno.kube.resource import Resource
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.testfile import read_test_file
from tests.cases.case import Case
from tests.cases.snapshot import PHASES, effect_names, reviews_of, said
from tests.parity.reviews import review_of

Answer = list[tuple[list[tuple[str, str, str, str]], list[str]]]
"""Per object: policy, rule, status and message of each result, and what the effects are about."""

Door = Callable[[Case, Path], Answer]
_CLEANUP = frozenset({"CleanupPolicy", "ClusterCleanupPolicy"})


def library(case: Case) -> Answer:
    """Return the results of `Engine.review` for requests made from manifests."""
    return _answer(reviews_of(case))


def admission_review(case: Case, folder: Path) -> Answer:
    """Return the results of the same requests when they arrive as AdmissionReviews."""
    engine = Engine(case.compilation.policy_set(), case.host)
    return _answer([engine.review(_from_review(case, request), PHASES) for request in case.requests()])


def live_scan(case: Case, folder: Path) -> Answer:
    """Return the results of `Engine.review` for live objects, as in a background scan."""
    engine = Engine(case.compilation.policy_set(), case.host)
    requests = [Request.from_live(manifest, **case.surroundings(manifest)) for manifest in case.manifests]
    return _answer([engine.review(request, PHASES) for request in requests])


def judged_by_apply(case: Case) -> list[JudgedResource]:
    """Return the results of `pyverno apply`, resource by resource."""
    options = ApplyOptions(
        policies=(case.path("policy.yaml"),),
        resources=() if case.is_payload else (case.path("resource.yaml"),),
        json_payloads=_payloads(case, ""),
        http_payloads=_payloads(case, "HTTP"),
        envoy_payloads=_payloads(case, "Envoy"),
        parameter_resources=(case.path("params.yaml"),) if case.has("params.yaml") else (),
        crd_paths=(case.path("crds.yaml"),) if case.has("crds.yaml") else (),
        exceptions=(case.path("exception.yaml"),) if case.has("exception.yaml") else (),
        values_file=case.path("values.yaml") if case.has("values.yaml") else "",
        user_info=case.path("user.yaml") if case.has("user.yaml") else "",
    )
    inputs = load_inputs(options)
    return [*judge(inputs, open_session(inputs))]


def apply_command(case: Case, folder: Path) -> Answer:
    """Return the results of `pyverno apply`."""
    judged = judged_by_apply(case)
    return [(said(item.results), effect_names(e for result in item.results for e in result.effects)) for item in judged]


def _payloads(case: Case, mode: str) -> tuple[str, ...]:
    return (case.path("resource.yaml"),) if case.is_payload and case.check_mode == mode else ()


def test_command(case: Case, folder: Path) -> Answer:
    """Return the results of `pyverno test`, before it compares them with the expectations of a suite."""
    path = folder / "kyverno-test.yaml"
    path.write_text(dump_yaml(_suite(case, folder)), encoding="utf-8")
    test = read_test_file(load_documents(path.read_bytes(), file=str(path))[0])
    reviews = [judged.review for judged in load_suite(test, case.folder).judge()]
    return [
        (said(review.results), effect_names(e for result in review.results for e in result.effects))
        for review in reviews
    ]


test_command.__test__ = False  # type: ignore[attr-defined]  # a door, not a test


DOORS: dict[str, Door] = {
    "admission-review": admission_review,
    "live-scan": live_scan,
    "apply": apply_command,
    "test": test_command,
}


def blind_spot(door: str, case: Case) -> str:
    """Return why a door does not see the facts of a case, or "" when it does."""
    return next((why for applies, why in _BLIND_SPOTS[door] if applies(case)), "")


def _has_host(case: Case) -> bool:
    return bool(case.world)


def _has_clock_or_registry(case: Case) -> bool:
    return "now" in case.world or "images" in case.world


def _is_about_other_requests(case: Case) -> bool:
    return bool(set(case.options) - {"payload"})


def _has_cleanup(case: Case) -> bool:
    return any(policy.info.kind in _CLEANUP for policy in case.compilation.policies)


def _acts(case: Case) -> bool:
    stages = {rule.stage for policy in case.compilation.policies for rule in policy.rules}
    return not stages <= {Stage.VALIDATE}


def _is_unreadable(case: Case) -> bool:
    return any(item.errors and (item.written is None or item.exception) for item in case.compilation.items)


def _is_not_in_background(case: Case) -> bool:
    return any(not policy.info.background for policy in case.compilation.policies)


_BLIND_SPOTS: dict[str, tuple[tuple[Callable[[Case], bool], str], ...]] = {
    "admission-review": (
        (lambda case: case.is_background, "a scan has no AdmissionReview"),
        (lambda case: case.is_payload, "a payload is no object that an API server asks about"),
    ),
    "live-scan": (
        (lambda case: case.is_payload, "a payload does not live in a cluster"),
        (_is_about_other_requests, "a scan only sees objects as they stand"),
        (lambda case: case.has("user.yaml"), "nobody asks for a scan"),
        (_is_not_in_background, "some policies are for admission only"),
        (_acts, "a scan only validates"),
    ),
    "apply": (
        (_has_host, "apply has no recorded answers and no cluster but its own resources"),
        (_is_about_other_requests, "apply has no old object"),
        (_has_cleanup, "apply tells what a cleanup policy would delete now, whatever its schedule"),
    ),
    "test": (
        (_is_about_other_requests, "a suite has no old object"),
        (_has_cleanup, "a suite judges cleanup apart"),
        (_is_unreadable, "a policy that does not decode ends a suite"),
        (_has_clock_or_registry, "a suite has no clock and no registry"),
    ),
}


def _answer(reviews: list[Review]) -> Answer:
    return [(said(review.results), effect_names(review.effects)) for review in reviews]


def _from_review(case: Case, request: Request) -> Request:
    """Write a request as the AdmissionReview of an API server and read it back."""
    return Request.from_admission_review(
        review_of(request, case.kinds),
        roles=case.user.roles,
        cluster_roles=case.user.cluster_roles,
        namespace_labels=request.namespace_labels,
        namespace_object=request.namespace_object,
    )


def _suite(case: Case, folder: Path) -> JSONObject:
    """Write the world of a case as the input files of a test suite."""
    suite: JSONObject = {
        "apiVersion": "cli.kyverno.io/v1alpha1",
        "kind": "Test",
        "metadata": {"name": "parity"},
        "policies": ["policy.yaml"],
        "results": [],
    }
    payloads = {"": "jsonPayloads", "HTTP": "httpPayloads", "Envoy": "envoyPayloads"}
    suite[payloads[case.check_mode] if case.is_payload else "resources"] = ["resource.yaml"]
    if case.has("params.yaml"):
        suite["paramResources"] = ["params.yaml"]
    for name, field in (("values", "variables"), ("user", "userinfo")):
        if case.has(f"{name}.yaml"):
            suite[field] = f"{name}.yaml"
    if case.has("exception.yaml"):
        suite["exceptions"] = ["exception.yaml"]
    objects = case.world.get("objects", [])
    cluster = folder / "cluster.yaml"
    document = {
        "apiVersion": "cli.kyverno.io/v1alpha1",
        "kind": "ClusterResource",
        "metadata": {"name": "cluster"},
        "spec": {"resources": objects, "crds": ["crds.yaml"] if case.has("crds.yaml") else []},
    }
    cluster.write_text(dump_yaml(document), encoding="utf-8")
    suite["clusterResources"] = [str(cluster)]
    namespaces = [each for each in objects if Resource(each).kind == "Namespace"]
    if namespaces and "variables" not in suite:
        suite["values"] = {
            "namespaceSelector": [
                {"name": Resource(each).name, "labels": dict(Resource(each).labels)} for each in namespaces
            ]
        }
    suite["apiCallResponses"] = [
        {
            "url": answer["target"],
            "method": answer.get("method", ""),
            "response": {"statusCode": answer.get("status", 200), "body": answer["body"]},
        }
        for answer in case.world.get("answers", [])
    ]
    suite["globalContextEntries"] = [
        {"name": name, "data": data} for name, data in case.world.get("globalEntries", {}).items()
    ]
    return suite
