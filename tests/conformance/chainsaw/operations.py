"""The operations of scenario steps: one function each, performed until it holds or its time is up.

An operation that expects a refusal gets it from the cluster, in the words that a client reads. This module must never
look at what a scenario is called.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kubesandbox.types.resources import ResourceType
from pyverno.cluster.client import Client
from pyverno.errors import HostError, PyvernoError
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.kube.yaml.documents import expand_lists, load_documents
from tests.conformance.chainsaw.assertions import mismatches
from tests.conformance.chainsaw.cluster import Cluster
from tests.conformance.chainsaw.configuration import Configuration, seconds
from tests.conformance.chainsaw.expressions import substitute
from tests.conformance.chainsaw.failure import ScenarioFailure
from tests.conformance.chainsaw.scripts import run_program
from tests.conformance.outcome import NotRun

__all__ = ["OPERATIONS", "Context", "located", "perform"]

_POLL: Final = 0.05
_SLEEP_SCALE: Final = 0.02
_ERROR_TIMEOUT: Final = "90s"
_STEP_SECONDS: Final = 10.0
_SCRIPT_SECONDS: Final = 60.0
_STRICT: Final = {"fieldValidation": "Strict"}


@dataclass(frozen=True, slots=True)
class Context:
    """The context of an operation: the cluster, the folder and the namespace of its scenario, and its bindings.

    `copy` is a copy of the folder and `kubeconfig` one of the cluster's; scripts may write to both.
    """

    cluster: Cluster
    folder: Path
    namespace: str
    bindings: Mapping[str, Any]
    copy: Path
    kubeconfig: Path
    configuration: Configuration = field(default_factory=Configuration)
    patience: float = 3.0

    def with_bindings(self, entries: list[JSONObject]) -> Context:
        """Return a context with more names; an entry may use those before it."""
        bindings = dict(self.bindings)
        for entry in entries:
            bindings[substitute(entry["name"], bindings)] = substitute(entry["value"], bindings)
        return replace(self, bindings=bindings)


Operation = Callable[[Context, JSONObject], Awaitable[None]]


async def perform(context: Context, operation: JSONObject) -> None:
    """Perform one operation of a step; raises ScenarioFailure without the expected outcome."""
    name = next((name for name in operation if name in OPERATIONS), None)
    if name is None:
        raise NotRun(f"operation `{next(iter(operation))}` is not run")
    detail = operation[name]
    configuration = replace(context.configuration, templates=detail.get("template", context.configuration.templates))
    context = replace(context, configuration=configuration, patience=configuration.patience(name, detail))
    context = context.with_bindings(detail.get("bindings") or [])
    try:
        await OPERATIONS[name](context, detail)
    except ScenarioFailure as failure:
        raise ScenarioFailure(f"{name} {detail.get('file') or ''}: {failure}") from None


# ------------------------------------------------------------------------------------------------------- the documents


def _documents(context: Context, detail: JSONObject) -> Iterator[JSONObject]:
    """Yield the documents of an operation, with expressions in their texts evaluated."""
    if "resource" in detail:
        bodies = [detail["resource"]]
    else:
        bodies = list(_files(context, str(substitute(detail["file"], context.bindings))))
    for body in bodies:
        yield substitute(body, context.bindings) if context.configuration.templates else body


def _files(context: Context, name: str) -> Iterator[JSONObject]:
    for path in located(context.copy, name) if (context.copy / name).exists() else located(context.folder, name):
        try:
            documents = list(
                expand_lists(load_documents(context.cluster.read(path), file=path.name, duplicate_keys="last"))
            )
        except (OSError, PyvernoError) as error:
            raise ScenarioFailure(f"`{name}` cannot be read: {error}") from None
        for body in (document.value for document in documents if document.value is not None):
            # a document with items is a list for chainsaw, also without a kind
            is_list = isinstance(body, dict) and "kind" not in body and isinstance(body.get("items"), list)
            yield from body["items"] if is_list else (body,)


def located(folder: Path, name: str) -> list[Path]:
    """Return the files that a name or a pattern means, relative to the folder of a scenario."""
    # Go joins an absolute path to the folder as well
    name = name.lstrip("/")
    return sorted(folder.glob(name)) if re.search(r"[*?\[]", name) else [folder / name]


def _placed(context: Context, body: JSONObject) -> tuple[ResourceType, JSONObject]:
    """Return the resource of a document, and the document in the namespace of the scenario where it names none."""
    found = context.cluster.type_of(body)
    metadata = body.get("metadata") or {}
    if found.namespaced and not metadata.get("namespace"):
        return found, {**body, "metadata": {**metadata, "namespace": context.namespace}}
    if not found.namespaced and "namespace" in metadata:
        body = {**body, "metadata": {key: value for key, value in metadata.items() if key != "namespace"}}
    return found, body


def _name(body: JSONObject) -> str:
    metadata = body.get("metadata") or {}
    place = [metadata.get("namespace"), metadata.get("name") or metadata.get("generateName")]
    return "/".join([str(body.get("kind")), *(str(part) for part in place if part)])


# ---------------------------------------------------------------------------------------------------------- the writes


async def _post(client: Client, found: ResourceType, body: JSONObject) -> JSONObject:
    return await client.create(found.gvr, body, body["metadata"].get("namespace") or "", query=_STRICT)


async def _read(client: Client, found: ResourceType, body: JSONObject) -> JSONObject:
    return await client.get(found.gvr, body["metadata"].get("name") or "", body["metadata"].get("namespace") or "")


async def _merge(client: Client, found: ResourceType, body: JSONObject) -> JSONObject:
    """Patch the existing object; its resource version must be unchanged since the read."""
    before = await _read(client, found, body)
    metadata = {**body["metadata"], "resourceVersion": before["metadata"]["resourceVersion"]}
    name, namespace = metadata["name"], metadata.get("namespace") or ""
    return await client.patch(found.gvr, name, {**body, "metadata": metadata}, namespace, query=_STRICT)


async def _put(client: Client, found: ResourceType, body: JSONObject) -> JSONObject:
    before = await _read(client, found, body)
    metadata = {**body["metadata"], "resourceVersion": before["metadata"]["resourceVersion"]}
    namespace = metadata.get("namespace") or ""
    return await client.update(found.gvr, {**body, "metadata": metadata}, namespace, query=_STRICT)


async def _apply(client: Client, found: ResourceType, body: JSONObject) -> JSONObject:
    if not body["metadata"].get("name"):
        return await _post(client, found, body)
    try:
        return await _merge(client, found, body)
    except StatusError as error:
        if error.status != 404:
            raise
        return await _post(client, found, body)


Write = Callable[[Client, ResourceType, JSONObject], Awaitable[JSONObject]]


def _writing(write: Write) -> Operation:
    async def run(context: Context, detail: JSONObject) -> None:
        for body in _documents(context, detail):
            await _until_done(context, lambda body=body: _written(context, write, body, detail))  # type: ignore[misc]

    return run


async def _written(context: Context, write: Write, body: JSONObject, detail: JSONObject) -> str:
    """Write one document once; return how the outcome differs from the expected one, or an empty text."""
    refused = None
    try:
        found, body = _placed(context, body)
        stored = await write(context.cluster.client, found, body)
    except StatusError as error:
        refused = error.message
    else:
        await context.cluster.settled(found, stored)
    problem = _unexpected(context, body, detail, refused)
    return problem and f"{_name(body)}: {problem}"


def _unexpected(context: Context, body: JSONObject, detail: JSONObject, error: str | None) -> str:
    bindings = {**context.bindings, "error": error}
    checked = False
    for expectation in detail.get("expect") or ():
        match = expectation.get("match")
        if match is not None and any(mismatches(match, body, bindings)):
            continue
        checked = True
        problems = list(mismatches(expectation["check"], body, bindings))
        if problems:
            said = f"refused: {error}" if error is not None else "accepted"
            return f"{said}, but {'; '.join(problems)}"
    return f"refused: {error}" if error is not None and not checked else ""


async def _delete(context: Context, detail: JSONObject) -> None:
    reference = detail.get("ref")
    if reference is None:
        bodies = list(_documents(context, detail))
    else:
        reference = substitute(reference, context.bindings)
        metadata = {key: reference[key] for key in ("name", "namespace", "labels") if key in reference}
        bodies = [{"apiVersion": reference["apiVersion"], "kind": reference["kind"], "metadata": metadata}]
    for body in bodies:
        found, placed = _placed(context, body)
        for each in await _candidates(context, found, placed):
            await _until_done(
                context,
                lambda each=each, found=found: _deleted(context, found, each, detail),  # type: ignore[misc]
            )


async def _deleted(context: Context, found: ResourceType, body: JSONObject, detail: JSONObject) -> str:
    """Delete an object in the background and wait until it is gone."""
    client = context.cluster.client
    name, namespace = body["metadata"]["name"], body["metadata"].get("namespace") or ""
    refused = None
    try:
        await client.delete(found.gvr, name, namespace, options={"propagationPolicy": "Background"})
        while True:
            await client.get(found.gvr, name, namespace)
            await asyncio.sleep(_POLL)
    except StatusError as error:
        if error.status != 404:
            refused = error.message
    if refused is None:
        await context.cluster.settled(found, body, is_gone=True)
    problem = _unexpected(context, body, detail, refused)
    return problem and f"{_name(body)}: {problem}"


# ------------------------------------------------------------------------------------------------------------ the reads


async def _candidates(context: Context, found: ResourceType, body: JSONObject) -> list[JSONObject]:
    """Return the objects that a document names, or those with its labels where it has no name."""
    metadata = body.get("metadata") or {}
    namespace = metadata.get("namespace") or ""
    try:
        if metadata.get("name"):
            return [await _read(context.cluster.client, found, body)]
        labels = metadata.get("labels") or {}
        query = {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())} if labels else {}
        listed = await context.cluster.client.list(found.gvr, namespace, query=query)
    except StatusError as error:
        if error.status != 404:
            raise ScenarioFailure(error.message) from None
        return []
    head = {"apiVersion": listed.get("apiVersion"), "kind": found.kind}
    return [{**head, **item} for item in listed["items"]]


async def _assert(context: Context, detail: JSONObject) -> None:
    for body in _documents(context, detail):
        await _until_done(context, lambda body=body: _missing(context, body))  # type: ignore[misc]


async def _error(context: Context, detail: JSONObject) -> None:
    cluster, left = context.cluster, seconds(str(detail.get("timeout", _ERROR_TIMEOUT)))
    for body in _documents(context, detail):
        while cluster.moves_clock and left > 0 and await _present(context, body):
            await cluster.pass_time(_STEP_SECONDS)
            left -= _STEP_SECONDS
        await _until_done(context, lambda body=body: _present(context, body))  # type: ignore[misc]


async def _missing(context: Context, body: JSONObject) -> str:
    """Return why no object is what a document asserts, or an empty text."""
    found, placed = _looked_up(context, body)
    if found is None:
        return f"{_name(body)}: there is no such kind"
    candidates = await _candidates(context, found, placed)
    installed = [context.cluster.as_installed(each) for each in candidates]
    problems = [list(mismatches(placed, each, context.bindings)) for each in installed]
    if any(not each for each in problems):
        return ""
    if not problems:
        return f"{_name(placed)}: there is no such object"
    nearest = min(problems, key=len)
    return f"{_name(placed)}: {'; '.join(nearest)}"


async def _present(context: Context, body: JSONObject) -> str:
    """Return the name of an object that matches a document although none should, or ""."""
    found, placed = _looked_up(context, body)
    if found is None:
        return ""
    for each in await _candidates(context, found, placed):
        if not any(mismatches(placed, each, context.bindings)):
            return f"{_name(each)}: there is such an object"
    return ""


def _looked_up(context: Context, body: JSONObject) -> tuple[ResourceType | None, JSONObject]:
    try:
        return _placed(context, body)
    except StatusError:
        return None, body


async def _wait(context: Context, detail: JSONObject) -> None:
    """Wait for a condition of objects, or until they are gone."""
    metadata = {key: detail[key] for key in ("name", "namespace") if key in detail}
    body = {"apiVersion": detail["apiVersion"], "kind": detail["kind"], "metadata": metadata}
    wanted = detail["for"]
    found, placed = _placed(context, substitute(body, context.bindings))

    async def missing() -> str:
        candidates = await _candidates(context, found, placed)
        if "deletion" in wanted:
            return "there still is such an object" if candidates else ""
        condition = wanted["condition"]
        status = condition.get("value", "true").lower()
        pairs = [
            (each.get("type", "").lower(), str(each.get("status")).lower())
            for candidate in candidates
            for each in candidate.get("status", {}).get("conditions", ())
        ]
        return "" if (condition["name"].lower(), status) in pairs else f"condition {condition['name']} does not hold"

    await _until_done(context, missing)


# ---------------------------------------------------------------------------------------------------------- the scripts


async def _script(context: Context, detail: JSONObject) -> None:
    await _run(context, ["sh", "-c", detail["content"]], detail)


async def _command(context: Context, detail: JSONObject) -> None:
    arguments = [str(substitute(each, context.bindings)) for each in detail.get("args") or ()]
    await _run(context, [detail["entrypoint"], *arguments], detail)


async def _run(context: Context, arguments: list[str], detail: JSONObject) -> None:
    """Run a program; it must succeed, or satisfy its check."""
    given = {each["name"]: str(substitute(each["value"], context.bindings)) for each in detail.get("env") or ()}
    environment = {"KUBECONFIG": str(context.kubeconfig), "NAMESPACE": context.namespace, **given}
    limit = min(seconds(str(detail.get("timeout", "30s"))), _SCRIPT_SECONDS)
    result = await run_program(arguments, folder=context.copy, environment=environment, seconds=limit)
    await context.cluster.quiet()
    said = "; ".join(f"{key}: {text}" for key, text in result.items() if text)
    if "check" not in detail:
        if result["error"]:
            raise ScenarioFailure(said)
        return
    problems = list(mismatches(detail["check"], None, {**context.bindings, **result}))
    if problems:
        raise ScenarioFailure(f"{'; '.join(problems)} ({said})")


# ------------------------------------------------------------------------------------------------------------- the time


async def _sleep(context: Context, detail: JSONObject) -> None:
    """Wait a fraction of the time, because the controller has finished its work when a write returns."""
    waited = seconds(detail["duration"])
    await asyncio.sleep(waited * _SLEEP_SCALE)
    if context.cluster.moves_clock:
        await context.cluster.pass_time(waited)


async def _until_done(context: Context, attempt: Callable[[], Awaitable[str]]) -> None:
    """Try again until an attempt has no problem, or patience ends with the last one."""
    end = time.monotonic() + context.patience
    while True:
        try:
            problem = await attempt()
        except (HostError, TimeoutError) as error:
            raise ScenarioFailure(f"the cluster does not answer: {error}") from None
        if not problem:
            return
        if time.monotonic() > end:
            raise ScenarioFailure(problem)
        await asyncio.sleep(_POLL)


OPERATIONS: Final[Mapping[str, Operation]] = {
    "apply": _writing(_apply),
    "create": _writing(_post),
    "update": _writing(_put),
    "patch": _writing(_merge),
    "delete": _delete,
    "assert": _assert,
    "error": _error,
    "wait": _wait,
    "sleep": _sleep,
    "script": _script,
    "command": _command,
}
