"""Readers of what peers, users and files send, under the doubling law.

Answers of registries and API servers, tokens, certificates, recorded requests, metrics, and the files of the command
line. Functions of `kube`, `lang` and `report` have their rows elsewhere.
"""

# ruff: noqa: E501 - tables with a row each
from __future__ import annotations

import base64
import inspect
import json
import pkgutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from pyverno.cli.impact.recorded import read_recordings
from pyverno.controllers.background.work import read_request
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.offline.clifiles import read_cluster_resource, read_context, read_user_info, read_values
from pyverno.offline.testfile import read_test_file
from pyverno.registry.credentials import read_pull_secret
from pyverno.telemetry.exposition import render_text
from pyverno.telemetry.instruments import Reading
from pyverno.telemetry.snapshots import combined, packed, unpacked
from pyverno.ui.access.idtokens import check_id_token
from pyverno.ui.authoring.outline import read_outline
from pyverno.ui.notifications.filters import read_notice_filter
from pyverno.ui.store.filters import read_filter
from tests.property.growth import Shape, Subject
from tests.property.growth_inputs import text, text_names, value_shapes
from tests.property.growth_kube import call

__all__ = ["DOOR_EXEMPT", "door_readers", "door_subjects"]

_TEXTS: Final = (
    "cli.cel.environment.parse_kubernetes_version", "cli.migrate.comments.read_comments", "cli.test.options.parse_selector",
    "cluster.queries.client_query", "controllers.cleanup.schedule.read_time", "cluster.serviceurl.parse_service_url", "lang.regex.compiler.compile_re2", "lang.cel.gourl.parse_url",
    "lang.cel.regex.check_pattern", "lang.x509.certificate.decode", "lang.jmespath.parser.parse", "offline.git.clone.is_git_url", "offline.git.clone.parse_git_url",
    "offline.manifests.is_web_address", "registry.challenge.parse_challenges", "telemetry.metricsettings.read_buckets",
    "telemetry.metricsettings.read_exposures", "telemetry.metricsettings.read_namespaces", "telemetry.redaction.parse_field",
    "ui.access.oidc.check_address", "ui.notifications.notice.clip", "ui.notifications.targets.lines.one_line",
    "telemetry.metricsettings.read_interval", "ui.notifications.transport.read_url", "ui.playground.compiled.read_documents",
    "ui.playground.importing.import_text", "ui.playground.lzstring.decompress", "ui.store.filters.quote_pattern",
    "webhook.filters.read_resource_filters", "webhook.filters.read_user_list", "webhook.routes.read_route",
)  # fmt: skip
_BYTES: Final = (
    "cluster.answers.reading.decode_answer", "offline.folders.may_be_manifest", "offline.rewriting.decode_lines",
    "registry.credentials.read_docker_config", "registry.documents.read_document", "registry.documents.read_object",
)  # fmt: skip
_VALUES: Final = ("cluster.informer.slim", "telemetry.payloadlog.redacted")
DOOR_EXEMPT: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "cli.apply.flags.read_plain_words", "cli.args.flags.parse_fast", "cli.config.revision.read_at", "cli.config.settings.read_settings",
            "cli.controller.services.read_words", "cli.registries.read_registry_access", "cli.registries.read_root_file",
            "cli.report.replacements.read_replacements", "cli.report.sources.read_cluster", "cli.report.sources.read_files",
            "cli.ui.notifications.read_settings", "ui.access.proxy.read_networks", "ui.notifications.settings.read_notifications",
            "ui.server.logo.read_logo", "ui.server.metrics.read_address", "ui.server.metrics.read_labels", "ui.views.read_views",
        ),
        "what who starts the process writes: flags and settings",
    ),
    **dict.fromkeys(
        (
            "cluster.answers.pages.read_pages", "cluster.answers.reading.read_lines", "offline.files.read_file",
            "offline.files.read_stdin", "ui.playground.examples.read_scenario", "ui.store.objects.read_object", "ui.store.rows.read_row",
        ),
        "copies bytes, or one row of a table",
    ),
    "offline.clifiles.decode_file": "a part of the readers of files",
    "offline.resources.read_objects": "expands lists: `kube.yaml.documents.expand_lists`",
    "ui.playground.explaining.read_change_wanted": "reads three fields",
    "ui.server.bodies.read_object": "orjson reads a body, whose size the server bounds",
}  # fmt: skip
"""Readers without a row of their own, and why."""

