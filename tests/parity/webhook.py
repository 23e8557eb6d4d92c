"""The webhook over HTTPS as a door, and `python -m tests.parity.webhook CORPUS`: every suite of a corpus through it.

A question is put as an API server puts it: to every path that its policies have, the mutating ones first, each with
the object as the one before left it. The command asks each manifest of each suite of `kyverno test` in the library,
the command line and the webhook, and fails when one of them says something else.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import http.client
import json
import sys
import threading
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pyverno.cli.evaluate import Evaluation
from pyverno.cli.test_find import find_suites
from pyverno.cli.test_suite import Suite, load_suite
from pyverno.engine.engine import Engine, Review
from pyverno.engine.host import Host
from pyverno.engine.phases import MUTATING, VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request
from pyverno.engine.result import RuleResult
from pyverno.engine.rule import CompiledPolicy
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.jsonpatch import apply_patch
from pyverno.kube.kinds import KindTable
from pyverno.kube.resource import Resource
from pyverno.webhook.policies import Policies
from pyverno.webhook.routes import CEL_ROUTES, Door, Route, read_route
from tests.cases.snapshot import said
from tests.parity.reviews import review_of
from tests.unit.webhook.conftest import Certificate, MemoryWorld, Recorded, make_certificate, make_server

__all__ = ["Said", "ask_library", "ask_webhook", "compare", "live_namespace", "main", "served"]

_T = TypeVar("_T")
_PHASES = (*MUTATING, *VALIDATING)
_LEGACY = tuple(route for path in ("/mutate", "/validate") if (route := read_route(path)) is not None)
_OPERATIONS = (Operation.CREATE, Operation.UPDATE, Operation.DELETE)
_KINDS = frozenset(kind for route in (*_LEGACY, *CEL_ROUTES.values()) for kind in route.kinds)


@dataclass(frozen=True, slots=True)
class Said:
    """What a door says of one request: every result in order of its text, the verdict, the object as it was left."""

    results: tuple[tuple[str, str, str, str], ...]
    is_allowed: bool
    resource: JSON


def served(policies: Iterable[CompiledPolicy]) -> tuple[CompiledPolicy, ...]:
    """Return the policies that a webhook is asked for; the API server's own and those that delete are not."""
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


def ask_library(policies: PolicySet, host: Host, request: Request) -> Said:
    """Ask the engine itself, in one go."""
    review = Engine(PolicySet(served(policies.policies), policies.exceptions), host).review(request, _PHASES)
    return Said(_told(review.results), review.decision.allowed, review.resource)


def ask_webhook(policies: PolicySet, host: Host, kinds: KindTable, request: Request) -> Said:
    """Ask every path over HTTPS, as an API server would; `request` has its namespace as an object."""
    asked = served(policies.policies)
    user = request.user
    world = MemoryWorld(
        policies=Policies(PolicySet(asked, policies.exceptions)),
        kinds=kinds,
        namespaces={request.namespace: request.namespace_object} if request.namespace_object else {},
        roles={user.username: (user.roles, user.cluster_roles)},
    )
    recorded = Recorded()
    is_allowed = True
    with _connection(world, host, recorded) as connection:
        for route in _routes(asked):
            connection.request(
                "POST", f"{route.path}?timeout=30s", _encoded(request, kinds), {"Content-Type": "application/json"}
            )
            reply = connection.getresponse()
            body = reply.read()
            assert reply.status == 200, (reply.status, body)
            answer = json.loads(body)["response"]
            is_allowed = is_allowed and answer["allowed"]
            if answer.get("patch"):
                patched = apply_patch(request.object, json.loads(base64.b64decode(answer["patch"])))
                request = request.with_object(patched)
    results = [result for _, judged in recorded.answers if judged.review for result in judged.review.results]
    return Said(_told(results), is_allowed, request.object)


def _told(results: Iterable[RuleResult]) -> tuple[tuple[str, str, str, str], ...]:
    return tuple(sorted(said(tuple(results))))


def _encoded(request: Request, kinds: KindTable) -> bytes:
    return json.dumps(review_of(request, kinds)).encode()


def _routes(policies: Sequence[CompiledPolicy]) -> Iterator[Route]:
    """Yield the paths that the webhook configurations would name, in the order of the phases."""
    kinds = {policy.info.kind for policy in policies}
    cel = [
        route.with_names(tuple(policy.info.name for policy in policies if policy.info.kind in route.kinds))
        for route in CEL_ROUTES.values()
        if route.kinds & kinds
    ]
    for route in (*_LEGACY, *cel):
        if route.door is Door.MUTATE:
            yield route
    for route in (*_LEGACY, *cel):
        if route.door is Door.VALIDATE:
            yield route


