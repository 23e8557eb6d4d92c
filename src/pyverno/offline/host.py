"""The Host of a command line without a cluster: objects, recorded answers and supplied variables.

It answers from the given data; every other read is HostUnavailableError. It must never open a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyverno.engine.host import HttpCall, Read, Reader
from pyverno.errors import HostError, HostUnavailableError
from pyverno.kube.apipath import ApiPath
from pyverno.kube.gvk import GVK, join_api_version, parse_api_version
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.kinds import KindTable
from pyverno.lang.runtime import ExpressionHost
from pyverno.offline.objects import ObjectStore
from pyverno.offline.system import OfflineSystem
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.engine.imagesource import ImageSource
    from pyverno.engine.imageverification.recordkeys import RecordKeys

__all__ = ["OfflineHost", "RecordedAnswer"]

Supply = Callable[[str, str, str], Mapping[str, JSON]]


def _nothing_supplied(policy: str, rule: str, resource: str) -> Mapping[str, JSON]:
    return {}


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The answer of an API path or URL; an empty method answers all."""

    target: str
    body: JSON
    method: str = ""
    status: int = 200


@dataclass(frozen=True, slots=True)
class OfflineHost:
    """Answers from loaded documents, recorded data and, if given, registries.

    `objects` is the fake cluster (None = no cluster). `answers` are read before it. `targets` are further
    objects that rules may patch or clone, but that no API path shows. `images` maps image references to their data,
    which is read first; `registries` read images without recorded data (None = no registry). `global_entries` maps
    names to data. `supply` returns the variables of a values file. `system` answers for
    clock, randomness and, where the user allows it, names of hosts.
    """

    objects: ObjectStore | None = None
    targets: ObjectStore | None = None
    answers: tuple[RecordedAnswer, ...] = ()
    images: Mapping[str, JSONObject] = field(default_factory=dict)
    global_entries: Mapping[str, JSON] = field(default_factory=dict)
    supply: Supply = _nothing_supplied
    system: ExpressionHost = field(default_factory=OfflineSystem)
    registries: ImageSource | None = None

    def now(self) -> int:
        """Return the wall clock."""
        return self.system.now()

    def random_bits(self, bits: int) -> int:
        """Return random bits."""
        return self.system.random_bits(bits)

    def lookup_host(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a host name."""
        return self.system.lookup_host(name)

    def api_call(self, path: ApiPath, *, method: str, body: JSON) -> JSON:
        """Answer from the recorded answers, else from the objects."""
        recorded = self._find_recorded(str(path), method) or self._find_recorded(path.path, method)
        if recorded is not None:
            return _body(recorded)
        if self.objects is None:
            raise HostUnavailableError(f"no cluster is available to call `{method} {path}`")
        return self.objects.serve(path, method)

    def http_call(self, call: HttpCall) -> JSON:
        """Answer from the recorded answers."""
        recorded = self._find_recorded(call.url, call.method)
        if recorded is None:
            raise HostUnavailableError(f"no answer is recorded for `{call.method} {call.url}`")
        return _body(recorded)

    def http_exchange(self, call: HttpCall) -> tuple[int, bytes]:
        """Answer from the recorded answers, with status and body."""
        recorded = self._find_recorded(call.url, call.method)
        if recorded is None:
            raise HostUnavailableError(f"no answer is recorded for `{call.method} {call.url}`")
        body = recorded.body
        if isinstance(body, dict) and "body" not in body:
            # COMPAT: the mocks of Kyverno's command line answer CEL calls with the document under `body`
            body = {**body, "body": body}
        return recorded.status, encode(body).encode()

    @property
    def kinds(self) -> KindTable:
        """The kinds of the objects."""
        return KNOWN_KINDS if self.objects is None else self.objects.kinds

    def config_map(self, namespace: str, name: str) -> JSONObject:
        """Return a ConfigMap of the objects."""
        if self.objects is None:
            raise HostUnavailableError(f"no cluster is available to read ConfigMap `{namespace}/{name}`")
        found = self.objects.get("v1", "ConfigMap", namespace, name)
        if found is None:
            raise HostError(f'configmaps "{name}" not found in namespace "{namespace}"')
        return found

    @property
    def image_source(self) -> ImageSource:
        """The source of images from registries."""
        if self.registries is not None:
            return self.registries
        from pyverno.engine.imagesource import NO_IMAGES  # few policies read images

        return NO_IMAGES

    def require_read(self, reader: Reader, read: Read) -> None:
        """Return: policies in files have no authors, and read what the user gave."""

    @property
    def record_keys(self) -> RecordKeys:
        """No keys: an installation's records of verified images cannot be checked here."""
        from pyverno.engine.imageverification.recordkeys import NO_RECORD_KEYS  # few policies read images

        return NO_RECORD_KEYS

    def image_data(self, image: str, *, credentials: JSONObject | None) -> JSONObject:
        """Return the recorded data of an image, else that of its registry."""
        found = self.images.get(image)
        if found is not None:
            return found
        if self.registries is None:
            raise HostUnavailableError(f"no registry is available to read image `{image}`")
        from pyverno.engine.imagesource import ImageAccess

        return self.registries.data(image, ImageAccess(credentials))

    def global_entry(self, name: str) -> JSON:
        """Return the data of a global context entry that was loaded."""
        if name in self.global_entries:
            return self.global_entries[name]
        raise HostUnavailableError(f"no global context entry `{name}` was given")

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject | None:
        """Return one of the objects or targets; a subresource with its own kind is an object of that kind."""
        info = self.kinds.find(GVK(*parse_api_version(api_version), kind)) if subresource else None
        if info is not None:
            held = info.subresource_gvk(subresource)
            api_version, kind = join_api_version(held.group, held.version), held.kind
        for store in self._stores(f"read {kind} `{namespace}/{name}`"):
            found = store.get(api_version, kind, namespace, name)
            if found is not None:
                return found
        return None

    def list_objects(
        self, api_version: str, kind: str, namespace: str, selector: JSONObject | None
    ) -> tuple[JSONObject, ...]:
        """Return some of the objects and targets."""
        stores = self._stores(f"list {kind}")
        return tuple(item for store in stores for item in store.list(api_version, kind, namespace, selector))

    def _stores(self, what: str) -> tuple[ObjectStore, ...]:
        stores = tuple(store for store in (self.targets, self.objects) if store is not None)
        if not stores:
            raise HostUnavailableError(f"no cluster is available to {what}")
        return stores

    @property
    def supplies_variables(self) -> bool:
        """Return whether there is a values file."""
        return self.supply is not _nothing_supplied

    def recorded_variables(self, policy: str, rule: str, resource: str) -> Mapping[str, JSON]:
        """Return the values file's variables for this policy, rule and resource."""
        return self.supply(policy, rule, resource)

    def _find_recorded(self, target: str, method: str) -> RecordedAnswer | None:
        for answer in self.answers:
            if answer.target == target and answer.method in ("", method):
                return answer
        return None


def _body(answer: RecordedAnswer) -> JSON:
    if not 200 <= answer.status <= 299:
        # the body of an answer never appears in an error
        raise HostError(f"HTTP {answer.status}")
    return answer.body
