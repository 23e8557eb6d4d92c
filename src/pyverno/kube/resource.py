"""A read-only view of one Kubernetes object.

It tolerates wrong types (metadata that is no map reads as empty), since objects reach policies before validation.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass

__all__ = ["Resource"]


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One object; `raw` is the document itself.

    >>> pod = Resource({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"x": "y"}}})
    >>> pod.gvk.kind, pod.name, pod.namespace, pod.labels["x"]
    ('Pod', 'a', '', 'y')
    """

    raw: JSONObject

    @property
    def api_version(self) -> str:
        """The text of `apiVersion`."""
        return _read_text(self.raw, "apiVersion")

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return parse_api_version(self.api_version)[0]

    @property
    def version(self) -> str:
        """The API version without its group."""
        return parse_api_version(self.api_version)[1]

    @property
    def kind(self) -> str:
        """The kind."""
        return _read_text(self.raw, "kind")

    @property
    def gvk(self) -> GVK:
        """Group, version and kind."""
        group, version = parse_api_version(self.api_version)
        return GVK(group, version, self.kind)

    @property
    def metadata(self) -> JSONObject:
        """The map `metadata`, empty when there is none."""
        found: JSON = self.raw.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def name(self) -> str:
        """The name."""
        return _read_text(self.metadata, "name")

    @property
    def generate_name(self) -> str:
        """The prefix from which the API server makes a name."""
        return _read_text(self.metadata, "generateName")

    @property
    def namespace(self) -> str:
        """The namespace, empty for cluster-scoped objects."""
        return _read_text(self.metadata, "namespace")

    @property
    def uid(self) -> str:
        """The unique id that the API server gave."""
        return _read_text(self.metadata, "uid")

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels; anything that is not a map of texts reads as empty."""
        return _texts(self.metadata, "labels")

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations; anything that is not a map of texts reads as empty."""
        return _texts(self.metadata, "annotations")

    def __repr__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"Resource({self.api_version} {self.kind} {where}{self.name})"


def _read_text(parent: JSONObject, key: str) -> str:
    found: JSON = parent.get(key)
    return found if isinstance(found, str) else ""


def _texts(parent: JSONObject, key: str) -> Mapping[str, str]:
    # apimachinery's NestedStringMap: one wrong value spoils the whole map.
    found: JSON = parent.get(key)
    if isinstance(found, dict) and all(isinstance(value, str) for value in found.values()):
        return found
    return {}
