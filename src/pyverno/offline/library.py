"""The library's short form: policies from files or text, and one call that reviews an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from pyverno.compiler import Compilation, compile_documents
from pyverno.engine.engine import Engine, Review
from pyverno.engine.host import Host
from pyverno.engine.phases import ADMISSION, Phase
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Operation, Request, User
from pyverno.errors import PolicyError, UsageError, raise_all
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document, expand_lists, load_documents
from pyverno.offline.host import OfflineHost
from pyverno.offline.policies import load_policy_documents
from pyverno.threads import in_thread

__all__ = ["areview", "compile_policies", "load_policies", "review"]

Source: TypeAlias = "str | Path | JSONObject | Document | Iterable[Source]"
"""Sources of policies: a path, YAML text, an object, a document, or several of these."""


def load_policies(*sources: Source) -> PolicySet:
    """Read and compile policies and exceptions from files, folders and globs, from YAML text, or from objects.

    A text with a line break is YAML, any other one is a path; a map is one document; an iterable holds several sources.
    In folders, documents that are no policies are left out. Raises PolicyError (or DocumentError, UsageError) when
    something cannot be read or is not valid; its text names all problems of all policies.

    >>> policies = load_policies('''
    ... apiVersion: kyverno.io/v1
    ... kind: ClusterPolicy
    ... metadata: {name: no-default-namespace}
    ... spec:
    ...   rules:
    ...   - name: namespace
    ...     match: {any: [{resources: {kinds: [Pod]}}]}
    ...     validate:
    ...       failureAction: Enforce
    ...       message: a Pod needs a namespace
    ...       pattern: {metadata: {namespace: "!default"}}
    ... ''')
    >>> len(policies)
    1
    """
    return compile_policies([document for source in sources for document in _documents(source)])


def _documents(source: Source) -> Iterator[Document]:
    if isinstance(source, Document):
        yield from expand_lists([source])
    elif isinstance(source, dict):
        yield from expand_lists([Document(source, "")])
    elif not isinstance(source, (str, Path)):
        for each in source:
            yield from _documents(each)
    elif isinstance(source, str) and "\n" in source:
        yield from expand_lists(load_documents(source))
    elif not str(source).strip():
        raise UsageError("an empty text names no policies: expected a path or YAML")
    else:
        loaded = load_policy_documents([str(source)])
        raise_all(loaded.errors)
        yield from loaded.documents


def compile_policies(documents: Iterable[Document | JSONObject]) -> PolicySet:
    """Compile policy documents, or plain objects; raises PolicyError, whose text names all problems.

    `compile_documents` never raises: it returns what compiled together with the errors of the rest.
    """
    given = [each if isinstance(each, Document) else Document(each, "") for each in documents]
    compilation = compile_documents(given)
    _raise_all(compilation)
    return compilation.policy_set()


def _raise_all(compilation: Compilation) -> None:
    errors = compilation.errors
    if not errors:
        return
    first = errors[0]
    others = "".join(f"\n{error}" for error in errors[1:])
    raise PolicyError(f"{first.message}{others}", location=first.location, path=first.path, code=first.code)


def review(
    resource: JSONObject,
    policies: PolicySet,
    *,
    operation: Operation | str = Operation.CREATE,
    old: JSONObject | None = None,
    user: User | None = None,
    host: Host | None = None,
    phases: Sequence[Phase] = ADMISSION,
) -> Review:
    """Review an object as if it were being applied to a cluster; never raises for a policy.

    `operation` is CREATE, UPDATE, DELETE or CONNECT. `host` answers the reads of rules; the default knows the clock and
    randomness of this machine only, so that rules which read a cluster end with an error, not an invented answer.

    >>> pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}}
    >>> review(pod, PolicySet()).decision.allowed
    True
    """
    request = Request.from_manifest(resource, operation=operation, old=old, user=user if user is not None else User())
    return Engine(policies, host if host is not None else OfflineHost()).review(request, phases)


async def areview(
    resource: JSONObject,
    policies: PolicySet,
    *,
    operation: Operation | str = Operation.CREATE,
    old: JSONObject | None = None,
    user: User | None = None,
    host: Host | None = None,
    phases: Sequence[Phase] = ADMISSION,
) -> Review:
    """Review an object as `review` does, in a thread, so that an event loop is not blocked while rules read.

    >>> import asyncio
    >>> pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}}
    >>> asyncio.run(areview(pod, PolicySet())).decision.allowed
    True
    """

    work = partial(review, resource, policies, operation=operation, old=old, user=user, host=host, phases=phases)
    return await in_thread(work)
