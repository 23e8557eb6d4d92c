"""Policies in git repositories: addresses, and clones of one commit into a temporary folder.

The git program does the work, without prompts, hooks or symbolic links, and within limits of time, memory, bytes and
files. Redirects are followed here, because git would take them anywhere. A password, that of the address included, goes
to git through its environment only, for the one host that the address names; it never is in a command line, in an
error text or in what other programs remember.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from pyverno.errors import UsageError
from pyverno.offline.folderrules import has_control
from pyverno.offline.git.process import LIMITS, GitLimits, run_git
from pyverno.value import dataclass, field, replace

__all__ = ["Credentials", "GitSource", "cloned", "is_git_url", "parse_git_url"]

DEFAULT_BRANCH = "main"
_REFS: Final = "/info/refs?service=git-upload-pack"
_REDIRECTS: Final = tuple(f"returned error: {status}" for status in (301, 302, 303, 307, 308))
_REDIRECT_SECONDS: Final = 30.0
_MOST_REDIRECTS: Final = 3
_PART_BYTES: Final = 64 * 1024
_INHERITED: Final = ("GIT_CONFIG_", "GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_SSL_", "GIT_ASKPASS", "GIT_EXEC_PATH")
"""Prefixes of the variables of git that say how to reach servers."""

_SETTINGS: Final = tuple(
    word
    for setting in (
        "core.symlinks=false",
        f"core.hooksPath={os.devnull}",
        "core.fsmonitor=false",
        "http.followRedirects=false",
        "http.lowSpeedLimit=1",
        "http.lowSpeedTime=60",
        "pack.threads=2",  # each has memory of its own
        "core.packedGitWindowSize=32m",
        "core.bigFileThreshold=16m",
        "gc.auto=0",
        "maintenance.auto=false",
        "submodule.recurse=false",
    )
    for word in ("-c", setting)
)


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
def cloned(source: GitSource, credentials: Credentials | None = None, limits: GitLimits = LIMITS) -> Iterator[Path]:
    """Clone the last commit of a branch; yields the folder that the source names, which is gone afterwards.

    Credentials of the address go before the others. Raises UsageError with git's own words when the repository, the
    branch or the folder does not exist, and for a repository beyond the limits.
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

    with _ending_by_signals(), tempfile.TemporaryDirectory(prefix="pyverno-git-") as folder:
        target = Path(folder) / "clone"
        _Clone(Path(folder), limits).fetch(source, credentials)
        wanted = (target / source.directory).resolve()
        if not wanted.is_relative_to(target.resolve()) or not wanted.exists():
            raise UsageError(f"failed to list YAMLs in repository (`{source.url}` has no folder `{source.directory}`)")
        yield wanted


@contextmanager
def _ending_by_signals() -> Iterator[None]:
    """Let signals that end the program remove temporary folders first."""
    import signal
    import threading

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    changed = []
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, end)
                changed.append(number)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


class _Clone:
    """The steps of a clone in one folder: git fetches the commit, its files are counted, then they are written."""

    def __init__(self, folder: Path, limits: GitLimits) -> None:
        self._folder = folder
        self._limits = limits
        self._deadline = time.monotonic() + limits.seconds

    def fetch(self, source: GitSource, credentials: Credentials | None) -> None:
        """Fetch and write the files of a branch."""
        code, _, words = self._clone(source, credentials)
        if code != 0 and words.endswith(_REDIRECTS):
            moved = replace(source, url=_follow(source.url, self._deadline - time.monotonic()))
            if urlsplit(moved.url).netloc != urlsplit(source.url).netloc:
                credentials = None
            source = moved
            code, _, words = self._clone(source, credentials, _pinned(source.url))
        if code != 0:
            raise UsageError(f"failed to clone repository ({_redact(words, credentials)})")
        environment = _environment(source, None)
        code, listed, words = self._run(("-C", "clone", "ls-tree", "-r", "-t", "-l", "-z", "HEAD"), environment)
        if code == 0:
            _check_files(source.url, listed, self._limits)
            code, _, words = self._run(("-C", "clone", *_SETTINGS, "reset", "--quiet", "--hard"), environment)
        if code != 0:
            raise UsageError(f"failed to clone repository ({words})")

    def _clone(
        self, source: GitSource, credentials: Credentials | None, settings: Sequence[str] = ()
    ) -> tuple[int, Path, str]:
        words = (
            *_SETTINGS,
            *settings,
            "clone",
            "--quiet",
            "--no-checkout",
            *("--depth", "1"),
            "--single-branch",
            f"--branch={source.branch}",
            "--no-tags",
            "--",
            source.url,
            "clone",
        )
        return self._run(words, _environment(source, credentials))

    def _run(self, words: Sequence[str], environment: Mapping[str, str]) -> tuple[int, Path, str]:
        return run_git(
            words, folder=self._folder, environment=environment, deadline=self._deadline, limits=self._limits
        )


