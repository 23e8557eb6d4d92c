"""`python -m tests.bench.serving KIND`: a server of reviews in a process of its own, which prints its resource usage.

`full` is the webhook as it runs in a cluster: all policies, roles, filters, metrics and logs. `constant` reads the
review as JSON and always allows, `echo` sends the body back; all three on the same HTTP server with the same TLS.
With `--api` the server also writes events, and with `--reports` reports, to the API server at that address; `constant`
then writes the same report after each of its answers.
Prints its port and certificate as JSON; then each line on stdin is answered by the processor time, the resident memory
and, with `--pauses`, the longest pause for garbage collection, in seconds of the processor, since the line before. This
module must never judge these figures.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import ssl
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import orjson
from aiohttp import web

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.controllers.admission.reports import AdmissionReports, ReportSettings
from pyverno.controllers.runtime.events import Events, EventSettings
from pyverno.controllers.runtime.gctuning import keep_collections_short
from pyverno.controllers.runtime.mallocarenas import limit_arenas
from pyverno.controllers.runtime.metricslifecycle import count_queries
from pyverno.controllers.runtime.process import loop_factory
from pyverno.controllers.state.policystore import PolicyStore
from pyverno.controllers.state.roles import RoleIndex
from pyverno.engine.engine import Engine
from pyverno.engine.host import NO_HOST
from pyverno.engine.phases import VALIDATING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request, User
from pyverno.engine.result import ResourceRef
from pyverno.engine.rule import CompiledPolicy
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS, KindInfo, KindTable
from pyverno.report.ephemeral import EPHEMERAL_REPORTS, Reported, admission_report
from pyverno.telemetry.logs import AnswerLog, LogSettings, set_up_logging
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.observer import Observers
from pyverno.webhook.configuration import Configuration
from pyverno.webhook.policies import Policies
from pyverno.webhook.server import WebhookServer
from pyverno.webhook.tls import ServerTls
from tests.bench.inputs import (
    compiled_cel_policies,
    compiled_policies,
    enforced_policies,
    generated_documents,
    small_review,
)
from tests.support.recordkeys import SEALS
from tests.support.webhookserver import make_certificate

__all__ = ["PATH"]

PATH: Final = "/validate/fail?timeout=10s"
_SETTINGS: Final = {
    "resourceFilters": "[Event,*,*] [*/*,kube-system,*] [*/*,kube-public,*] [*/*,kube-node-lease,*] [Node,*,*] "
    "[Node/?*,*,*] [APIService,*,*] [TokenReview,*,*] [SubjectAccessReview,*,*] [ReplicaSet,*,*] [*,kyverno,*]",
    "excludeGroups": "system:nodes",
}
_BINDINGS: Final = 200
_ROOM: Final = 100_000
_WRITERS: Final = 4
_TASKS: Final[list[asyncio.Future[None]]] = []
_WITH_REPORTS: Final = BUILTIN_KINDS.with_kinds(
    KindInfo(gvr.group, gvr.version, kind, gvr.resource, gvr.resource.removesuffix("s"))
    for kind, gvr in zip(("EphemeralReport", "ClusterEphemeralReport"), EPHEMERAL_REPORTS, strict=True)
)


class _World:
    """A cluster of some size, as the watches would have brought it."""

    own_namespace = "kyverno"
    protects_managed = True

    def __init__(self, policies: Policies) -> None:
        self.policies = policies
        self.configuration = Configuration.read(_SETTINGS)
        self.kinds: KindTable = BUILTIN_KINDS
        self._roles = RoleIndex()
        for number in range(_BINDINGS):
            self._roles.put(_binding(number))
        self._namespace = orjson.dumps({"metadata": {"name": "team-00", "labels": {"team": "00", "env": "prod"}}})

    def namespace(self, name: str) -> JSONObject | None:
        found: JSONObject = orjson.loads(self._namespace)
        return found

    def roles_of(self, user: User, namespace: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self._roles.roles_of(user, namespace)


def _binding(number: int) -> JSONObject:
    subject = {"kind": "ServiceAccount", "namespace": "kube-system", "name": f"controller-{number}"}
    group = {"kind": "Group", "name": "system:serviceaccounts" if number % 20 == 0 else f"group-{number}"}
    return {
        "metadata": {"name": f"binding-{number}", "namespace": f"team-{number % 20:02d}"},
        "roleRef": {"kind": "ClusterRole", "name": f"role-{number}"},
        "subjects": [subject, group],
    }


class _Sound:
    def problem(self) -> str:
        return ""


async def _full(tls: ServerTls, policies: Policies) -> int:
    observer = Observers(Metrics(), AnswerLog())
    server = WebhookServer(cluster=_World(policies), host=NO_HOST, tls=tls, health=_Sound(), observer=observer)
    await server.start("127.0.0.1", 0)
    return server.port


class _Followup:
    """The work after an answer in a cluster: events and reports, without limits of requests a second."""

    def __init__(self, api: str, certificate: bytes, world: _World, *, reports: bool) -> None:
        self.metrics = Metrics()
        count = count_queries(self.metrics)
        events_client, client = (Client(Access(api, ca=certificate), qps=0, on_request=count) for _ in range(2))
        self.events = Events(
            events_client,
            EventSettings(max_waiting=_ROOM),
            configuration=lambda: world.configuration,
            uid_of=lambda _: "2b1f1c3e-3a4f-4b77-9d6e-1d0c3f1a9b22",
        )
        self.reports = AdmissionReports(
            client,
            ReportSettings(of_admission=reports, max_waiting=_ROOM),
            kinds=lambda: _WITH_REPORTS,
            version_of=lambda _: "17",
            seals=SEALS,
            metrics=self.metrics,
        )

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.events.run())
            group.create_task(self.reports.run())


async def _in_cluster(tls: ServerTls, policies: Policies, options: argparse.Namespace) -> int:
    world = _World(policies)
    followup = _Followup(options.api, os.environ["API_CERTIFICATE"].encode(), world, reports=options.reports)
    _TASKS.append(asyncio.ensure_future(followup.run()))
    observer = Observers(Observers(followup.metrics, AnswerLog()), followup.events, followup.reports)
    server = WebhookServer(cluster=world, host=NO_HOST, tls=tls, health=_Sound(), observer=observer, defers=True)
    await server.start("127.0.0.1", 0)
    return server.port


async def _bare(tls: ServerTls, answer: Callable[[bytes], bytes]) -> int:
    async def respond(request: web.BaseRequest) -> web.Response:
        return web.Response(body=answer(await request.read()), content_type="application/json")

    runner = web.ServerRunner(web.Server(respond, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls.listening).start()
    port: int = runner.addresses[0][1]
    return port


def _allow(body: bytes) -> bytes:
    request = orjson.loads(body)["request"]
    answer = {"uid": request["uid"], "allowed": True}
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": answer})


def _same(body: bytes) -> bytes:
    return body


def _watched(count: int) -> Policies:
    """Return generated policies as a cluster's watch brings them: the store also keeps what was written."""
    store = PolicyStore()
    for document in generated_documents(count):
        store.put(orjson.loads(orjson.dumps(document.value)))
    return store.policies


