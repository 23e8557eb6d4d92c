"""One golden case: the files of its folder, read into what a front door needs.

Files: `policy.yaml` (also bindings), `resource.yaml` (one or more objects), and where needed `exception.yaml`,
`params.yaml` (objects that bindings refer to), `crds.yaml` (kinds that are not built in), `values.yaml`, `user.yaml`
(as of the command line), `request.yaml` (`operation`, `oldObject`, `dryRun`, `subResource`, `background`, `payload`)
and `host.yaml` (`objects`, `targets`, `answers`, `globalEntries`, `images`, `now`): the world that rules ask. With
`payload: true` the objects are JSON documents that no cluster knows, with `payload: HTTP` or `payload: Envoy`
authorization requests. Nothing here judges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pyverno.compiler import Compilation, compile_documents
from pyverno.engine.cel.authorization import check_request
from pyverno.engine.host import Host
from pyverno.engine.request import Operation, Request, User
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.resource import Resource
from pyverno.kube.time.gotime import parse_rfc3339
from pyverno.kube.yaml.documents import Document, expand_lists, load_documents
from pyverno.offline.clifiles import read_user_info, read_values
from pyverno.offline.host import OfflineHost, RecordedAnswer
from pyverno.offline.objects import ObjectStore
from pyverno.offline.resources import normalise
from pyverno.offline.values import Values
from pyverno.policy.kinds import KNOWN_KINDS

ROOT = Path(__file__).parent
EXPECTED = "expected.yaml"
_REQUEST_FIELDS = {"operation", "oldObject", "dryRun", "subResource", "background", "payload"}
_HOST_FIELDS = {"objects", "targets", "answers", "globalEntries", "images", "now"}


@dataclass(frozen=True, slots=True)
class RecordedSystem:
    """A clock that stands still, and bits that are always the same."""

    nanoseconds: int

    def now(self) -> int:
        return self.nanoseconds

    def random_bits(self, bits: int) -> int:
        return 0

    def lookup_host(self, name: str) -> tuple[str, ...]:
        return ("192.0.2.1",)


@dataclass(frozen=True)
class Case:
    """A folder with a claim for a name."""

    folder: Path

    @property
    def name(self) -> str:
        """`topic/claim`."""
        return self.folder.relative_to(ROOT).as_posix()

    def has(self, name: str) -> bool:
        """Return whether the case has a file."""
        return (self.folder / name).exists()

    def path(self, name: str) -> str:
        """Return the path of one of its files as text."""
        return str(self.folder / name)

    @cached_property
    def compilation(self) -> Compilation:
        """Its policies and exceptions, compiled."""
        return compile_documents([*self._documents("policy.yaml"), *self._documents("exception.yaml")])

    @cached_property
    def manifests(self) -> list[JSONObject]:
        """Its objects as a cluster would see them."""
        written = [document.value for document in self._documents("resource.yaml")]
        return written if self.is_payload else [normalise(each, self.kinds) for each in written]

    @cached_property
    def kinds(self) -> KindTable:
        """The built-in kinds and those of `crds.yaml`."""
        return KNOWN_KINDS.with_crds(document.value for document in self._documents("crds.yaml"))

    @cached_property
    def params(self) -> list[JSONObject]:
        """The parameters of its policies."""
        return [normalise(document.value, self.kinds) for document in self._documents("params.yaml")]

    @cached_property
    def options(self) -> JSONObject:
        """Return the content of `request.yaml`."""
        return self._mapping("request.yaml", _REQUEST_FIELDS)

    @cached_property
    def world(self) -> JSONObject:
        """Return the content of `host.yaml`."""
        return self._mapping("host.yaml", _HOST_FIELDS)

    @cached_property
    def values(self) -> Values:
        """Its values file."""
        return read_values(self._documents("values.yaml")[0]) if self.has("values.yaml") else Values()

    @cached_property
    def user(self) -> User:
        """Return the user of the request."""
        return read_user_info(self._documents("user.yaml")[0]) if self.has("user.yaml") else User()

    @property
    def operation(self) -> Operation:
        """The operation of the request."""
        return Operation(self.options.get("operation", "CREATE"))

    @property
    def is_background(self) -> bool:
        """Return whether the case is a scan of live objects."""
        return self.options.get("background") is True

    @property
    def is_payload(self) -> bool:
        """Return whether the objects are JSON documents and no Kubernetes objects."""
        return bool(self.options.get("payload"))

    @property
    def check_mode(self) -> str:
        """The mode of authorization requests, "" when the objects are none."""
        mode = self.options.get("payload")
        return mode if isinstance(mode, str) else ""

    @cached_property
    def host(self) -> Host:
        """The world of the case; a case without `host.yaml` has an empty cluster."""
        answers = tuple(
            RecordedAnswer(each["target"], each.get("body"), each.get("method", ""), each.get("status", 200))
            for each in self.world.get("answers", [])
        )
        targets = [*self._stored("targets"), *self.params]
        return OfflineHost(
            objects=ObjectStore(self._stored("objects"), self.kinds),
            targets=ObjectStore(targets, self.kinds) if targets else None,
            answers=answers,
            images={image["image"]: image for image in self.world.get("images", [])},
            global_entries=self.world.get("globalEntries", {}),
            supply=self.values.supply,
            system=RecordedSystem(parse_rfc3339(str(self.world.get("now", "2024-02-29T12:00:00Z"))).nanoseconds),
        )

    def requests(self) -> Iterator[Request]:
        """Yield the request of every object, as the library makes it."""
        for manifest in self.manifests:
            if self.check_mode:
                yield check_request(manifest, mode=self.check_mode)
            elif self.is_payload:
                yield Request.from_payload(manifest)
            elif self.is_background:
                yield Request.from_live(manifest, **self.surroundings(manifest))
            else:
                yield Request.from_manifest(
                    manifest,
                    operation=self.operation,
                    old=self.old_object,
                    user=self.user,
                    subresource=self.options.get("subResource", ""),
                    **self.surroundings(manifest),
                )

    @property
    def old_object(self) -> JSON:
        """The object as it was before an UPDATE."""
        old = self.options.get("oldObject")
        return None if old is None else normalise(old, self.kinds)

    def surroundings(self, manifest: JSONObject) -> Mapping[str, JSON]:
        """Return `namespace_labels` and `namespace_object` of an object."""
        view = Resource(manifest)
        namespace = view.name if view.kind == "Namespace" else view.namespace
        if not namespace:
            return {"namespace_labels": {}, "namespace_object": None}
        stored = [each for each in self.world.get("objects", []) if each["kind"] == "Namespace"]
        found = next((each for each in stored if each["metadata"]["name"] == namespace), None)
        given = self.values.labels_of(namespace)
        if given is None:
            given = Resource(found).labels if found is not None else {}
        return {
            "namespace_labels": {"kubernetes.io/metadata.name": namespace, **given},
            "namespace_object": found,
        }

    def _stored(self, name: str) -> list[JSONObject]:
        return [normalise(each, self.kinds) for each in self.world.get(name, [])]

    def _documents(self, name: str) -> list[Document]:
        path = self.folder / name
        if not path.exists():
            return []
        return list(expand_lists(load_documents(path.read_bytes(), file=name)))

    def _mapping(self, name: str, known: set[str]) -> JSONObject:
        documents = self._documents(name)
        if not documents:
            return {}
        value: JSONObject = documents[0].value
        unknown = set(value) - known
        if unknown:
            raise ValueError(f"{self.name}/{name} has unknown fields {sorted(unknown)}")
        return value


def all_cases() -> list[Case]:
    """Return every case, in order of name."""
    return [Case(path.parent) for path in sorted(ROOT.glob("*/*/policy.yaml"))]
