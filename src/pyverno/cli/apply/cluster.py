"""`pyverno apply --cluster`: the objects of a live cluster, and the data that their reviews read.

Objects of every kind that the policies match are listed; ConfigMaps, API calls, the global context, parameters and
namespaces are read from the cluster when a rule needs them. Nothing is written.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyverno.cli.apply.load import Inputs
from pyverno.cli.apply.options import ApplyOptions
from pyverno.cli.clusterdata import by_name, discover_kinds, is_older, load_entries, with_type
from pyverno.cli.terminal import STDERR
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.compiler import Compilation, compile_documents
from pyverno.controllers.state.hosts import HostFactory, HostSettings
from pyverno.controllers.state.registries import RegistryFlags
from pyverno.controllers.state.scannedkinds import matched_kinds
from pyverno.engine.rule import CompiledPolicy, CompiledRule
from pyverno.errors import HostError, PyvernoError, UsageError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.status import StatusError
from pyverno.kube.yaml.documents import Document
from pyverno.loopthread import LoopThread
from pyverno.offline.session import Session
from pyverno.policy.kinds import WATCHED_EXCEPTIONS
from pyverno.spelling import did_you_mean
from pyverno.value import dataclass, field, replace

# trust rows: environment

__all__ = ["cluster_session"]

_NAMESPACES: Final = GVR("", "v1", "namespaces")
_BINDINGS: Final = (
    ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
)
_ADMISSION: Final = "admissionregistration.k8s.io"
_ADMISSION_POLICIES: Final = frozenset({"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"})
_MAX_CONCURRENT: Final = 32
_REFUSED: Final = frozenset({401, 403, 404, 405})
_FILE: Final = "cluster"


@dataclass(slots=True)
class _Live:
    """Data of a cluster, read before the reviews; `problems` are kinds that could not be listed."""

    objects: list[JSONObject] = field(default_factory=list)
    namespaces: dict[str, JSONObject] = field(default_factory=dict)
    exceptions: list[JSONObject] = field(default_factory=list)
    bindings: list[JSONObject] = field(default_factory=list)
    problems: list[PyvernoError] = field(default_factory=list)


@contextmanager
def cluster_session(options: ApplyOptions, inputs: Inputs) -> Iterator[tuple[Inputs, Session]]:
    """Yield the inputs with the objects of the cluster, and a session whose rules read the cluster.

    Raises UsageError for flags that cannot be combined, HostError when the cluster cannot be reached.
    """
    _check(options, inputs)
    access = load_kubeconfig(options.kubeconfig, options.context, os.environ)
    loop = LoopThread("cluster")
    client = Client(access, qps=0)
    hosts: HostFactory | None = None
    try:
        kinds = loop.run(discover_kinds(client))
        compilation = compile_documents(inputs.policies)
        started = time.perf_counter()
        live = loop.run(_read(client, kinds, compilation, options))
        if options.shows_performance:
            seconds = time.perf_counter() - started
            STDERR.write(f"loaded {len(live.objects)} objects in {seconds:.2f} s\n")
        if live.bindings:
            bindings = [Document(body, _FILE, index) for index, body in enumerate(live.bindings)]
            compilation = compile_documents([*inputs.policies, *bindings])
        root = b"" if inputs.registry is None else inputs.registry.trusted_root
        registries = RegistryFlags(trusted_root=root, environment=os.environ)
        hosts = HostFactory(
            client, HostSettings(caches_config_maps=False, registries=registries), lambda: kinds, system=inputs.system
        )
        loop.run(load_entries(client, hosts))
        found = replace(inputs, resources=[*inputs.resources], manifests=[*inputs.manifests])
        for index, body in enumerate(live.objects):
            found.resources.append(Document(body, _FILE, index))
            found.manifests.append(body)
        found.errors = [*inputs.errors, *live.problems]
        if options.namespace and live.namespaces and options.namespace not in live.namespaces:
            known = did_you_mean(options.namespace, live.namespaces)
            found.warnings = [*inputs.warnings, f"the cluster has no namespace `{options.namespace}`{known}"]
        yield found, loop.run(_session(found, compilation, hosts, kinds, live))
    finally:
        if hosts is not None:
            loop.run(hosts.close())
        loop.run(client.close())
        loop.close()


def _check(options: ApplyOptions, inputs: Inputs) -> None:
    if options.values_file or options.variables:
        raise UsageError("--values-file and --set cannot be used with --cluster: values are read from the cluster")
    if options.workers > 1:
        raise UsageError("--workers cannot be used with --cluster")
    if inputs.has_payloads or inputs.checks:
        raise UsageError("payloads cannot be used with --cluster")
    if not 1 <= options.concurrent <= _MAX_CONCURRENT:
        raise UsageError(f"--concurrent must be 1 to {_MAX_CONCURRENT}, got {options.concurrent}")


async def _session(
    inputs: Inputs, compilation: Compilation, hosts: HostFactory, kinds: KindTable, live: _Live
) -> Session:
    exceptions = compile_documents(
        [*inputs.exceptions, *(Document(body, _FILE, index) for index, body in enumerate(live.exceptions))]
    )
    own = compilation.exceptions if inputs.exceptions_within_policies else ()
    return Session(
        policies=compilation.policies,
        host=hosts.host(),
        exceptions=(*own, *exceptions.exceptions),
        user=inputs.user,
        kinds=kinds,
        namespaces=live.namespaces,
        compilation=compilation,
        errors=(*compilation.errors, *exceptions.errors),
    )


# ---------------------------------------------------------------------------------------------------------- reading


async def _read(client: Client, kinds: KindTable, compilation: Compilation, options: ApplyOptions) -> _Live:
    live = _Live()
    await _read_all(client, kinds, _NAMESPACES, live, into=lambda items: live.namespaces.update(by_name(items)))
    for gvr in WATCHED_EXCEPTIONS:
        if kinds.by_resource(gvr) is not None and not is_older(gvr, kinds):
            await _read_all(client, kinds, gvr, live, into=live.exceptions.extend)
    if any(policy.info.kind in _ADMISSION_POLICIES for policy in compilation.policies):
        await _read_bindings(client, kinds, compilation, live)
    limit = asyncio.Semaphore(options.concurrent)

    async def read(info: KindInfo) -> list[JSONObject]:
        async with limit:
            return await _list(client, info, options, live)

    wanted = [
        info for info in matched_kinds(compilation.policies, kinds, rules=_all_rules) if _is_wanted(info, options)
    ]
    for items in await asyncio.gather(*(read(info) for info in wanted)):
        live.objects.extend(items)
    return live


def _is_wanted(info: KindInfo, options: ApplyOptions) -> bool:
    """Return whether objects of a kind are reviewed: with a namespace, cluster-scoped ones only where requested."""
    if "list" not in (info.verbs or ("list",)):
        return False
    return info.namespaced or not options.namespace or options.cluster_wide


async def _list(client: Client, info: KindInfo, options: ApplyOptions, live: _Live) -> list[JSONObject]:
    namespace = options.namespace if info.namespaced else ""
    try:
        found = await client.list(info.gvr, namespace, page=max(options.batch_size, 1))
    except (StatusError, HostError) as error:
        if not options.continue_on_error or not isinstance(error, StatusError) or error.status not in _REFUSED:
            raise
        live.problems.append(UsageError(f"{info.plural} cannot be listed, and are not checked: {error.message}"))
        return []
    return [with_type(item, info) for item in found["items"]]


async def _read_all(client: Client, kinds: KindTable, gvr: GVR, live: _Live, *, into: Any) -> None:
    info = kinds.by_resource(gvr)
    if info is None:
        return
    try:
        found = await client.list(gvr)
    except StatusError as error:
        # missing kinds could make results wrong: print the error and fail
        live.problems.append(UsageError(f"{gvr.resource} cannot be listed: {error.message}"))
        return
    into([with_type(item, info) for item in found["items"]])


async def _read_bindings(client: Client, kinds: KindTable, compilation: Compilation, live: _Live) -> None:
    """Read the bindings of the given admission policies; the files may bring bindings of their own."""
    given = {policy.info.name for policy in compilation.policies if policy.info.kind in _ADMISSION_POLICIES}
    written = {
        (item.document.value.get("kind"), (item.document.value.get("metadata") or {}).get("name"))
        for item in compilation.items
        if isinstance(item.document.value, dict)
    }
    for kind, plural in _BINDINGS:
        info = next((each for each in kinds if (each.group, each.plural) == (_ADMISSION, plural)), None)
        if info is None:
            continue
        found: list[JSONObject] = []
        await _read_all(client, kinds, info.gvr, live, into=found.extend)
        live.bindings.extend(
            each
            for each in found
            if each["spec"].get("policyName") in given and (kind, each["metadata"]["name"]) not in written
        )


def _all_rules(policy: CompiledPolicy) -> Iterable[CompiledRule]:
    return policy.rules
