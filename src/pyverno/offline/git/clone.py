"""Policies in git repositories: addresses, and clones of one commit into a temporary folder.

The git program does the work, without prompts, hooks or symbolic links, and within limits of time, memory, bytes and
files. Redirects are followed here, because git would take them anywhere. A password, that of the address included, goes
to git through its environment only, for the one host that the address names; it never is in a command line, in an
error text or in what other programs remember.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from pyverno.errors import UsageError
from pyverno.offline.folderrules import has_control
from pyverno.offline.git.process import LIMITS, GitLimits, closed_environment, entries, run_git, server_environment
from pyverno.value import dataclass, field, replace

# trust rows: git-clone

__all__ = ["Credentials", "GitSource", "cloned", "is_git_url", "parse_git_url"]

DEFAULT_BRANCH = "main"
_REFS: Final = "/info/refs?service=git-upload-pack"
_REDIRECTS: Final = tuple(f"returned error: {status}" for status in (301, 302, 303, 307, 308))
_REDIRECT_SECONDS: Final = 30.0
_MOST_REDIRECTS: Final = 3
_TASK: Final = "failed to clone repository"


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
        # files are written without the filters of the user, which the repository's attributes would choose
        environment = closed_environment(self._folder / "home")  # guard: a clone is written without filters
        code, listed, words = self._run(("-C", "clone", "ls-tree", "-r", "-t", "-l", "-z", "HEAD"), environment)
        if code == 0:
            _check_files(source.url, listed, self._limits)
            code, _, words = self._run(("-C", "clone", "reset", "--quiet", "--hard"), environment)
        if code != 0:
            raise UsageError(f"failed to clone repository ({words})")

    def _clone(
        self, source: GitSource, credentials: Credentials | None, settings: Sequence[str] = ()
    ) -> tuple[int, Path, str]:
        words = (
            *settings,
            "clone",
            "--quiet",
            "--template=",  # no hooks and no configuration
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
    for number, each in enumerate(entries(listed, _TASK), start=1):
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


def _environment(source: GitSource, credentials: Credentials | None) -> Mapping[str, str]:
    environment = server_environment()
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
