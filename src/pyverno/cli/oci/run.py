"""Push and pull of policies: what is sent is compiled before, what is received is read before it is written."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from pyverno.cli.terminal import STDERR, STDOUT
from pyverno.compiler import compile_documents
from pyverno.engine.imagesource import ImageAccess
from pyverno.errors import PyvernoError, UsageError, ValueSyntaxError
from pyverno.kube.imageref.reference import ImageReference, parse_reference
from pyverno.kube.yaml.documents import Document, expand_lists, load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.policies import load_policy_documents
from pyverno.policy.kinds import find_kind
from pyverno.registry.artifacts import PolicyLayer, pull_policies, push_policies
from pyverno.registry.client import RegistryClient, Repository
from pyverno.registry.credentials import credentials_for
from pyverno.registry.owncredentials import own_credentials
from pyverno.registry.transport import Transport
from pyverno.sinks.characters import one_line
from pyverno.sinks.filenames import file_name, inside

__all__ = ["pull", "push"]

T = TypeVar("T")
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def push(source: str, image: str, *, allows_http: bool) -> None:
    """Push the policies of a file or folder; raises UsageError before anything is sent for one that is invalid."""
    reference = _parse(image)
    if reference.digest:
        raise UsageError("--image must have a tag: the digest follows from the policies")
    loaded = load_policy_documents([source])
    problems = [*loaded.errors, *compile_documents(loaded.documents).errors]
    if problems:
        raise problems[0]
    layers = [_layer(each) for each in expand_lists(loaded.documents)]
    if not layers:
        raise UsageError(f"there are no policies in {source}")

    async def work(transport: Transport, repository: Repository) -> str:
        return await push_policies(transport, repository, reference, layers)

    for each in layers:
        STDERR.write(one_line(f"adding {each.kind} {each.name}") + "\n")
    digest = _run(reference, work, allows_http=allows_http)
    STDOUT.write(f"{reference.repository}@{digest}\n")


def pull(image: str, folder: str, *, allows_http: bool) -> None:
    """Write the policies of an artifact into a folder, one file each; nothing is written when one is refused."""
    reference = _parse(image)

    async def work(transport: Transport, repository: Repository) -> list[bytes]:
        return [*await pull_policies(RegistryClient(transport), repository, reference)]

    documents: dict[Path, Document] = {}
    for index, body in enumerate(_run(reference, work, allows_http=allows_http)):
        for document in load_documents(body, file=f"{image} layer {index}"):
            path = inside(Path(folder), file_name(_policy_name(document), ".yaml"))
            if path in documents:
                raise UsageError(f"the artifact has two policies for {path}")
            documents[path] = document
    Path(folder).mkdir(parents=True, exist_ok=True)
    for path, document in documents.items():
        path.write_text(dump_yaml(document.value), encoding="utf-8")
        STDOUT.write(f"{one_line(str(path))}\n")


def _parse(image: str) -> ImageReference:
    try:
        return parse_reference(image)
    except ValueSyntaxError as error:
        raise UsageError(f"--image: {error.message}") from None


def _layer(document: Document) -> PolicyLayer:
    body = document.value
    name, kind, api_version = _policy_name(document), str(body["kind"]), str(body["apiVersion"])
    return PolicyLayer(kind, name, api_version, dump_yaml(body).encode())


def _policy_name(document: Document) -> str:
    """Return the name of a policy, which becomes the name of a file; raises UsageError for anything else."""
    body = document.value if isinstance(document.value, dict) else {}
    group, slash, _ = str(body.get("apiVersion")).partition("/")
    if find_kind(group if slash else "", str(body.get("kind"))) is None:
        raise UsageError("the document is no policy", location=document.location())
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError("the policy has no valid name", location=document.location())
    return name


def _run(reference: ImageReference, work: Callable[[Transport, Repository], Awaitable[T]], *, allows_http: bool) -> T:
    async def run() -> T:
        sources = await own_credentials().sources(ImageAccess(), reference.registry)
        credentials = credentials_for(reference.registry, reference.path, sources)
        transport = Transport()
        try:
            return await work(transport, Repository.of(reference, credentials, allows_http=allows_http))
        finally:
            await transport.close()

    try:
        return asyncio.run(run())
    except PyvernoError as error:
        raise UsageError(f"{reference}: {error.message}") from None
