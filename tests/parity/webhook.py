"""The webhook over HTTPS as a door, and `python -m tests.parity.webhook CORPUS`: every suite of a corpus through it.

A request is sent as an API server sends it: to every path that its policies have, the mutating ones first, each with
the object as the one before left it. The command reviews each manifest of each suite of `kyverno test` in the library,
the command line and the webhook, and fails when their results differ.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from pyverno.cli.test.find import find_suites
from pyverno.cli.test.suite import Suite, load_suite
from pyverno.compiler import compile_documents
from pyverno.engine.engine import Engine
from pyverno.engine.host import Host
from pyverno.engine.phases import MUTATING, VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import RuleResult, RuleType, Status
from pyverno.engine.rule import CompiledPolicy
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.patch.jsonpatch import apply_patch
from pyverno.kube.resource import Resource
from pyverno.offline.session import Session
from pyverno.offline.values import Values
from pyverno.webhook.policies import Policies
from pyverno.webhook.routes import CEL_ROUTES, Route, WebhookType, read_route
from tests.cases.snapshot import said
from tests.parity.reviews import review_of
from tests.parity.standingserver import standing_server
from tests.support.webhookserver import MemoryWorld

__all__ = ["Doors", "Said", "compare", "live_namespace", "load_suites", "main", "served", "suite_paths", "told"]

_PHASES = (*MUTATING, *VALIDATING)
_LEGACY = tuple(route for path in ("/mutate", "/validate") if (route := read_route(path)) is not None)
_OPERATIONS = (Operation.CREATE, Operation.UPDATE, Operation.DELETE)
_KINDS = frozenset(kind for route in (*_LEGACY, *CEL_ROUTES.values()) for kind in route.kinds)
_DOORS = ("library", "command line", "webhook")


@dataclass(frozen=True, slots=True)
class Said:
    """The answer of a door to one request: every result in order of its text, the verdict, and the final object."""

    results: tuple[tuple[str, str, str, str], ...]
    is_allowed: bool
    resource: JSON


def served(policies: Iterable[CompiledPolicy]) -> tuple[CompiledPolicy, ...]:
    """Return the policies that a webhook serves: all but the API server's own policies and those that delete."""
    return tuple(policy for policy in policies if policy.info.kind in _KINDS)


def live_namespace(request: Request) -> Request:
    """Return the same request with its namespace as an object, which is all that a webhook has of it."""
    if request.gvk.kind == "Namespace" and not request.gvk.group:
        labels = (request.subject.get("metadata") or {}).get("labels") or {}
        return replace(request, namespace_labels=labels, namespace_object=request.subject)
    if not request.namespace:
        return replace(request, namespace_labels=None, namespace_object=None)
    known = request.namespace_object or {"apiVersion": "v1", "kind": "Namespace", "metadata": {}}
    labels = dict(request.namespace_labels or {})
    metadata = {**known["metadata"], "name": request.namespace, "labels": labels}
    return replace(request, namespace_labels=labels, namespace_object={**known, "metadata": metadata})


class Doors:
    """Library and webhook before the same policies, made ready once for many questions.

    The requests have their namespace as an object (`live_namespace`).
    """

    phases = _PHASES

    def __init__(self, policies: PolicySet, host: Host, kinds: KindTable) -> None:
        """Take the policies of which a webhook has some, and the world that both doors ask."""
        self.policies = PolicySet(served(policies.policies), policies.exceptions)
        self._engine = Engine(self.policies, host)
        self._host = host
        self._kinds = kinds
        self._shared = Policies(self.policies)
        self._paths = tuple(f"{route.path}?timeout=30s" for route in _routes(self.policies.policies))

    def library(self, request: Request) -> Said:
        """Ask the engine itself, in one go."""
        review = self._engine.review(request, _PHASES)
        is_allowed = review.decision.allowed
        return Said(told(review.results), is_allowed, _compared(review.results, is_allowed, review.resource))

    def webhook(self, request: Request) -> Said:
        """Ask every path over HTTPS, as an API server would."""
        user = request.user
        world = MemoryWorld(
            policies=self._shared,
            kinds=self._kinds,
            namespaces={request.namespace: request.namespace_object} if request.namespace_object else {},
            roles={user.username: (user.roles, user.cluster_roles)},
        )
        server = standing_server()
        recorded = server.judge_by(world, self._host)
        is_allowed = True
        for path in self._paths:
            status, body = server.post(path, json.dumps(review_of(request, self._kinds)).encode())
            assert status == 200, (status, body)
            answer = json.loads(body)["response"]
            is_allowed = is_allowed and answer["allowed"]
            if answer.get("patch"):
                patched = apply_patch(request.object, json.loads(base64.b64decode(answer["patch"])))
                request = request.with_object(patched)
        assert len(recorded.answers) == len(self._paths), "a path was not judged"
        results = [result for _, judged in recorded.answers if judged.review for result in judged.review.results]
        return Said(told(results), is_allowed, _compared(results, is_allowed, request.object))