class _ConstantReports:
    """Writes one and the same report after each answer, over bare connections as many as there are writers."""

    def __init__(self, api: str, certificate: bytes) -> None:
        address = urlsplit(api)
        body = orjson.dumps(_constant_report())
        path = f"/apis/{EPHEMERAL_REPORTS[0].group}/v1/namespaces/team-00/{EPHEMERAL_REPORTS[0].resource}"
        head = f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
        self._message = head.encode() + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        self._address = address.hostname, address.port
        self._context = ssl.create_default_context(cadata=certificate.decode())
        self._waiting: asyncio.Queue[None] = asyncio.Queue()

    def allow(self, body: bytes) -> bytes:
        """Answer, and have a report written."""
        self._waiting.put_nowait(None)
        return _allow(body)

    async def write(self) -> None:
        """Write one report after the other until cancelled."""
        reader, writer = await asyncio.open_connection(*self._address, ssl=self._context)
        while True:
            await self._waiting.get()
            writer.write(self._message)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]))


def _constant_report() -> JSONObject:
    """Return the report on the pod that passes."""
    pod = orjson.loads(small_review())["request"]["object"]
    review = Engine(PolicySet(compiled_policies()), NO_HOST).review(Request.from_live(pod), VALIDATING)
    gvr = GVR("", "v1", "pods")
    about = Reported(ResourceRef.of(pod), str(uuid.uuid4()), GVK("", "v1", "Pod"), gvr, str(uuid.uuid4()))
    return admission_report(about, review.results, int(time.time()), version_of=lambda _: "17")


_BARE: Final = {"constant": _allow, "echo": _same}


def _compiled(options: argparse.Namespace) -> tuple[CompiledPolicy, ...]:
    if options.cel:
        return compiled_cel_policies("Deny" if options.enforce else "Audit")
    return enforced_policies() if options.enforce else compiled_policies()


async def _run(options: argparse.Namespace) -> None:
    limit_arenas()
    certificate = make_certificate()
    tls = ServerTls(certificate.certificate, certificate.key)
    start: Awaitable[int]
    if options.kind == "constant" and options.reports:
        reports = _ConstantReports(options.api, os.environ["API_CERTIFICATE"].encode())
        _TASKS.extend(asyncio.ensure_future(reports.write()) for _ in range(_WRITERS))
        start = _bare(tls, reports.allow)
    elif options.kind != "full":
        start = _bare(tls, _BARE[options.kind])
    elif options.api:
        start = _in_cluster(tls, Policies(PolicySet(_compiled(options))), options)
    else:
        policies = options.policies
        start = _full(tls, _watched(policies) if policies else Policies(PolicySet(compiled_policies())))
    rounds = asyncio.ensure_future(keep_collections_short())
    print(json.dumps({"port": await start, "certificate": certificate.certificate.decode()}), flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    pauses = _Pauses()
    if options.pauses:
        # a switch of threads inside of the callback, which is Python code, would make the next collection larger
        sys.setswitchinterval(1.0)
        gc.callbacks.append(pauses)
    while await reader.readline():
        # os.times() counts in steps of 10 ms: a tenth of what the constant answers of one round take
        told = {"seconds": time.process_time(), "bytes": _resident(), "pause": pauses.longest}
        print(json.dumps(told), flush=True)
        pauses.longest = 0.0
    rounds.cancel()


class _Pauses:
    """Notes the longest collection of garbage, in seconds of the processor.

    It is how long no other thread runs. Elapsed time would count the time without the core, and that of the threads
    that run before the callback ends.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self._began = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            self.longest = max(self.longest, time.thread_time() - self._began)


def _resident() -> int:
    """Return the bytes in memory now; 0 where the system does not report them."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("full", *_BARE))
    parser.add_argument("--policies", type=int, default=0, help="so many generated ones instead of the library's")
    parser.add_argument("--api", default="", help="address of an API server, whose certificate is in API_CERTIFICATE")
    parser.add_argument("--reports", action="store_true", help="also write reports")
    parser.add_argument("--pauses", action="store_true", help="note the longest pause for garbage collection")
    parser.add_argument("--cel", action="store_true", help="ValidatingPolicies instead of ClusterPolicies")
    parser.add_argument("--enforce", action="store_true", help="policies that deny what fails")
    options = parser.parse_args()
    set_up_logging(LogSettings("json"))
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_run(options))
