"""F4, I11 at the webhook: a bug outside of the engine never takes a denial back, and never ends what others need.

Every function of the webhook, of the admission controller and of telemetry that a request reaches, or that works after
its answer, fails once and always. A bug before the policies are asked is an HTTP error, which the failurePolicy of the
path judges; from their answer on, the verdict stands.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.engine.engine import Engine, Review
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.telemetry.explanationlog import ExplanationLog
from pyverno.telemetry.logs import AnswerLog
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.observer import Observers
from pyverno.telemetry.payloadlog import PayloadLog
from pyverno.telemetry.recording import Recorder, RecordingFiles
from pyverno.telemetry.redaction import Redaction
from pyverno.testing import PolicySandbox
from tests.security.faultsites import Sites, modules_of, sampled
from tests.support.webhookserver import review_body

ROOMS = (
    *("pyverno.webhook", "pyverno.telemetry", "pyverno.kube.admissionreview", "pyverno.controllers.admission"),
    *("pyverno.controllers.runtime", "pyverno.controllers.state"),
)
FRAME = {
    "pyverno.webhook.server.WebhookServer._closing": "returns the answer",
    "pyverno.webhook.server._write": "holds the verdict of an answer that cannot be written",
    "pyverno.webhook.turns.Turns.take": "adds two numbers",
    "pyverno.webhook.workers.Workers._end": "gives the answer to the request, before anything else",
    "pyverno.telemetry.observer._call_guarded": "contains the faults of observers",
}
"""What stands between a verdict and the API server without a net, and why that is enough."""

CONFIG_MAPS = GVR("", "v1", "configmaps")
EVENTS = GVR("events.k8s.io", "v1", "events")
POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
CEL_POLICIES = GVR("policies.kyverno.io", "v1", "validatingpolicies")
NAMESPACES = GVR("", "v1", "namespaces")
_SECONDS = 30.0


class OddError(KeyError):
    """An exception of a type that the code does not know; its text is a value."""

    def __init__(self) -> None:
        super().__init__("canary-5c1e")


def policy(name: str, rule: JSONObject, **spec: str) -> JSONObject:
    """Return a ClusterPolicy of one rule about ConfigMaps."""
    match = {"any": [{"resources": {"kinds": ["ConfigMap"], "namespaces": ["team"]}}]}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {"background": False, **spec, "rules": [{"name": "rule", "match": match, **rule}]},
    }


def denying(action: str, key: str = "{{ request.object.data.a }}") -> JSONObject:
    """Return a rule about bad data."""
    condition = {"key": key, "operator": "Equals", "value": "bad"}
    message = "no {{ request.object.metadata.name }}"
    return {"validate": {"failureAction": action, "message": message, "deny": {"conditions": {"any": [condition]}}}}


READING = [{"name": "found", "configMap": {"name": "settings", "namespace": "team"}}]
POLICY_BODIES = (
    policy("deny-ignore", denying("Enforce"), failurePolicy="Ignore"),
    policy("deny-fail", denying("Enforce"), failurePolicy="Fail"),
    policy("audit", {"context": READING, **denying("Audit", "{{ found.data.a }}")}),
    policy("change", {"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}}, failurePolicy="Ignore"),
    policy(
        "make",
        {
            "generate": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "made",
                "namespace": "elsewhere",
                "data": {"data": {}},
            }
        },
    ),
    {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "cel"},
        "spec": {
            "failurePolicy": "Ignore",
            "validationActions": ["Deny"],
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
                ]
            },
            "validations": [{"expression": "object.data.a != 'bad'", "message": "no bad data"}],
        },
    },
)


def config_map(data: str) -> JSONObject:
    """Return the object of most requests."""
    metadata = {"name": "c", "namespace": "team"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": data}}


QUESTIONS: dict[str, tuple[str, JSONObject]] = {
    "denied where errors are ignored": ("/validate/ignore", config_map("bad")),
    "denied": ("/validate/fail", config_map("bad")),
    "admitted, with work to do": ("/validate/fail", config_map("good")),
    "changed": ("/mutate/ignore", config_map("good")),
    "denied in CEL": ("/vpol/cel", config_map("bad")),
    "an invalid policy": ("/policyvalidate", policy("bad", {"validate": {"pattern": {"(": 1}}})),
    "a policy": ("/policyvalidate", policy("good", denying("Audit"))),
    "a time to live": (
        "/verifyttl",
        {**config_map("x"), "metadata": {"name": "c", "namespace": "team", "labels": {"cleanup.kyverno.io/ttl": "x"}}},
    ),
    "an exception": (
        "/exceptionvalidate",
        {
            "apiVersion": "kyverno.io/v2",
            "kind": "PolicyException",
            "metadata": {"name": "e", "namespace": "team"},
            "spec": {"exceptions": [], "match": {}},
        },
    ),
    "a global context entry": (
        "/globalcontextvalidate",
        {"apiVersion": "kyverno.io/v2alpha1", "kind": "GlobalContextEntry", "metadata": {"name": "g"}, "spec": {}},
    ),
    "a cleanup policy": (
        "/cleanuppolicyvalidate",
        {
            "apiVersion": "kyverno.io/v2",
            "kind": "CleanupPolicy",
            "metadata": {"name": "c", "namespace": "team"},
            "spec": {"schedule": "no", "match": {}},
        },
    ),
}


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    body: bytes

    @property
    def verdict(self) -> bool | None:
        """Whether the request is allowed, None for an HTTP error."""
        allowed: bool | None = json.loads(self.body)["response"]["allowed"] if self.status == 200 else None
        return allowed


class Stage:
    """A cluster with a webhook: asks it, and knows whether everything behind it still works."""

    def __init__(self, sandbox: PolicySandbox, client: Client, session: aiohttp.ClientSession, sites: Sites) -> None:
        self.sandbox = sandbox
        self.client = client
        self.sites = sites
        self._session = session
        assert sandbox.controller._server is not None
        self._port = sandbox.controller._server.port

    async def ask(self, question: str) -> Answer:
        """Send one request."""
        path, body = QUESTIONS[question]
        url = f"https://127.0.0.1:{self._port}{path}?timeout=20s"
        try:
            async with self._session.post(url, json=review_body(body)) as reply:
                return Answer(reply.status, await reply.read())
        except aiohttp.ClientError:
            return Answer(0, b"")

    @property
    def is_idle(self) -> bool:
        """Whether all work after answers is done; this looks without calling a site that fails."""
        armed, self.sites.armed = self.sites.armed, ""
        try:
            controller = self.sandbox.controller
            return controller.is_idle and controller._foundation.events._waiting.empty()
        finally:
            self.sites.armed = armed

    async def rest(self) -> None:
        """Wait until the work after the answers is done."""
        await asyncio.sleep(0.002)
        async with asyncio.timeout(_SECONDS):
            while not self.is_idle and not self.end:
                await asyncio.sleep(0.002)

    @property
    def end(self) -> str:
        """Why the controller ended, "" while it runs."""
        running = self.sandbox._running
        assert running is not None
        return repr(running.exception()) if running.done() else ""


@asynccontextmanager
async def stage(sites: Sites, folder: Path) -> AsyncIterator[Stage]:
    """Run a cluster with all observers that a flag can add."""
    observers = Observers(
        Metrics(),
        AnswerLog(),
        PayloadLog(payloads=True, patches=True),
        ExplanationLog(["*"]),
        Recorder(RecordingFiles(folder / "recorded", size=10**7, files=10), Redaction([])),
    )
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    sandbox = PolicySandbox(Sandbox(Settings(kubelet=False)), observers)
    async with (
        sandbox,
        Client(load_kubeconfig(sandbox.sandbox.kubeconfig), qps=0) as client,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
    ):
        for name in ("team", "elsewhere"):
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        settings = config_map("x")
        await client.create(CONFIG_MAPS, {**settings, "metadata": {"name": "settings", "namespace": "team"}}, "team")
        for body in POLICY_BODIES:
            await client.create(CEL_POLICIES if body["kind"] == "ValidatingPolicy" else POLICIES, body)
        await sandbox.settle()
        yield Stage(sandbox, client, session, sites)


class Moment:
    """Notes whether the policies had been asked when a site failed."""

    def __init__(self) -> None:
        self.is_judged = False
        self.was_judged: bool | None = None

    def error(self) -> BaseException:
        """Return what a site raises."""
        if self.was_judged is None:
            self.was_judged = self.is_judged
        return OddError()


@contextmanager
def noting(moment: Moment) -> Iterator[None]:
    """Let `moment` know of every review."""
    review = Engine.review

    def noted(self: Engine, *args: object, **kwargs: object) -> Review:
        found = review(self, *args, **kwargs)  # type: ignore[arg-type]
        moment.is_judged = True
        return found

    Engine.review = noted  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Engine.review = review  # type: ignore[method-assign]


def problem_of(usual: Answer, answer: Answer, moment: Moment, site: str) -> str:
    """Return how a bug changed an answer that stood already, "" when it did not."""
    if b"canary" in answer.body:
        return "it shows a value"
    if answer == usual:
        return ""
    if answer.verdict is not None and answer.verdict is not usual.verdict:
        if site.startswith("pyverno.webhook.nonblocking.NonblockingHost."):
            return ""  # of a host without an answer every rule is an error, which its failurePolicy judges
        return f"allowed is {answer.verdict}, and not {usual.verdict}"
    if b'"patch"' in usual.body:
        if answer.verdict and b'"patch"' not in answer.body:
            return "it allows the object without its change"
        if site.startswith("pyverno.kube.") and answer.status == 500:
            return ""  # half a change is none
    if answer.verdict is None and moment.was_judged and site not in FRAME:
        return f"HTTP {answer.status} after the policies were asked"
    if answer.verdict is None and answer.status < 500:
        return f"HTTP {answer.status}"
    return ""


async def _throw(stage: Stage, sites: Sites, moment: Moment) -> tuple[dict[str, str], int, set[str]]:
    problems: dict[str, str] = {}
    count, reached = 0, set()
    for question in QUESTIONS:
        await stage.ask(question)
        await stage.rest()
        sites.calls, sites.is_counting = {}, True
        usual = await stage.ask(question)
        await stage.rest()
        sites.is_counting = False
        if usual.status != 200:
            return {**problems, question: f"HTTP {usual.status} {stage.end}"}, count, reached
        reached |= sites.calls.keys()
        for site in sampled(sites.calls, 30):
            for always in (False, True):
                moment.is_judged, moment.was_judged = False, None
                sites.arm(site, moment.error, always=always)
                answer = await stage.ask(question)
                await stage.rest()
                sites.disarm()
                count += sites.thrown
                place = f"{question}: {site}"
                if stage.end:
                    return {**problems, place: f"the controller ended: {stage.end}"}, count, reached
                if problem := problem_of(usual, answer, moment, site):
                    problems[place] = problem
        if usual != await stage.ask(question):
            problems[question] = "it does not answer as before"
        await stage.rest()
    return problems, count, reached


async def _events(stage: Stage) -> int:
    return len((await stage.client.list(EVENTS))["items"])


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], int, set[str], int]:
    """Throw at every site; return the problems, how often was thrown, the sites, and the events of one more denial."""
    sites, moment = Sites(modules=lambda: modules_of(*ROOMS), owners=(), accepts=_is_site), Moment()

    async def act() -> tuple[dict[str, str], int, set[str], int]:
        async with stage(sites, tmp_path_factory.mktemp("webhook")) as found:
            thrown = await _throw(found, sites, moment)
            if found.end:
                return *thrown, 0
            before = await _events(found)
            await found.ask("denied")
            await found.rest()
            await asyncio.sleep(0.05)
            return *thrown, await _events(found) - before

    logging.disable(logging.CRITICAL)
    try:
        with noting(moment), sites.installed():
            return asyncio.run(act())
    finally:
        logging.disable(logging.NOTSET)


def _is_site(site: str) -> bool:
    return not site.startswith(("pyverno.value.", "pyverno.lazyregex.", "pyverno.engine."))


def test_no_bug_of_a_door_takes_an_answer_back(outcome: tuple[dict[str, str], int, set[str], int]) -> None:
    """A denial stays one; what follows an answer neither changes nor loses it, and ends no controller."""
    problems, thrown, _, _ = outcome
    assert {} == problems
    assert thrown >= 300


def test_every_room_is_reached(outcome: tuple[dict[str, str], int, set[str], int]) -> None:
    """Server, follow-up work, events and every observer are among the sites, and the frame is no longer than said."""
    _, _, reached, _ = outcome
    words = ("Events", "Outbox", "UpdateRequestWriter", "AdmissionReports", "AuditPass", "Metrics", "PayloadLog")
    missing = [
        word
        for word in (*words, "Recorder", "AnswerLog", "Observers")
        if not any(f".{word}." in site for site in reached)
    ]
    assert [] == missing
    assert [] == sorted(FRAME.keys() - reached)


def test_work_after_answers_goes_on(outcome: tuple[dict[str, str], int, set[str], int]) -> None:
    """After all these bugs a denial has its event."""
    assert outcome[3] >= 1