_BEFORE: Final[Mapping[str, tuple[Any, ...]]] = {
    "cluster.answers.reading.decode_answer": ("GET", "/api", 500),
    "cluster.queries.client_query": ("GET",),
    "ui.notifications.transport.read_url": ("it",),
}
_AFTER: Final[Mapping[str, tuple[Any, ...]]] = {
    "registry.credentials.read_docker_config": ("it",),
    "registry.documents.read_document": ("it",),
    "registry.documents.read_object": ("it",),
    "ui.playground.compiled.read_documents": ("it",),
}


def door_subjects() -> Iterator[Subject]:
    """Yield all rows."""
    for name in (*_TEXTS, *_BYTES):
        # addresses and headers: beyond, the memory of a processor decides
        yield Subject(
            name, {each: _reads(name, each, is_text=name in _TEXTS) for each in text_names()}, largest=1 << 17
        )
    for name in _VALUES:
        module, _, attribute = name.rpartition(".")
        function = getattr(import_module(f"pyverno.{module}"), attribute)
        yield Subject(
            name,
            {each: lambda size, f=function, make=make: call(f, {"data": make(size)}) for each, make in value_shapes("any")},
        )  # fmt: skip
    for name, shapes in {**_FILES, **_TOKENS, **_METRICS, **_OTHERS}.items():
        yield Subject(name, shapes)


def _reads(name: str, each: str, *, is_text: bool) -> Shape:
    module, _, attribute = name.rpartition(".")
    function = getattr(import_module(f"pyverno.{module}"), attribute)
    before, after = _BEFORE.get(name, ()), _AFTER.get(name, ())

    def shape(size: int) -> Any:
        found = text(each, size)
        return call(function, *before, found if is_text else found.encode("utf-8", "surrogatepass"), *after)

    return shape


# ------------------------------------------------------------------------------------------ files of the command line


@cache
def _sample() -> Document:
    (document,) = load_documents("a: b")
    return document


def _file(read: Callable[[Document], object], kind: str, **fields: Callable[[int], JSON]) -> Mapping[str, Shape]:
    """Return a shape for each field of a document that grows."""
    header = {"apiVersion": "cli.kyverno.io/v1alpha1", "kind": kind, "metadata": {"name": "a"}}

    def shape(name: str, make: Callable[[int], JSON]) -> Shape:
        return lambda size: call(read, replace(_sample(), value={**header, name.partition("_")[0]: make(size)}))

    return {name: shape(name, make) for name, make in fields.items()}


