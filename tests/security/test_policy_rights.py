"""Whose permissions each act and read for a policy has: no site acts for a namespace with the controller's own."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pyverno.controllers
from pyverno.cluster.forwardinghost import ForwardingHost
from pyverno.cluster.notinghost import NotingHost
from pyverno.cluster.remembering import RememberingHost
from pyverno.engine.broker import CONFINED, Broker
from pyverno.engine.host import NO_HOST, Host, NoHost, Read, Reader
from pyverno.engine.imagesource import ImageAccess, SignatureQuery
from pyverno.engine.result import Status
from pyverno.engine.rule import Family, PolicyInfo
from pyverno.errors import EvaluationError, PyvernoError
from pyverno.images.verification.stored import StoredArtifact
from pyverno.kube.json import JSONObject
from pyverno.lang.runtime import Budget
from pyverno.policy.kinds import POLICY_KINDS
from pyverno.registry.credentials import CredentialSource
from pyverno.registry.images import SecretCredentials
from pyverno.webhook.authors import is_authored
from pyverno.webhook.nonblocking import NeedsWorkerError, NonblockingHost
from tests.security.asking import Spy, ask, found, only
from tests.security.test_confinement import READS

ROOT = Path(pyverno.controllers.__file__).parent
WRITES = frozenset({"create", "update", "patch", "delete", "discard", "submit", "store"})
ROOMS = ("applier.py", "keptobjects.py", "background", "cleanup")

AUTHOR = "the author of a namespaced policy"
OWN = "the controller: an object of the installation"
ASKS = "the controller: a question, which stores nothing"
LABELS = "the controller: takes its own labels and annotations off"

ACTS: dict[str, str] = {
    "applier.py:_create": AUTHOR,
    "applier.py:_update": AUTHOR,
    "applier.py:_apply_on_server": AUTHOR,
    "applier.py:_patch": AUTHOR,
    "applier.py:_delete": AUTHOR,
    "applier.py:authorize": ASKS,
    "applier.py:_is_as_defaulted": ASKS,
    "keptobjects.py:keep": OWN,
    "background/context.py:submit": OWN,
    "background/policyconditions.py:_reconcile": OWN,
    "background/requests.py:_delete": OWN,
    "background/requests.py:_mark_held": OWN,
    "background/requests.py:_write_status": OWN,
    "background/resultreports.py:_write": OWN,
    "background/shards.py:_annotate": OWN,
    "background/generating/handlers.py:_is_superseded": OWN,
    "background/generating/policies.py:_patch": LABELS,
    "background/generating/writer.py:_mark": AUTHOR,
    "background/mutating/evaluation.py:_record": OWN,
    "cleanup/scheduled.py:_describe": OWN,
    "cleanup/timestolive.py:_may_delete": ASKS,
}
"""Every function of these rooms that writes, and whose permissions it has."""


def functions() -> Iterator[tuple[str, ast.AsyncFunctionDef | ast.FunctionDef]]:
    """Yield the functions that send writes with a client, by module and name."""
    for room in ROOMS:
        path = ROOT / room
        for module in (path,) if path.is_file() else sorted(path.rglob("*.py")):
            for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
                if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef) and any(map(_is_write, ast.walk(node))):
                    yield f"{module.relative_to(ROOT)}:{node.name}", node


def _is_write(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in WRITES:
        return False
    owner = node.func.value
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return name in ("_client", "client")


def test_every_write_says_whose_permissions_it_has() -> None:
    """A new site must be settled in the table."""
    assert sorted(ACTS) == sorted({name for name, _ in functions()})


def test_what_a_policy_writes_is_authorized_first() -> None:
    """Each function that writes for a policy asks for its author before."""
    missing = [
        name
        for name, node in functions()
        if ACTS.get(name) == AUTHOR
        and not any(isinstance(each, ast.Attribute) and each.attr == "authorize" for each in ast.walk(node))
    ]
    assert [] == missing


# -------------------------------------------------------------------------------------------------------------- images

READER = PolicyInfo("Policy", "kyverno.io/v1", "guard", Family.RULES, "team")
DEFAULT = CredentialSource("the installation", ())


async def _no_secret(namespace: str, name: str) -> JSONObject:
    return {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "e30="}}


async def _defaults() -> Sequence[CredentialSource]:
    return (DEFAULT,)


@pytest.mark.parametrize(
    ("credentials", "lends", "expected"),
    [
        (None, False, True),
        ({CONFINED: "team"}, False, False),
        ({CONFINED: "team"}, True, True),
        ({CONFINED: "team", "secrets": ["team/pull"]}, True, False),
        ({"secrets": ["pull"]}, False, False),
    ],
)
def test_images_of_a_namespace_are_read_without_credentials_of_the_installation(
    credentials: JSONObject | None, lends: bool, expected: bool
) -> None:
    """Policies of the cluster use them, and those of a namespace with `--namespacedPolicyRights=controller`."""
    source = SecretCredentials(_no_secret, "kyverno", _defaults, lends=lends)
    found = asyncio.run(source.sources(ImageAccess(credentials), "ghcr.io"))
    assert expected == (DEFAULT in found)


class Recorder(NoHost):
    """A Host whose reads of images record their credentials."""

    def __init__(self) -> None:
        self.seen: list[JSONObject | None] = []

    @property
    def image_source(self) -> Any:
        """Return itself: it answers for registries too."""
        return self

    def image_data(self, image: str, *, credentials: JSONObject | None) -> JSONObject:
        self.seen.append(credentials)
        return {}

    def resolve(self, images: Sequence[tuple[str, ImageAccess]]) -> Sequence[Any]:
        self.seen.extend(access.credentials for _, access in images)
        return ()

    def signatures(self, queries: Sequence[SignatureQuery]) -> Sequence[Any]:
        self.seen.extend(each.access.credentials for each in queries)
        return ()

    def artifacts(self, repository: str, digest: str, artifact_type: str, access: ImageAccess) -> Sequence[Any]:
        self.seen.append(access.credentials)
        return ()

    def artifact_content(self, repository: str, artifact: StoredArtifact, access: ImageAccess) -> bytes:
        self.seen.append(access.credentials)
        return b""

    def data(self, image: str, access: ImageAccess) -> JSONObject:
        self.seen.append(access.credentials)
        return {}


IMAGE_READS = ("image_data", "resolve_images", "image_signatures", "image_artifacts", "artifact_content",
               "described_image")  # fmt: skip


@pytest.mark.parametrize("read", IMAGE_READS)
def test_every_read_of_an_image_says_whose_it_is(read: str) -> None:
    """Without credentials in the policy, too; no policy names another namespace, and those of the cluster are free."""
    for namespace, written, expected in (
        ("team", None, {CONFINED: "team"}),
        ("team", {CONFINED: ""}, {CONFINED: "team"}),
        ("", None, None),
    ):
        host = Recorder()
        READS[read](Broker(host, Budget(), namespace), written)
        assert [expected] == host.seen


def test_no_read_of_an_image_is_forgotten() -> None:
    """Every method of the broker that takes credentials is tried above."""
    given = {"access", "credentials", "images", "queries"}
    taking = {
        name
        for name, method in inspect.getmembers(Broker, inspect.isfunction)
        if not name.startswith("_") and given & {*inspect.signature(method).parameters}
    }
    assert sorted(IMAGE_READS) == sorted(taking)


# --------------------------------------------------------------------------------------------------------------- reads

SECRET = {"secrets": ["team/pull"]}
PULL = Read("get", "", "secrets", name="pull")
OWN_READS: dict[str, tuple[Callable[[Broker], object], Read]] = {
    "api_call": (
        lambda broker: broker.api_call("/apis/apps/v1/namespaces/team/deployments/a/scale"),
        Read("get", "apps", "deployments", "scale", "a"),
    ),
    "config_map": (lambda broker: broker.config_map("team", "a"), Read("get", "", "configmaps", name="a")),
    "get_object": (
        lambda broker: broker.get_object("v1", "Secret", "team", "a", subresource="b"),
        Read("get", "", "secrets", "b", "a"),
    ),
    "list_objects": (lambda broker: broker.list_objects("v1", "Secret", "team"), Read("list", "", "secrets")),
    "public_key": (lambda broker: broker.public_key("k8s://team/pull"), PULL),
    **{name: (partial(lambda read, broker: read(broker, SECRET), READS[name]), PULL) for name in IMAGE_READS},
}
"""Every way to read objects of the own namespace, and the permission that it needs."""

NOTHING_OWN = {
    "http_call": "no service is called for a namespace",
    "http_exchange": "what a service answers is no object of the namespace",
    "global_entry": "no policy of a namespace reads the global context",
    "revocation": "lists of certificate authorities are public",
    "trust_root": "the trust root of the installation is public",
}


class Judge(Spy):
    """A Host with authors, none of whom may read anything."""

    def __init__(self) -> None:
        super().__init__()
        self.judged: list[Read] = []

    def require_read(self, reader: Reader, read: Read) -> None:
        self.judged.append(read)
        raise EvaluationError("refused")


@pytest.mark.parametrize("read", OWN_READS)
def test_every_read_of_a_policy_is_checked_for_its_author(read: str) -> None:
    """Before anything is sent; policies of the cluster are not checked."""
    send, expected = OWN_READS[read]
    host = Judge()
    with pytest.raises(EvaluationError, match="refused"):
        send(Broker(host, Budget(), "team", READER))
    assert ([expected], []) == (host.judged, host.asked)
    cluster_wide = Judge()
    with contextlib.suppress(PyvernoError):  # a spy answers with nothing
        send(Broker(cluster_wide, Budget(), "", READER))
    assert [] == cluster_wide.judged


def test_no_read_is_without_an_author() -> None:
    """A new way to read appears above, with the permission that it needs or why it needs none."""
    named = {name for name, _ in inspect.getmembers(Broker, inspect.isfunction) if not name.startswith("_")}
    assert sorted({*OWN_READS, *NOTHING_OWN}) == sorted(named)


PATHS = {
    "/api/v1/namespaces/team/secrets": Read("list", "", "secrets"),
    "/api/v1/namespaces/team/secrets?fieldSelector=metadata.name%3Da": Read("list", "", "secrets"),
    "/api/v1/namespaces/team/secrets/a/": Read("get", "", "secrets", name="a"),
    "/api/v1/namespaces/team/services/a:80/proxy/x/y": Read("get", "", "services", "proxy", "a:80"),
    "/apis/apps/v1/namespaces/team/deployments": Read("list", "apps", "deployments"),
}


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_judged_as_the_api_server_reads_it(path: str) -> None:
    """The permission is that for the request that is sent."""
    host = Judge()
    with pytest.raises(EvaluationError, match="refused"):
        Broker(host, Budget(), "team", READER).api_call(path)
    assert [PATHS[path]] == host.judged


def test_every_rule_reads_as_its_policy() -> None:
    """The engine names the policy, whichever part of a rule reads."""
    host = Judge()
    text = found("configMap:\n  name: settings\n  namespace: team", kind="Policy")
    text = text.replace("{{ found }}", "{{ found.data.a }}")
    assert (Status.ERROR, True) == (only(ask(text, host=host))[0], bool(host.judged))
    assert [] == host.asked


HOSTS = (ForwardingHost, RememberingHost, NotingHost)


@pytest.mark.parametrize("wrapping", HOSTS)
def test_no_host_around_another_loses_the_check(wrapping: Callable[[Host], Host]) -> None:
    """Twice, because some remember answers."""
    host = Judge()
    wrapped = wrapping(host)
    for _ in range(2):
        with pytest.raises(EvaluationError, match="refused"):
            wrapped.require_read(READER, PULL)
    assert [PULL, PULL] == host.judged


def test_a_scan_follows_the_permissions_of_authors() -> None:
    """An object whose evaluation needs an author is evaluated again at each interval."""
    noting = NotingHost(NO_HOST)
    noting.require_read(READER, PULL)
    assert noting.reads_host


class Remembering(NoHost):
    """A Host that has some decisions in memory."""

    def cached_config_map(self, namespace: str, name: str) -> None:
        return None

    def is_entry_cached(self, name: str) -> bool:
        return False

    def object_at_hand(self, api_version: str, kind: str, namespace: str, name: str) -> None:
        return None

    def is_read_granted(self, reader: Reader, read: Read) -> bool:
        return read == PULL


def test_no_loop_waits_for_the_rights_of_an_author() -> None:
    """A review on the event loop goes on with what memory says, and moves to a worker for the rest."""
    host = NonblockingHost(Remembering())
    host.require_read(READER, PULL)
    with pytest.raises(NeedsWorkerError):
        host.require_read(READER, Read("get", "", "secrets", name="other"))
    with pytest.raises(NeedsWorkerError):
        NonblockingHost(NO_HOST).require_read(READER, PULL)


def test_every_controller_checks_reads() -> None:
    """Each makes its hosts with what decides about authors; offline commands have none."""
    rooms = {path.parent.name for path in ROOT.rglob("*.py") if "reads=author_reads" in path.read_text("utf-8")}
    assert {"admission", "background", "cleanup", "reports"} == rooms


# --------------------------------------------------------------------------------------------------------------- kinds

KINDS = {
    "Policy": "at admission by its text, and at work",
    "CleanupPolicy": "at admission by its text, and at work",
    "NamespacedMutatingPolicy": "at admission by its text, and at work",
    "NamespacedDeletingPolicy": "at admission by its text, and at work",
    "NamespacedGeneratingPolicy": "at work: its expressions make the objects",
    "NamespacedValidatingPolicy": "what it judges at admission, what it reads at work",
    "NamespacedImageValidatingPolicy": "what it judges at admission, what it reads at work",
    "PolicyException": "never: --exceptionNamespace names the one namespace of exceptions",
    "GlobalContextEntry": "never: it is of the cluster, and policies of a namespace may not read it",
}
"""When the permissions of the author are checked, for every kind that a tenant might write."""


def test_every_kind_of_a_namespace_is_settled() -> None:
    """Policies that are confined to a namespace have an author; a new kind must say when its author is checked."""
    authored = {row.kind for row in POLICY_KINDS if is_authored(row.group, row.kind)}
    namespaced = {row.kind for row in POLICY_KINDS if row.namespaced}
    assert sorted(KINDS) == sorted(namespaced | {"GlobalContextEntry"})
    assert sorted(set(KINDS) - {"PolicyException", "GlobalContextEntry"}) == sorted(authored)