def _compared(results: Iterable[RuleResult], is_allowed: bool, resource: JSON) -> JSON:
    """Return the object to compare; None after a denial over images, whose path sends no changes along."""
    is_denied_over_images = not is_allowed and any(
        each.rule.type is RuleType.IMAGE_VERIFY and each.status in (Status.FAIL, Status.ERROR) for each in results
    )
    return None if is_denied_over_images else resource


def told(results: Iterable[RuleResult]) -> tuple[tuple[str, str, str, str], ...]:
    """Return policy, rule, status and message of every result, in order of their text."""
    return tuple(sorted(said(tuple(results))))


def _routes(policies: Sequence[CompiledPolicy]) -> Iterator[Route]:
    """Yield the paths that the webhook configurations would name, in the order of the phases."""
    kinds = {policy.info.kind for policy in policies}
    cel = [
        route.with_names(tuple(policy.info.name for policy in policies if policy.info.kind in route.kinds))
        for route in CEL_ROUTES.values()
        if route.kinds & kinds
    ]
    for door in (WebhookType.MUTATE, WebhookType.VALIDATE):
        yield from (route for route in (*_LEGACY, *cel) if route.webhook_type is door)


# ------------------------------------------------------------------------------------------------------- the command


def compare(suite: Suite, left_out: Counter[str] | None = None) -> Iterator[tuple[str, Said, Said, Said]]:
    """Yield every manifest and operation of a suite with the answers of library, command line and webhook.

    Requests that cannot be sent are counted in `left_out`, by reason.
    """
    left_out = Counter() if left_out is None else left_out
    found = suite.session
    left_out["payloads, which are no objects of an API server"] += len(suite.payloads) + len(suite.checks)
    for policy in found.policies:
        if policy.info.kind not in _KINDS:
            left_out[f"policies of kind {policy.info.kind}, for which no webhook is asked"] += 1
    doors = Doors(PolicySet(found.policies, found.exceptions), found.host, found.kinds)
    if not doors.policies.policies:
        left_out["suites without a policy that a webhook has"] += 1
        return
    by_row = {Operation(row.operation) for row in suite.test.results if row.operation}
    for manifest in suite.manifests:
        for operation in sorted(by_row or _OPERATIONS):
            asked = live_namespace(found.request(manifest, operation))
            if found.kinds.find(asked.gvk) is None:
                left_out["questions about a kind that the suite's cluster does not serve"] += 1
                continue
            yield (
                f"{operation} {Resource(manifest).kind} {asked.namespace}/{asked.name}",
                doors.library(asked),
                _ask_line(found, manifest, asked),
                doors.webhook(asked),
            )


def _ask_line(found: Session, manifest: JSONObject, asked: Request) -> Said:
    """Ask as the command line does, of policies that a webhook has and with a namespace that is an object.

    A values file that changes objects is not listened to in that: it gives each policy an object of its own, and an API
    server has one for all.
    """
    session = replace(
        found,
        policies=served(found.policies),
        namespaces=dict(found.namespaces),
        values=_of_one_object(found.values),
        _engines={},
    )
    if asked.namespace_object is not None and asked.gvk.kind != "Namespace":
        session.namespaces = {**session.namespaces, asked.namespace: asked.namespace_object}
    review = session.review(manifest, operation=asked.operation, phases=_PHASES)
    return Said(told(review.results), review.decision.allowed, review.resource)


