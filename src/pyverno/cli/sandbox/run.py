"""The work of `pyverno sandbox`: settings from flags, start, wait or run a command, stop.

With `--with-controllers` the controllers run beside the server and log to stderr.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from kubesandbox import Sandbox, Settings
from kubesandbox.privatefiles import write_private
from pyverno.cli.style import style_for
from pyverno.cli.terminal import STDERR, STDOUT
from pyverno.errors import UsageError
from pyverno.value import dataclass, replace

# trust rows: environment, named-file, own-process

__all__ = ["run_sandbox", "settings_of"]

_VERSION = re.compile(r"v?1\.(\d+)(?:\.\d+)?")
_OLDEST, _NEWEST = 32, 37
_SERVICE = re.compile(r"(?P<namespace>[^/=]+)/(?P<name>[^/=]+)=(?P<host>\[[^]]+\]|[^:]+):(?P<port>\d{1,5})")


def run_sandbox(words: Sequence[str], flags: Mapping[str, Any]) -> int:
    """Run a sandbox until a signal, or as long as a command runs; return the exit code."""
    if flags["exec"] and not words:
        raise UsageError("--exec needs a command to run")
    if words and not flags["exec"]:
        raise UsageError(f'unknown command "{words[0]}" for "pyverno sandbox"')
    if flags["with_ui"] and not flags["with_controllers"]:
        raise UsageError("--with-ui shows the reports of the controllers: give --with-controllers, too")
    settings = settings_of(flags)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    cluster = _with_controllers(settings, flags) if flags["with_controllers"] else _alone(settings)
    starting = _with_registry(cluster) if flags["with_registry"] else cluster
    return asyncio.run(_run(starting, words, Path(flags["kubeconfig"]) if flags["kubeconfig"] else None))


def settings_of(flags: Mapping[str, Any]) -> Settings:
    """Return the settings of the flags; raises UsageError."""
    found = _VERSION.fullmatch(flags["kube_version"])
    if found is None or not _OLDEST <= int(found[1]) <= _NEWEST:
        raise UsageError(f"unknown Kubernetes version `{flags['kube_version']}`, must be 1.{_OLDEST} to 1.{_NEWEST}")
    return Settings(
        kube_version=f"1.{found[1]}",
        address=flags["address"],
        port=flags["port"],
        data_dir=Path(flags["data_dir"]) if flags["data_dir"] else None,
        load=tuple(map(Path, flags["load"])),
        namespaces=tuple(flags["seed_namespaces"]),
        services=dict(map(_service, flags["map_service"])),
        kubelet=not flags["no_kubelet"],
        authorization=not flags["no_authz"],
        log_request=_log if flags["log_requests"] else None,
    )


def _service(text: str) -> tuple[tuple[str, str], tuple[str, int]]:
    found = _SERVICE.fullmatch(text)
    if found is None or not 0 < int(found["port"]) < 2**16:
        raise UsageError(f"invalid argument `{text}` for `--map-service`: expected NAMESPACE/NAME=HOST:PORT")
    return (found["namespace"], found["name"]), (found["host"].strip("[]"), int(found["port"]))


def _log(line: str) -> None:
    STDERR.write(f"{line}\n")


@dataclass(frozen=True, slots=True)
class _Cluster:
    """A started sandbox, a function that waits until a part of it fails, and whether the controllers run.

    `ui` is the address of the pages, `registry` that of the image registry; each is empty without it.
    """

    sandbox: Sandbox
    wait: Callable[[], Awaitable[object]]
    has_policies: bool
    ui: str = ""
    registry: str = ""


@asynccontextmanager
async def _alone(settings: Settings) -> AsyncIterator[_Cluster]:
    async with Sandbox(settings) as sandbox:
        yield _Cluster(sandbox, asyncio.Event().wait, has_policies=False)


@asynccontextmanager
async def _with_registry(starting: AbstractAsyncContextManager[_Cluster]) -> AsyncIterator[_Cluster]:
    from kubesandbox.imageregistry import Registry

    async with Registry() as registry, starting as cluster:
        yield replace(cluster, registry=registry.host)


@asynccontextmanager
async def _with_controllers(settings: Settings, flags: Mapping[str, Any]) -> AsyncIterator[_Cluster]:
    # imported here, because a sandbox alone does not need it, and it doubles the time of the start
    from pyverno.connector import Connector
    from pyverno.controllers.admission.controller import AdmissionSettings
    from pyverno.controllers.state.hosts import HostSettings
    from pyverno.telemetry.logs import AnswerLog, LogSettings, set_up_logging
    from pyverno.telemetry.observer import Observers
    from pyverno.testing import CONTROLLERS, PolicySandbox
    from pyverno.webhook.policyreviews import ExceptionSettings

    set_up_logging(LogSettings(verbosity=2 if flags["log_requests"] else 0, is_coloured=style_for(STDERR).is_coloured))
    exceptions = ExceptionSettings(flags["enablepolicyexception"], flags["exceptionnamespace"])
    alone = dataclasses.replace(settings, load=())  # the loaded objects may be policies, which need their definitions
    # without the egress guard, which blocks addresses of this machine
    hosts = HostSettings(registry_connector=Connector if flags["with_registry"] else None)
    admission = AdmissionSettings(exceptions=exceptions, hosts=hosts)
    cluster = PolicySandbox(Sandbox(alone), Observers(AnswerLog()), admission, further=CONTROLLERS)
    async with cluster:
        await cluster.sandbox.load(settings.load)
        await cluster.settle()
        if not flags["with_ui"]:
            yield _Cluster(cluster.sandbox, cluster.wait, has_policies=True)
            return
        from pyverno.cli.ui.run import UiOptions, serving

        options = UiOptions(kubeconfig=str(cluster.sandbox.kubeconfig), cluster_name="sandbox", port=flags["ui_port"])
        async with serving(options) as url:
            yield _Cluster(cluster.sandbox, cluster.wait, has_policies=True, ui=url)


async def _run(starting: AbstractAsyncContextManager[_Cluster], words: Sequence[str], kubeconfig: Path | None) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the last one when the terminal is closed
        loop.add_signal_handler(number, stopping.set)
    async with starting as cluster:
        path = cluster.sandbox.kubeconfig
        if kubeconfig is not None:
            write_private(kubeconfig, Path(path).read_bytes())
            path = str(kubeconfig.absolute())
        if words:
            return await _exec(words, path, cluster.registry, stopping)
        STDOUT.write(_greeting(cluster, path))
        STDOUT.flush()
        await _first(stopping.wait(), cluster.wait())
    return 0


async def _first(*waiting: Awaitable[object]) -> None:
    """Wait until one of these ends, and raise its error."""
    tasks = [asyncio.ensure_future(each) for each in waiting]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    for task in done:
        task.result()


_WORKLOADS = (
    "kubectl get nodes",
    "kubectl create deployment web --image=nginx",
    "kubectl get pods --watch",
)
_POLICIES = (
    "kubectl apply -f POLICY.yaml",
    "kubectl get clusterpolicies,validatingpolicies,mutatingpolicies",
    "kubectl create deployment web --image=nginx",
)


def _greeting(cluster: _Cluster, path: str) -> str:
    settings = cluster.sandbox.settings
    is_ready = "is ready, with the controllers," if cluster.has_policies else "is ready"
    lines = (f"export KUBECONFIG={path}", *(_POLICIES if cluster.has_policies else _WORKLOADS))
    commands = "".join(f"  {line}\n" for line in lines)
    pages = f"Reports and playground: {cluster.ui}\n\n" if cluster.ui else ""
    pages += f"Image registry: {cluster.registry} (plain HTTP)\n\n" if cluster.registry else ""
    first = f"Kubernetes {settings.kube_version} {is_ready} at {cluster.sandbox.url}"
    return f"{first}\n\n{commands}\n{pages}Ctrl+C stops it.\n"


async def _exec(words: Sequence[str], kubeconfig: str, registry: str, stopping: asyncio.Event) -> int:
    """Run a command until it ends; a signal that stops the sandbox is passed on to it."""
    try:
        found = {"KUBECONFIG": kubeconfig, **({"REGISTRY": registry} if registry else {})}
        process = await asyncio.create_subprocess_exec(*words, env={**os.environ, **found})
    except OSError as error:
        raise UsageError(f"`{words[0]}` cannot be run: {(error.strerror or str(error)).lower()}") from None
    ended = asyncio.ensure_future(process.wait())
    stopped = asyncio.ensure_future(stopping.wait())
    await asyncio.wait((ended, stopped), return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        process.terminate()
    stopped.cancel()
    code = await ended
    return code if code >= 0 else 128 - code