def _many(width: int, make: Callable[[int], JSON]) -> Callable[[int], JSON]:
    return lambda size: [make(number) for number in range(max(1, size // width))]


def _map(width: int, make: Callable[[int], JSON]) -> Callable[[int], JSON]:
    return lambda size: {f"k{number}": make(number) for number in range(max(1, size // width))}


def _row(number: int) -> JSONObject:
    return {"policy": f"p{number}", "rule": "r", "kind": "Pod", "result": "pass", "resources": [f"o{number}"]}


_FILES: Final[Mapping[str, Mapping[str, Shape]]] = {
    "offline.testfile.read_test_file": _file(
        read_test_file,
        "Test",
        results=_many(80, _row),
        results_same=_many(80, lambda _: _row(0)),
        results_resources=lambda size: [{**_row(0), "resources": [f"o{number}" for number in range(size // 8)]}],
        results_wrong=_many(60, lambda number: {**_row(number), "reslt": "pass"}),
        policies=_many(10, lambda number: f"p{number}.yaml"),
        apiCallResponses=_many(90, lambda number: {"urlPath": f"/a{number}", "response": {"statusCode": 200}}),
        globalContextEntries=_many(40, lambda number: {"name": f"e{number}", "data": {}}),
        unknown=_map(10, lambda number: number),
    ),
    "offline.clifiles.read_values": _file(
        read_values,
        "Values",
        policies=_many(90, lambda number: {"name": f"p{number}", "rules": [{"name": "r", "values": {"a.b": number}}]}),
        policies_rules=lambda size: [
            {"name": "p", "rules": [{"name": f"r{number}", "values": {"a": 1}} for number in range(size // 50)]}
        ],
        policies_values=lambda size: [
            {"name": "p", "rules": [{"name": "r", "values": {f"a.b{number}.c": 1 for number in range(size // 12)}}]}
        ],
        policies_dots=lambda size: [{"name": "p", "rules": [{"name": "r", "values": {"a" + ".a" * (size // 4): 1}}]}],
        globalValues=_map(12, lambda number: f"v{number}"),
        namespaceSelector=_many(60, lambda number: {"name": f"n{number}", "labels": {"a": "b"}}),
        subresources=_many(
            120, lambda n: {"subresource": {"name": f"a{n}/b", "kind": "K"}, "parentResource": {"name": f"a{n}"}}
        ),
    ),
    "offline.clifiles.read_user_info": _file(
        read_user_info,
        "UserInfo",
        clusterRoles=_many(8, lambda number: f"r{number}"),
        userInfo=lambda size: {"username": "a", "groups": [f"g{number}" for number in range(size // 8)]},
    ),
    "offline.clifiles.read_context": _file(
        read_context,
        "Context",
        spec=lambda size: {
            "resources": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}", "namespace": "n"}}
                for number in range(size // 90)
            ]
        },
    ),
    "offline.clifiles.read_cluster_resource": _file(
        read_cluster_resource, "ClusterResource", spec=lambda size: {"crds": [f"c{n}.yaml" for n in range(size // 8)]}
    ),
}

# ---------------------------------------------------------------------------------------- tokens, recorded requests


def _encoded(value: JSON) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _token(header: JSONObject, claims: JSONObject, *, keys: int = 1, width: int = 1) -> Any:
    number = _encoded_bytes(b"\xff" * 256 * width)
    known = [{"kty": "RSA", "kid": f"k{each}", "n": number, "e": "AQAB"} for each in range(keys)]
    token = f"{_encoded({'alg': 'RS256', **header})}.{_encoded(claims)}.{_encoded_bytes(b's' * 256 * width)}"
    return call(check_id_token, token, known, issuer="i", audience="a", nonce="n", now=0.0)


def _encoded_bytes(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


_TOKENS: Final[Mapping[str, Mapping[str, Shape]]] = {
    "ui.access.idtokens.check_id_token": {
        "claims": lambda size: _token({}, {f"k{number}": "v" for number in range(size // 10)}),
        "header": lambda size: _token({f"k{number}": "v" for number in range(size // 10)}, {}),
        "keys": lambda size: _token({}, {}, keys=max(1, size // 400)),
        "keys with an id": lambda size: _token({"kid": "k0"}, {}, keys=max(1, size // 400)),
        "long keys": lambda size: _token({}, {}, width=max(1, size // 512)),
        "dots": lambda size: call(
            check_id_token, "a." * size, [], issuer="i", audience="a", nonce="n", now=0.0
        ),
        "letters": lambda size: call(
            check_id_token, f"{'A' * size}.{'A' * size}.A", [], issuer="i", audience="a", nonce="n", now=0.0
        ),
    }
}  # fmt: skip


def _review(number: int, *, same: bool = False, time: bool = True) -> JSONObject:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{0 if same else number}", "namespace": "n"}}
    request = {"uid": f"u{number}", "operation": "CREATE", "object": body, "userInfo": {"username": "a"}}
    request |= {"kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "n", "name": "p"}
    request |= {"resource": {"group": "", "version": "v1", "resource": "pods"}}
    recorded = {"pyverno": {"time": f"2026-01-01T00:00:00.{number:06}Z", "webhook": f"w{number % 2}"}} if time else {}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request, **recorded}


def _event(number: int, **fields: JSON) -> JSONObject:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}"}}
    reference = {"resource": "pods", "namespace": "n", "name": f"p{number}", "apiVersion": "v1"}
    event = {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "auditID": f"a{number}", "stage": "ResponseComplete"}
    return {
        **event,
        "verb": "create",
        "requestObject": body,
        "objectRef": reference,
        "user": {"username": "a"},
        **fields,
    }


def _update_request(count: int, policy: str = "p") -> JSONObject:
    trigger = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "n", "uid": "u"}
    rules = [{"rule": f"r{number}", "trigger": trigger} for number in range(count)]
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "UpdateRequest",
        "metadata": {"name": "u", "namespace": "kyverno"},
        "spec": {"requestType": "generate", "policy": policy, "ruleContext": rules, "resource": trigger, "context": {}},
    }


def _pull_secret(auths: JSON) -> JSONObject:
    data = base64.b64encode(json.dumps({"auths": auths}).encode()).decode()
    return {"type": "kubernetes.io/dockerconfigjson", "metadata": {"name": "s"}, "data": {".dockerconfigjson": data}}


def _outline(lines: Sequence[str]) -> object:
    return [*read_outline(lines)]


def _recordings(make: Callable[[int], JSON], *, is_list: bool = False, width: int = 300) -> Shape:
    """Return recorded requests in a file, one a line or in one list."""

    def shape(size: int) -> Any:
        found = [make(number) for number in range(max(1, size // width))]
        folder = Path(tempfile.mkdtemp())
        written = folder / "a.json"
        items = {"apiVersion": "audit.k8s.io/v1", "kind": "EventList", "items": found}
        written.write_text(json.dumps(items) if is_list else "".join(f"{json.dumps(each)}\n" for each in found))
        run = call(read_recordings, [str(written)])

        def read(budget: Any) -> object:
            try:
                return run(budget)
            finally:
                written.unlink()
                folder.rmdir()

        return read

    return shape


_OTHERS: Final[Mapping[str, Mapping[str, Shape]]] = {
    "controllers.background.work.read_request": {
        "rules": lambda size: call(read_request, _update_request(size // 60)),
        "a long name": lambda size: call(read_request, _update_request(1, policy="p" * size)),
    },
    "registry.credentials.read_pull_secret": {
        name: lambda size, make=make: call(read_pull_secret, _pull_secret(make(size)))
        for name, make in {
            "registries": lambda size: {f"r{number}.io": {"auth": "YTpi"} for number in range(size // 30)},
            "a long password": lambda size: {"r.io": {"auth": base64.b64encode(b"a:" + b"b" * size).decode()}},
            "a long name": lambda size: {"r/" * (size // 2): {"auth": "YTpi"}},
        }.items()
    },
    "ui.authoring.outline.read_outline": {
        each: lambda size, each=each: call(_outline, text(each, size).split("\n")) for each in text_names()
    },
    "ui.notifications.filters.read_notice_filter": {
        name: lambda size, name=name: call(
            read_notice_filter, {"filter": {name: {"include": [f"p{number}*" for number in range(size // 8)]}}}
        )
        for name in ("policies", "namespaces")
    },
    "cli.impact.recorded.read_recordings": {
        "reviews": _recordings(_review),
        "reviews of one object": _recordings(lambda number: _review(number, same=True)),
        "reviews without times": _recordings(lambda number: _review(number, same=True, time=False)),
        "events": _recordings(_event),
        "a list of events": _recordings(_event, is_list=True),
        "events without objects": _recordings(lambda number: _event(number, requestObject=None)),
    },
    "ui.store.filters.read_filter": {
        "parameters": lambda size: call(read_filter, [("policy", f"p{number}") for number in range(size // 12)], 0),
        "patterns": lambda size: call(read_filter, [("policy", ",".join(f"p{n}*" for n in range(size // 8)))], 0),
        "text": lambda size: call(read_filter, [("q", "a" * size)], 0),
    },
}

# -------------------------------------------------------------------------------------------------------------- metrics


def _readings(size: int, processes: int = 1) -> list[list[Reading]]:
    names = ("policy", "namespace")
    numbers = {(f"p{number}", f"n{number % 7}"): 1.0 for number in range(max(1, size // 40 // processes))}
    return [[Reading("a_total", "h", "counter", names, numbers)] for _ in range(processes)]


_METRICS: Final[Mapping[str, Mapping[str, Shape]]] = {
    "telemetry.exposition.render_text": {
        "series": lambda size: call(render_text, _readings(size)[0]),
        "a long label": lambda size: call(render_text, [Reading("a", "h", "gauge", ("l",), {('\n"\\' * (size // 3),): 1.0})]),
        "instruments": lambda size: call(render_text, [Reading(f"a{n}", "h", "gauge", (), {(): 1.0}) for n in range(size // 40)]),
    },
    "telemetry.snapshots.combined": {
        "processes": lambda size: call(combined, _readings(size, processes=4)),
        "many processes": lambda size: call(combined, _readings(size, processes=max(1, size // 400))),
    },
    "telemetry.snapshots.unpacked": {"series": lambda size: call(unpacked, packed(_readings(size)[0]))},
}  # fmt: skip


_ROOMS: Final = ("cli", "cluster", "controllers", "offline", "registry", "telemetry", "ui", "webhook")
_READS: Final = ("read_", "parse_", "decode_")


def door_readers() -> Iterator[str]:
    """Yield every public function of the doors and adapters that its name calls a reader, by its name."""
    for room in map(import_module, (f"pyverno.{name}" for name in _ROOMS)):
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            module = import_module(found.name)
            for name in getattr(module, "__all__", ()):
                value = getattr(module, name)
                is_reader = inspect.isfunction(value) and name.startswith(_READS)
                if is_reader and value.__module__ == found.name and not inspect.iscoroutinefunction(value):
                    yield f"{found.name.removeprefix('pyverno.')}.{name}"
