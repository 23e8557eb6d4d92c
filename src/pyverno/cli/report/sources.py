"""Sources of results: files, stdin, or the reports of a cluster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from typing import Final

from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.errors import HostError, UsageError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import StatusError
from pyverno.kube.yaml.documents import expand_lists
from pyverno.offline.files import load_files, read_stdin
from pyverno.report.collected import Collected, is_report, read_report
from pyverno.value import dataclass

# trust rows: environment

__all__ = ["Source", "read_cluster", "read_files"]

_RESOURCES: Final = (
    (GVR("wgpolicyk8s.io", "v1alpha2", "policyreports"), True, "PolicyReport"),
    (GVR("wgpolicyk8s.io", "v1alpha2", "clusterpolicyreports"), False, "ClusterPolicyReport"),
    (GVR("openreports.io", "v1alpha1", "reports"), True, "Report"),
    (GVR("openreports.io", "v1alpha1", "clusterreports"), False, "ClusterReport"),
)
_NOT_FOUND: Final = 404
_STDIN: Final = "-"
_GOODBYE_SECONDS: Final = 0.05
"""Pause after a session is closed: its TLS connections end a moment later."""


@dataclass(frozen=True, slots=True)
class Source:
    """Results, their source, and its unreadable parts."""

    results: Sequence[Collected]
    name: str
    problems: Sequence[str] = ()


def read_files(paths: Sequence[str]) -> Source:
    """Read reports out of files, folders and stdin (`-`); raises UsageError when there is no report at all."""
    stdin = read_stdin() if _STDIN in paths else None
    loaded = load_files(tuple(paths), stdin=stdin)
    found: list[Collected] = []
    reports = 0
    waiting = [*expand_lists(loaded.documents)][::-1]
    loaded.documents.clear()
    while waiting:
        body = waiting.pop().value  # what is read is not kept beside its results
        if is_report(body):
            reports += 1
            found.extend(read_report(body))
        elif _is_overview(body):
            reports += 1
            found.extend(_read_overview(body))
    if not reports and not loaded.errors:
        raise UsageError(f"{', '.join(paths)} holds no PolicyReport, ClusterPolicyReport, Report or ClusterReport")
    return Source(found, ", ".join(paths), [str(error) for error in loaded.errors])


def read_cluster(kubeconfig: str, context: str, namespaces: Sequence[str]) -> Source:
    """Read the reports of a cluster, of some namespaces or of all; raises HostError, UsageError.

    Kinds of reports that the cluster does not serve are left out; one without permission to read is a problem.
    """
    access = load_kubeconfig(kubeconfig, context, os.environ)
    return asyncio.run(_read_cluster(Client(access, qps=0), namespaces))


async def _read_cluster(client: Client, namespaces: Sequence[str]) -> Source:
    found: list[Collected] = []
    problems: list[str] = []
    served = 0
    async with client:
        for gvr, is_namespaced, kind in _RESOURCES:
            places = namespaces if is_namespaced and namespaces else ("",)
            if namespaces and not is_namespaced:
                continue
            for namespace in places:
                try:
                    listed = await client.list(gvr, namespace)
                except StatusError as error:
                    if error.status != _NOT_FOUND:
                        served += 1
                        problems.append(f"{gvr.resource} cannot be read: {error.message}")
                    continue
                served += 1
                found.extend(_of_items(listed["items"], kind, gvr))
    await asyncio.sleep(_GOODBYE_SECONDS)
    if not served:
        raise HostError("the cluster serves no reports: install a reports controller, or give files")
    return Source(found, "the cluster", problems)


def _of_items(items: Iterable[JSONObject], kind: str, gvr: GVR) -> Iterable[Collected]:
    for item in items:
        yield from read_report({"apiVersion": f"{gvr.group}/{gvr.version}", "kind": kind, **item})


def _is_overview(body: JSON) -> bool:
    """Return whether a document is what `pyverno report -o json` (or yaml) wrote."""
    return isinstance(body, dict) and isinstance(body.get("results"), list) and "groupedBy" in body


def _read_overview(body: JSONObject) -> Iterable[Collected]:
    for item in body["results"]:
        if isinstance(item, dict):
            resource = item.get("resource")
            source = item.get("source")
            seconds = item.get("timestamp")
            written = {
                **{key: value for key, value in item.items() if key not in ("resource", "source", "timestamp")},
                "result": item.get("status"),
                "source": source if isinstance(source, str) else "",
                "resources": [resource] if isinstance(resource, dict) else [],
                "timestamp": {"seconds": seconds},
            }
            yield from read_report({"results": [written]})
