"""Policies in git repositories: addresses, and clones of one commit into a temporary folder.

The git program does the work, without prompts, hooks or symbolic links. A password, that of the address included, goes
to git through its environment only, for the one host that the address names; it never is in a command line, in an
error text or in what other programs remember.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from pyverno.errors import UsageError
from pyverno.value import dataclass, field, replace

__all__ = ["Credentials", "GitSource", "cloned", "is_git_url", "parse_git_url"]

DEFAULT_BRANCH = "main"
TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Credentials:
    """User name and password (or token); used only when both are given."""

    username: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return "Credentials(...)"

    @property
    def are_given(self) -> bool:
        """Return whether both parts are there."""
        return bool(self.username and self.password)


@dataclass(frozen=True, slots=True)
class GitSource:
    """A folder of a branch of a repository ("" = the whole repository).

    `credentials` are those that stood in the address, which `url` is without.
    """

    url: str
    branch: str = DEFAULT_BRANCH
    directory: str = ""
    credentials: Credentials | None = field(default=None, repr=False)


def is_git_url(text: str) -> bool:
    """Return whether a policy argument is the address of a repository.

    >>> is_git_url("https://github.com/kyverno/policies"), is_git_url("policies/")
    (True, False)
    """
    return text.startswith(("https://", "http://"))


def parse_git_url(text: str, branch: str = "") -> GitSource:
    """Read `https://HOST/OWNER/REPOSITORY[/REST]`: REST is the branch, or a folder where the branch is given.

    The part before `@` becomes the credentials. Raises UsageError when owner or repository is missing.

    >>> parse_git_url("https://github.com/kyverno/policies/release-1.14")
    GitSource(url='https://github.com/kyverno/policies', branch='release-1.14', directory='')
    >>> parse_git_url("https://github.com/kyverno/policies/best-practices", "main").directory
    'best-practices'
    """
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        # its text may quote the password
        raise UsageError("failed to parse URL (it is not an address)") from None
    elements = [element for element in parts.path.split("/") if element]
    if len(elements) < 2 or not host:
        raise UsageError(
            f"failed to parse URL (invalid URL path `{parts.path}`, expected https://HOST/OWNER/REPOSITORY/BRANCH, or "
            "https://HOST/OWNER/REPOSITORY/FOLDER with --git-branch)"
        )
    rest = "/".join(elements[2:])
    if ".." in elements:
        raise UsageError(f"failed to parse URL (invalid URL path `{parts.path}`)")
    url = urlunsplit((parts.scheme, _host(parts), f"/{elements[0]}/{elements[1]}", "", ""))
    if branch:
        return GitSource(url, branch, rest, _in_address(parts))
    return GitSource(url, rest or DEFAULT_BRANCH, "", _in_address(parts))


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _in_address(parts: SplitResult) -> Credentials | None:
    """Return the part before `@`, which may be a token without a password."""
    before, at, _ = parts.netloc.rpartition("@")
    if not at:
        return None
    username, _, password = before.partition(":")
    return Credentials(unquote(username), unquote(password))


@contextmanager
def cloned(source: GitSource, credentials: Credentials | None = None) -> Iterator[Path]:
    """Clone the last commit of a branch; yields the folder that the source names, which is gone afterwards.

    Credentials of the address go before the others. Raises UsageError with git's own words when the repository, the
    branch or the folder does not exist.
    """
    import tempfile

    parts = urlsplit(source.url)
    credentials = (
        source.credentials
        or _in_address(parts)
        or (credentials if credentials is not None and credentials.are_given else None)
    )
    source = replace(source, url=urlunsplit(parts._replace(netloc=_host(parts))))
    for text in (credentials.username, credentials.password) if credentials is not None else ():
        if not text.isprintable():
            raise UsageError("the user name or the password for git has a control character")

    with tempfile.TemporaryDirectory(prefix="pyverno-git-") as folder:
        target = Path(folder) / "clone"
        _clone(source, target, credentials)
        wanted = (target / source.directory).resolve()
        if not wanted.is_relative_to(target.resolve()) or not wanted.exists():
            raise UsageError(f"failed to list YAMLs in repository (`{source.url}` has no folder `{source.directory}`)")
        yield wanted


def _clone(source: GitSource, target: Path, credentials: Credentials | None) -> None:
    import subprocess

    command = [
        "git",
        *("-c", "core.symlinks=false"),
        *("-c", f"core.hooksPath={os.devnull}"),
        "clone",
        "--quiet",
        *("--depth", "1"),
        "--single-branch",
        f"--branch={source.branch}",
        "--no-tags",
        "--",
        source.url,
        str(target),
    ]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program; the address stands behind `--`
            command,
            env=_environment(source, credentials),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise UsageError("failed to clone repository (the program `git` is not installed)") from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"failed to clone repository (no answer within {TIMEOUT_SECONDS:.0f} seconds)") from error
    if done.returncode != 0:
        text = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise UsageError(f"failed to clone repository ({_redact(text, credentials)})")


def _environment(source: GitSource, credentials: Credentials | None) -> Mapping[str, str]:
    # traces of git would contain the data that it sends
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(("GIT_TRACE", "GIT_CURL_VERBOSE"))
    }
    environment = {
        **inherited,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "file:http:https",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "LC_ALL": "C",
    }
    if credentials is not None:
        parts = urlsplit(source.url)
        count = int(environment.get("GIT_CONFIG_COUNT", "0") or 0)
        helper = '!f() { printf "username=%s\\npassword=%s\\n" "$PYVERNO_GIT_USERNAME" "$PYVERNO_GIT_PASSWORD"; }; f'
        # the empty one takes away all other helpers, which would be given the password to keep
        for number, value in enumerate(("", helper), start=count):
            environment[f"GIT_CONFIG_KEY_{number}"] = f"credential.{parts.scheme}://{parts.netloc}.helper"
            environment[f"GIT_CONFIG_VALUE_{number}"] = value
        environment |= {
            "GIT_CONFIG_COUNT": str(count + 2),
            "PYVERNO_GIT_USERNAME": credentials.username,
            "PYVERNO_GIT_PASSWORD": credentials.password,
        }
    return environment


def _redact(text: str, credentials: Credentials | None) -> str:
    """Return git's words without the secret, however it is written; a token may be in the place of a user name."""
    if credentials is None:
        return text
    secret = credentials.password or credentials.username
    for written in (secret, quote(secret, safe="")):
        text = text.replace(written, "***") if written else text
    return text