@cache
def _certificate() -> Certificate:
    return make_certificate()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="webhook").start()
    return loop


def _run(work: Coroutine[Any, Any, _T]) -> _T:
    return asyncio.run_coroutine_threadsafe(work, _loop()).result(60)


@contextmanager
def _connection(world: MemoryWorld, host: Host, observer: Recorded) -> Iterator[http.client.HTTPSConnection]:
    server = make_server(_certificate(), world=world, host=host, observer=observer)
    _run(server.start("127.0.0.1", 0))
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=_certificate().client_context())
    try:
        yield connection
    finally:
        connection.close()
        _run(server.stop())


# ------------------------------------------------------------------------------------------------------- the command


def compare(suite: Suite) -> Iterator[tuple[str, Said, Said, Said]]:
    """Yield every manifest and operation of a suite with what library, command line and webhook say of it."""
    evaluation = suite.evaluation
    policies = PolicySet(evaluation.policies, evaluation.exceptions)
    by_row = {Operation(row.operation) for row in suite.test.results if row.operation}
    for manifest in suite.manifests:
        for operation in sorted(by_row or _OPERATIONS):
            asked = live_namespace(evaluation.request(manifest, operation))
            if _is_unaskable(asked, evaluation.kinds):
                continue
            names = f"{operation} {Resource(manifest).kind} {asked.namespace}/{asked.name}"
            library = ask_library(policies, evaluation.host, asked)
            yield (
                names,
                library,
                _ask_line(suite, manifest, asked),
                ask_webhook(policies, evaluation.host, evaluation.kinds, asked),
            )


def _ask_line(suite: Suite, manifest: JSONObject, asked: Request) -> Said:
    """Ask as the command line does, of policies that a webhook has and with a namespace that is an object."""
    evaluation = _evaluation_of(suite)
    if asked.namespace_object is not None and asked.gvk.kind != "Namespace":
        evaluation.namespaces = {**evaluation.namespaces, asked.namespace: asked.namespace_object}
    review: Review = evaluation.review(manifest, operation=asked.operation, phases=_PHASES)
    return Said(_told(review.results), review.decision.allowed, review.resource)


def _evaluation_of(suite: Suite) -> Evaluation:
    """Return the suite's evaluation with the policies that a webhook has."""
    found = suite.evaluation
    return Evaluation(
        policies=served(found.policies),
        host=found.host,
        exceptions=found.exceptions,
        values=found.values,
        user=found.user,
        kinds=found.kinds,
        namespaces=dict(found.namespaces),
    )


def _is_unaskable(request: Request, kinds: KindTable) -> bool:
    """Tell whether no API server could ask this: an object without a name or of a kind that nobody serves."""
    return kinds.find(request.gvk) is None


def _suites(root: Path) -> Iterator[tuple[str, Path]]:
    for line in (root / "cli" / "manifest.jsonl").read_text().splitlines():
        record = json.loads(line)
        yield record["id"], root / "cli" / record["repo"] / record["path"]


def main(arguments: Sequence[str]) -> int:
    """Compare the suites of a corpus; return 1 when the doors differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.webhook")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth suite")
    options = parser.parse_args(arguments)
    suites = questions = differences = 0
    left_out: dict[str, int] = {}
    for name, path in list(_suites(options.corpus))[:: options.every]:
        with ExitStack() as stack:
            found = find_suites(str(path), path.name, "", stack)
            for each in found:
                if each.test is None:
                    continue
                try:
                    suite = load_suite(each.test, each.path.parent)
                except PyvernoError as error:
                    left_out[type(error).__name__] = left_out.get(type(error).__name__, 0) + 1
                    continue
                suites += 1
                for question, *answers in compare(suite):
                    questions += 1
                    if any(answer != answers[0] for answer in answers):
                        differences += 1
                        _show(f"{name}: {question}", answers)
    print(f"{suites} suites, {questions} questions, {differences} differences; left out: {left_out or 'none'}")
    return 1 if differences else 0


def _show(question: str, answers: Sequence[Said]) -> None:
    print(question)
    for door, answer in zip(("library", "command line", "webhook"), answers, strict=True):
        others = {entry for other in answers for entry in other.results} - set(answer.results)
        only = [entry for entry in answer.results if any(entry not in other.results for other in answers)]
        print(f"  {door}: allowed={answer.is_allowed} only={only} lacks={len(others)}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
