"""The policy arguments of a command, read into documents.

An argument is a file, a folder, a glob, `-` for standard input, the address of a git repository, or a name of the
policy library such as `@pod-security/restricted`.

A folder may hold other files beside policies (tests, manifests): documents of other API groups are left out
there, while a file that is named itself must hold policies only. An API group that is nearly one of policies is an
error in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import JSON
from pyverno.kube.yaml.documents import Document, expand_lists
from pyverno.offline.files import STDIN, DocumentCache, Loaded, check_local, load_files
from pyverno.offline.folderrules import COMMAND_FILE, FolderRules
from pyverno.offline.manifests import is_web_address
from pyverno.policy.kinds import POLICY_KINDS, find_kind

if TYPE_CHECKING:
    from pyverno.offline.git.clone import Credentials, GitSource

__all__ = ["POLICY_GROUPS", "load_policy_documents"]

_OWN_GROUPS = frozenset({"kyverno.io", "policies.kyverno.io"})
POLICY_GROUPS = frozenset(kind.group for kind in POLICY_KINDS)
"""The API groups of all policy kinds."""

_OWN_KINDS = {kind.kind: kind.group for kind in POLICY_KINDS if kind.group in _OWN_GROUPS}
_OTHER_GROUPS = frozenset({"json.kyverno.io", "chainsaw.kyverno.io"})
"""API groups of other tools of Kyverno, with kinds of the same names."""

_CLOSE = 0.7


def load_policy_documents(
    sources: Sequence[str],
    *,
    git_branch: str = "",
    credentials: Credentials | None = None,
    stdin: bytes | None = None,
    folders: FolderRules | None = None,
    cache: DocumentCache | None = None,
) -> Loaded:
    """Read policies; Kubernetes lists become their items. One bad source is one error, the others are still read.

    `folders` states which files of folders are read; with it, an API group that is nearly one of policies is an error.
    """
    loaded = Loaded()
    branch = git_branch
    for text in sources:
        try:
            if is_web_address(text):
                from pyverno.offline.git.clone import parse_git_url  # most policies are files

                source = parse_git_url(text, branch)
                # COMPAT: the branch of the first address holds for those after it (F2.3)
                branch = source.branch
                found, is_folder = _from_git(source, credentials, folders), True
            elif text.startswith("@"):
                from pyverno.offline.policylibrary import find_controls  # as above

                found, is_folder = load_files([str(control.path) for control in find_controls(text)]), False
            else:
                check_local(text)
                read = stdin if text == STDIN else None
                found = load_files([text], stdin=read, folders=folders, cache=cache)
                is_folder = text != STDIN and Path(text).is_dir()
            if folders is not None:
                _refuse_misspelt(found)
            _take(loaded, found, is_folder=is_folder)
        except PyvernoError as error:
            loaded.errors.append(error)
    return loaded


def _from_git(source: GitSource, credentials: Credentials | None, folders: FolderRules | None) -> Loaded:
    from pyverno.offline.git.clone import cloned  # as above

    with cloned(source, credentials) as folder:
        return load_files([str(folder)], folders=folders)


def _take(loaded: Loaded, found: Loaded, *, is_folder: bool) -> None:
    documents = expand_lists(found.documents)
    loaded.documents.extend(_policies_only(documents) if is_folder else documents)
    loaded.errors.extend(found.errors)
    loaded.skipped.extend(each for each in found.skipped if each.reason != COMMAND_FILE)


def _refuse_misspelt(found: Loaded) -> None:
    """Move documents whose API group is nearly one of policies to the errors."""
    kept: list[Document] = []
    for document in found.documents:
        meant = _misspelt_group(document.value)
        if not meant:
            kept.append(document)
            continue
        api_version = document.value["apiVersion"]
        version = api_version.rpartition("/")[2] if "/" in api_version else "v1"
        text = f"`{api_version}` is no API of policies: did you mean `{meant}/{version}`?"
        found.errors.append(UsageError(text, location=document.location(("apiVersion",))))
    found.documents = kept


def _misspelt_group(value: JSON) -> str:
    """Return the API group that a document of a policy kind was probably meant for, "" when its group is right."""
    kind, api_version = (value.get("kind"), value.get("apiVersion")) if isinstance(value, dict) else (None, None)
    if not isinstance(kind, str) or kind not in _OWN_KINDS or not isinstance(api_version, str):
        return ""
    group = api_version.rpartition("/")[0]
    if group in _OWN_GROUPS or group in POLICY_GROUPS or group in _OTHER_GROUPS:
        return ""
    meant = _OWN_KINDS[kind]
    if kind != "Policy" and not group:
        return meant
    from difflib import SequenceMatcher  # a group that is right never comes here

    # other projects have kinds of the same name (`nvidia.com/v1` ClusterPolicy)
    return meant if SequenceMatcher(None, group, meant).ratio() >= _CLOSE else ""


def _policies_only(documents: Iterable[Document]) -> list[Document]:
    return [document for document in documents if _may_be_policy(document)]


def _may_be_policy(document: Document) -> bool:
    """Return whether a document belongs to a policy group; a misspelt kind of ours still does."""
    value = document.value
    api_version, kind = (value.get("apiVersion"), value.get("kind")) if isinstance(value, dict) else (None, None)
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return False
    group = api_version.rpartition("/")[0]
    return group in _OWN_GROUPS or (group in POLICY_GROUPS and find_kind(group, kind) is not None)
