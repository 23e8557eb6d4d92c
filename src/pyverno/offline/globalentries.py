"""Global context without a cluster: GlobalContextEntry documents over loaded objects, and mocked entries of a test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyverno.errors import EvaluationError, UsageError, raise_all
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import expand_lists
from pyverno.offline.files import load_files
from pyverno.offline.objects import ObjectStore
from pyverno.offline.projection import project
from pyverno.offline.testfile import GlobalEntry
from pyverno.policy.globalcontext import GlobalContextEntry

__all__ = ["entry_data", "mocked_data"]


def entry_data(entries: Iterable[GlobalContextEntry], store: ObjectStore | None) -> dict[str, JSON]:
    """Return the data of entries and their projections by name (`entry`, `entry.projection`).

    An entry of a kind that is not known, or of a service, has no data.
    """
    found: dict[str, JSON] = {}
    for entry in entries:
        _add_objects(entry, store, found)
    return found


def mocked_data(mocks: Iterable[GlobalEntry], folder: Path) -> dict[str, JSON]:
    """Return the data of mocked entries and their projections by name; files are read from `folder`."""
    found: dict[str, JSON] = {}
    for mock in mocks:
        data = _at_path(_read_mock(mock, folder), mock.field_path)
        found[mock.name] = data
        for name, path in mock.projections:
            found[f"{mock.name}.{name}"] = project(data, path)
    return found


def _add_objects(entry: GlobalContextEntry, store: ObjectStore | None, found: dict[str, JSON]) -> None:
    resource = entry.spec.kubernetes_resource
    if resource is None or store is None:
        return
    kind = store.kinds.by_resource(GVR(resource.group, resource.version, resource.resource))
    if kind is None:
        return
    api_version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    data = list(store.list(api_version, kind.kind, resource.namespace))
    found[entry.name] = data
    for projection in entry.spec.projections:
        found[f"{entry.name}.{projection.name}"] = project(data, projection.jmes_path)


def _read_mock(mock: GlobalEntry, folder: Path) -> JSON:
    if mock.data is not None:
        return mock.data
    if mock.resources is not None:
        return list(mock.resources)
    objects: list[JSONObject] = []
    for name in mock.resource_files or ():
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise UsageError(f"resource file `{name}` is outside of the folder of the test")
        loaded = load_files([str(path)])
        raise_all(loaded.errors)
        objects.extend(document.value for document in expand_lists(loaded.documents))
    return objects


def _at_path(data: JSON, path: str) -> JSON:
    for step in path.split(".") if path else ():
        if not isinstance(data, dict) or step not in data:
            raise EvaluationError(f"the mocked global context has no field `{path}`")
        data = data[step]
    return data
