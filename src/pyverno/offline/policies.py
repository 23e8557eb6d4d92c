"""The policy arguments of a command, read into documents.

An argument is a file, a folder, a glob, `-` for standard input, the address of a git repository, or a name of the
policy library such as `@pod-security/restricted`.

A folder may hold other things beside policies (tests, manifests): documents of other API groups are left out
there, while a file that is named itself must hold policies only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyverno.errors import PyvernoError
from pyverno.kube.yaml.documents import Document, expand_lists
from pyverno.offline.files import STDIN, Loaded, check_local, load_files
from pyverno.offline.manifests import is_web_address
from pyverno.policy.kinds import POLICY_KINDS, find_kind

if TYPE_CHECKING:
    from pyverno.offline.git import Credentials, GitSource

__all__ = ["load_policy_documents"]

_OWN_GROUPS = frozenset({"kyverno.io", "policies.kyverno.io"})
_GROUPS = frozenset(kind.group for kind in POLICY_KINDS)


def load_policy_documents(
    sources: Sequence[str],
    *,
    git_branch: str = "",
    credentials: Credentials | None = None,
    stdin: bytes | None = None,
) -> Loaded:
    """Read policies; Kubernetes lists become their items. One bad source is one error, the others are still read."""
    loaded = Loaded()
    branch = git_branch
    for text in sources:
        try:
            if is_web_address(text):
                from pyverno.offline.git import parse_git_url  # most policies are files

                source = parse_git_url(text, branch)
                # COMPAT: the branch of the first address holds for those after it (F2.3)
                branch = source.branch
                _take(loaded, _from_git(source, credentials), is_folder=True)
            elif text.startswith("@"):
                from pyverno.offline.policylibrary import find_controls  # as above

                _take(loaded, load_files([str(control.path) for control in find_controls(text)]), is_folder=False)
            else:
                check_local(text)
                found = load_files([text], stdin=stdin if text == STDIN else None)
                _take(loaded, found, is_folder=text != STDIN and Path(text).is_dir())
        except PyvernoError as error:
            loaded.errors.append(error)
    return loaded


def _from_git(source: GitSource, credentials: Credentials | None) -> Loaded:
    from pyverno.offline.git import cloned  # as above

    with cloned(source, credentials) as folder:
        return load_files([str(folder)])


def _take(loaded: Loaded, found: Loaded, *, is_folder: bool) -> None:
    documents = expand_lists(found.documents)
    loaded.documents.extend(_policies_only(documents) if is_folder else documents)
    loaded.errors.extend(found.errors)


def _policies_only(documents: Iterable[Document]) -> list[Document]:
    return [document for document in documents if _may_be_policy(document)]


def _may_be_policy(document: Document) -> bool:
    """Tell whether a document belongs to a policy group; a misspelt kind of ours still does."""
    value = document.value
    api_version, kind = (value.get("apiVersion"), value.get("kind")) if isinstance(value, dict) else (None, None)
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return False
    group = api_version.rpartition("/")[0]
    return group in _OWN_GROUPS or (group in _GROUPS and find_kind(group, kind) is not None)
