"""One scenario: its steps in order, in a namespace of its own, until one of them fails.

This module must never know a kind.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pyverno.errors import PyvernoError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.kube.yaml.documents import load_documents
from tests.conformance.chainsaw.cluster import Cluster
from tests.conformance.chainsaw.configuration import configuration_of
from tests.conformance.chainsaw.expressions import substitute
from tests.conformance.chainsaw.failure import ScenarioFailure
from tests.conformance.chainsaw.operations import Context, perform
from tests.conformance.chainsaw.scripts import copy_folder, copy_kubeconfig

__all__ = ["perform_all", "perform_step", "run_scenario"]

_SECTIONS: Final = ("try", "catch", "finally", "cleanup")
_NAMESPACES: Final = GVR("", "v1", "namespaces")


async def run_scenario(cluster: Cluster, path: Path) -> list[str]:
    """Perform the scenarios of a file and clean up after them; return the steps that failed, with why."""
    failed: list[str] = []
    for scenario in _read(cluster, path):
        try:
            with tempfile.TemporaryDirectory(prefix="scenario-") as scratch:
                await _run(cluster, path.parent, Path(scratch), scenario)
        except ScenarioFailure as failure:
            failed.append(str(failure))
        finally:
            await cluster.restore()
    return failed


def _read(cluster: Cluster, path: Path) -> Iterator[JSONObject]:
    for document in load_documents(cluster.read(path), file=path.name):
        if document.value is not None:
            yield document.value


async def _run(cluster: Cluster, folder: Path, scratch: Path, scenario: JSONObject) -> None:
    spec = scenario["spec"]
    copy = copy_folder(folder, scratch, cluster.read) if _runs_programs(spec["steps"]) else folder
    kubeconfig = copy_kubeconfig(Path(cluster.kubeconfig), scratch)
    namespace = spec.get("namespace") or f"chainsaw-{secrets.token_hex(4)}"
    version = await cluster.client.request("GET", "/version")
    bindings = {"namespace": namespace, "test": scenario, "error": None, "server_version": version}
    namespace = substitute(namespace, bindings)
    configuration = configuration_of(folder.resolve(), cluster.read).with_timeouts(spec.get("timeouts") or {})
    configuration = replace(configuration, templates=spec.get("template", configuration.templates))
    context = Context(cluster, folder, namespace, bindings, copy, kubeconfig, configuration)
    context = context.with_bindings(spec.get("bindings") or [])
    await _make_namespace(cluster, namespace, spec.get("namespaceTemplate") or {})
    last: list[tuple[Context, str, list[JSONObject]]] = []
    failures: list[ScenarioFailure] = []
    try:
        for number, step in enumerate(spec["steps"], 1):
            await perform_step(context, step, f"step {step.get('name') or number}", last)
    except ScenarioFailure as failure:
        failures.append(failure)
    finally:
        # a step cleans up at the end of the scenario, the last step first
        for where, name, operations in reversed(last):
            failures += await perform_all(where, operations, f"{name}, cleanup")
    if failures:
        raise failures[0]


def _runs_programs(steps: list[JSONObject]) -> bool:
    names = (
        name for step in steps for section in _SECTIONS for operation in step.get(section) or () for name in operation
    )
    return any(name in ("script", "command") for name in names)


async def _make_namespace(cluster: Cluster, name: str, template: JSONObject) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", **template}
    body["metadata"] = {**(template.get("metadata") or {}), "name": name}
    with suppress(StatusError):  # it may be there already
        stored = await cluster.client.create(_NAMESPACES, body)
        await cluster.settled(cluster.type_of(body), stored)


async def perform_all(context: Context, operations: list[JSONObject], name: str) -> list[ScenarioFailure]:
    """Perform all operations, also after one that fails; return the failures."""
    failures: list[ScenarioFailure] = []
    for number, operation in enumerate(operations, 1):
        try:
            await perform(context, operation)
        except ScenarioFailure as failure:
            failures.append(ScenarioFailure(f"{name}, {number}. {failure}"))
    return failures


async def perform_step(
    context: Context, step: JSONObject, name: str, last: list[tuple[Context, str, list[JSONObject]]]
) -> None:
    """Perform the operations of a step and note its clean-up; raises the first ScenarioFailure, also of `finally`."""
    configuration = context.configuration.with_timeouts(step.get("timeouts") or {})
    configuration = replace(configuration, templates=step.get("template", configuration.templates))
    context = replace(context, configuration=configuration)
    context = context.with_bindings(step.get("bindings") or [])
    step, context = _used(context, step)
    last.append((context, name, step.get("cleanup") or []))
    failures: list[ScenarioFailure] = []
    try:
        for number, operation in enumerate(step.get("try") or (), 1):
            try:
                await perform(context, operation)
            except ScenarioFailure as failure:
                failures.append(ScenarioFailure(f"{name}, {number}. {failure}"))
                break
    finally:
        failures += await perform_all(context, step.get("finally") or [], f"{name}, finally")
    if failures:
        raise failures[0]


def _used(context: Context, step: JSONObject) -> tuple[JSONObject, Context]:
    """Return the operations of a step: its own, or those of the template that it uses."""
    use: Any = step.get("use")
    if not use:
        return step, context
    given = (use.get("with") or {}).get("bindings") or []
    path = Path(os.path.normpath(context.folder / str(substitute(use["template"], context.bindings)).lstrip("/")))
    try:
        (template,) = _read(context.cluster, path)
    except (OSError, PyvernoError) as error:
        raise ScenarioFailure(f"the template `{use['template']}` cannot be read: {error}") from None
    spec = template["spec"]
    defaults = [entry for entry in spec.get("bindings") or [] if entry["name"] not in {each["name"] for each in given}]
    # what is given is written in the words of the step, not of the template
    known = context.with_bindings(given)
    return {**step, **spec}, replace(context, bindings=known.bindings).with_bindings(defaults)