def _follow(url: str, seconds: float) -> str:
    """Return the address of a repository that has moved; git itself would go wherever its server sends it."""
    from pyverno.offline.manifests import follow_redirects  # few repositories have moved

    timeout = min(max(seconds, 0.0), _REDIRECT_SECONDS)
    found = follow_redirects(f"{url}{_REFS}", most=_MOST_REDIRECTS, timeout=timeout)
    if not found.endswith(_REFS):
        raise UsageError(f"failed to clone repository (`{url}` redirects to what is no repository)")
    return found.removesuffix(_REFS)


def _pinned(url: str) -> tuple[str, ...]:
    """Return the setting by which git (2.37) connects to addresses that were checked, whatever a name leads to later.

    Behind a proxy the proxy looks up the name.
    """
    import socket
    from ipaddress import ip_address
    from urllib.request import getproxies, proxy_bypass

    from pyverno.addresses import leads_to_metadata

    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or {"http": 80, "https": 443}[parts.scheme]
    if parts.scheme in getproxies() and not proxy_bypass(host):
        return ()
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"failed to clone repository (the name `{host}` cannot be resolved)") from error
    found = list(dict.fromkeys(str(place[0]).partition("%")[0] for *_, place in places))
    if any(leads_to_metadata(ip_address(each)) for each in found):
        raise UsageError(f"failed to clone repository (`{host}` leads to a metadata service)")
    return () if ":" in host else ("-c", f"http.curloptResolve={host}:{port}:{','.join(found)}")


def _check_files(url: str, listed: Path, limits: GitLimits) -> None:
    """Refuse a commit with more files than the limits, or with names that could pass for something else in outputs."""
    size = 0
    for number, each in enumerate(_entries(listed), start=1):
        head, _, name = each.partition(b"\t")
        length = head.split()[-1]
        size += int(length) if length.isdigit() else 0
        if name.count(b"/") > limits.depth:
            raise UsageError(f"failed to clone repository (`{url}` has more than {limits.depth} folders in each other)")
        if has_control(name.decode("utf-8", "replace")):
            raise UsageError(f"failed to clone repository (`{url}` has a file with a control character in its name)")
        if number > limits.files or size > limits.bytes:
            raise UsageError(
                f"failed to clone repository (`{url}` has more than {limits.files} files, or {limits.bytes} bytes)"
            )


def _entries(listed: Path) -> Iterator[bytes]:
    """Yield the entries of a listing, of which a few stay in memory: a small repository can list millions."""
    rest = b""
    with listed.open("rb") as file:
        while part := file.read(_PART_BYTES):
            *whole, rest = (rest + part).split(b"\0")
            yield from filter(None, whole)
            if len(rest) > _PART_BYTES:
                raise UsageError("failed to clone repository (a name of a file is too long)")


def _environment(source: GitSource, credentials: Credentials | None) -> Mapping[str, str]:
    # the others name the repository of a hook, or trace the data that git sends
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key.startswith(_INHERITED)
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