def _of_one_object(values: Values) -> Values:
    """Return values without those that are parts of an object."""
    if not values.names_objects:
        return values
    policies = tuple(
        replace(policy, resources=tuple(replace(own, values=_no_objects(own.values)) for own in policy.resources))
        for policy in values.policies
    )
    return replace(values, global_values=_no_objects(values.global_values), policies=policies)


def _no_objects(values: Mapping[str, JSON]) -> dict[str, JSON]:
    return {
        name: value for name, value in values.items() if not name.startswith(("request.object.", "request.oldObject."))
    }


def suite_paths(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield id and path of every suite of a corpus."""
    for line in (root / "cli" / "manifest.jsonl").read_text().splitlines():
        record = json.loads(line)
        yield record["id"], root / "cli" / record["repo"] / record["path"]


def _enforced(suite: Suite) -> Suite:
    """Return the suite with all its policies set to deny, because most of a corpus only audits."""
    documents = [replace(item.document, value=_denying(item.document.value)) for item in suite.compilation.items]
    session = replace(suite.session, policies=compile_documents(documents).policies, _engines={})
    return replace(suite, session=session)


def _denying(body: JSONObject) -> JSONObject:
    spec = dict(body["spec"])
    if "validations" in spec and str(body["apiVersion"]).startswith("policies.kyverno.io/"):
        return {**body, "spec": {**spec, "validationActions": ["Deny"]}}
    if not str(body["apiVersion"]).startswith("kyverno.io/"):
        return body
    for field in ("validationFailureAction", "validationFailureActionOverrides"):
        spec.pop(field, None)
    enforce: JSONObject = {"failureAction": "Enforce", "failureActionOverrides": []}
    spec["rules"] = [
        {**rule, "validate": {**rule["validate"], **enforce}} if "validate" in rule else rule
        for rule in spec.get("rules") or ()
    ]
    return {**body, "spec": spec}


def load_suites(path: Path, left_out: Counter[str]) -> Iterator[Suite]:
    """Yield the suites of a file that load; the others end `pyverno test` with an error."""
    with ExitStack() as stack:
        for each in find_suites(str(path), path.name, "", stack):
            try:
                if each.test is not None:
                    yield load_suite(each.test, each.path.parent)
                else:
                    left_out["suites that cannot be read"] += 1
            except PyvernoError:
                left_out["suites that do not load"] += 1


def main(arguments: Sequence[str]) -> int:
    """Compare the suites of a corpus; return 1 when the doors differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.webhook")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth suite")
    parser.add_argument("--enforce", action="store_true", help="let every policy deny, so that verdicts are compared")
    options = parser.parse_args(arguments)
    suites = questions = differences = denied = 0
    left_out: Counter[str] = Counter()
    for name, path in list(suite_paths(options.corpus))[:: options.every]:
        for suite in load_suites(path, left_out):
            suites += 1
            for question, *answers in compare(_enforced(suite) if options.enforce else suite, left_out):
                questions += 1
                denied += not answers[0].is_allowed
                if any(answer != answers[0] for answer in answers):
                    differences += 1
                    _show(f"{name}: {question}", answers)
    print(f"{suites} suites, {questions} questions to {len(_DOORS)} doors: {', '.join(_DOORS)}")
    print(f"{standing_server().asked} requests over HTTPS, {denied} questions denied, {differences} differences")
    for reason, count in sorted(left_out.items()):
        if count:
            print(f"left out: {count} {reason}")
    return 1 if differences else 0


def _show(question: str, answers: Sequence[Said]) -> None:
    print(question)
    for door, answer in zip(_DOORS, answers, strict=True):
        others = {entry for other in answers for entry in other.results} - set(answer.results)
        only = [entry for entry in answer.results if any(entry not in other.results for other in answers)]
        object_ = "" if answer.resource == answers[0].resource else f" object={json.dumps(answer.resource)}"
        print(f"  {door}: allowed={answer.is_allowed} only={only} lacks={len(others)}{object_}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
