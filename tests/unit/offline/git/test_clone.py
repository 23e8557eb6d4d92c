"""Policies from git repositories."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from pyverno.errors import UsageError
from pyverno.offline.git.clone import Credentials, GitSource, cloned, is_git_url, parse_git_url
from pyverno.offline.policies import load_policy_documents

POLICY = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rules: []}\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a policy, a link out of it, and two branches; https://git.example leads to its folder."""
    home = tmp_path / "owner" / "policies"
    (home / "best").mkdir(parents=True)
    (home / "best" / "p.yaml").write_text(POLICY)
    (tmp_path / "secret.yaml").write_text("secret: 1\n")
    (home / "best" / "link.yaml").symlink_to(tmp_path / "secret.yaml")

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=home, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    git("branch", "release")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{tmp_path}/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://git.example/")
    return home


@pytest.mark.parametrize(
    ("text", "branch", "expected"),
    [
        ("https://h/o/r", "", GitSource("https://h/o/r", "main", "")),
        ("https://h/o/r/", "", GitSource("https://h/o/r", "main", "")),
        ("https://h/o/r/a/b", "", GitSource("https://h/o/r", "a/b", "")),
        ("https://h/o/r/a/b", "dev", GitSource("https://h/o/r", "dev", "a/b")),
        ("http://h:1/o/r?x=y", "dev", GitSource("http://h:1/o/r", "dev", "")),
    ],
)
def test_addresses(text: str, branch: str, expected: GitSource) -> None:
    """The rest of the address is the branch, or a folder if the branch is given."""
    assert expected == parse_git_url(text, branch)
    assert is_git_url(text)


@pytest.mark.parametrize("text", ["https://h/o", "https://h", "https:///o/r", "https://h/o/r/../x", "http://[::1/o/r"])
def test_addresses_without_repository_are_refused(text: str) -> None:
    """The error has Kyverno's text."""
    with pytest.raises(UsageError, match="failed to parse URL"):
        parse_git_url(text)


def test_a_clone_is_gone_afterwards_and_has_no_links(repository: Path) -> None:
    """A link in a repository never shows a file of this machine."""
    with cloned(GitSource("https://git.example/owner/policies", "main", "best")) as folder:
        assert POLICY == (folder / "p.yaml").read_text()
        assert not (folder / "link.yaml").is_symlink()
    assert not folder.exists()


def test_branches_are_found_and_reused(repository: Path) -> None:
    """The branch of the first address holds for the second one, whose rest is then a folder."""
    url = "https://git.example/owner/policies"
    loaded = load_policy_documents([f"{url}/release", f"{url}/best"])
    assert ([], 2) == (loaded.errors, len(loaded.documents))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (GitSource("https://git.example/owner/policies", "nope"), "failed to clone repository"),
        (GitSource("https://git.example/owner/missing"), "failed to clone repository"),
        (GitSource("https://git.example/owner/policies", "main", "nope"), "failed to list YAMLs in repository"),
        (GitSource("https://git.example/owner/policies", "--upload-pack=x"), "failed to clone repository"),
    ],
)
def test_what_is_missing_is_an_error(repository: Path, source: GitSource, message: str) -> None:
    """A missing repository, branch or folder is an error."""
    with pytest.raises(UsageError, match=message), cloned(source):
        pass


def test_secrets_are_never_shown(repository: Path) -> None:
    """Neither secrets in the address nor those in flags appear in an error."""
    credentials = Credentials("me", "hunter2")
    source = GitSource("https://me:tok3n@git.example/owner/missing")
    with pytest.raises(UsageError) as caught, cloned(source, credentials):
        pass
    for secret in ("hunter2", "tok3n"):
        assert secret not in str(caught.value)
        assert secret not in repr(credentials)


SECRETS = ("hunter2", "s3cr%t/€", "tok3n")


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `git` that only writes down its command line and the credential configuration that it was given, and fails."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "git"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\n"
        f"json.dump([sys.argv, dict(os.environ)], open({str(tmp_path / 'called')!r}, 'w'))\n"
        "sys.exit(f'fatal: {sys.argv} {os.environ}')\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("GIT_TRACE_CURL", "1")
    return tmp_path / "called"


@pytest.mark.parametrize(
    ("url", "credentials", "expected"),
    [
        ("https://h/o/r", Credentials("me", "hunter2"), ("me", "hunter2")),
        ("https://me:hunter2@h/o/r", None, ("me", "hunter2")),
        ("https://me:s3cr%25t%2F%E2%82%AC@h/o/r", None, ("me", "s3cr%t/€")),
        ("https://tok3n@h/o/r", None, ("tok3n", "")),
        ("https://tok3n:@h/o/r", Credentials("me", "hunter2"), ("tok3n", "")),
        ("https://me:tok3n@h:8443/o/r/main", Credentials("you", "hunter2"), ("me", "tok3n")),
    ],
)
def test_git_gets_passwords_by_its_environment_alone(
    recorded: Path, url: str, credentials: Credentials | None, expected: tuple[str, str]
) -> None:
    """No command line, no error text and no repr holds one, in whatever place and form it was given."""
    source = parse_git_url(url)
    with pytest.raises(UsageError) as caught, cloned(source, credentials):
        pass
    arguments, environment = json.loads(recorded.read_text())
    seen = " ".join((*arguments, str(caught.value), repr(source), repr(credentials), str(caught.value.__cause__)))
    assert [] == [secret for secret in (*SECRETS, "s3cr%25t") if secret in seen]
    assert "@" not in arguments[-2]
    assert expected == (environment["PYVERNO_GIT_USERNAME"], environment["PYVERNO_GIT_PASSWORD"])
    assert not [key for key in environment if key.startswith("GIT_TRACE")]
    configured = {key: value for key, value in environment.items() if key.startswith("GIT_")}
    assert [] == [secret for secret in SECRETS if secret in str(configured)]


def test_an_address_that_can_not_be_read_shows_no_password() -> None:
    """Python's own error would quote everything before the path, password included."""
    with pytest.raises(UsageError) as caught:
        parse_git_url("https://me:hunter2@h℀st/o/r")
    assert "hunter2" not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__ and ''}"


@pytest.mark.parametrize("url", ["https://me:a%0Ahost=evil@h/o/r", "https://m%0De:a@h/o/r", "https://me:a%00@h/o/r"])
def test_credentials_of_several_lines_are_refused(recorded: Path, url: str) -> None:
    """A line break in a credential would let it name another host to git."""
    with pytest.raises(UsageError, match="control character"), cloned(parse_git_url(url)):
        pass
    assert not recorded.exists()


@pytest.mark.parametrize(
    ("username", "password"), [("me", "hunter2"), ("tok3n", ""), ("a\\nb", "-n $(id) `id` 'x' \\t%s \"")]
)
def test_git_sends_what_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, username: str, password: str
) -> None:
    """The real git sends user and password, quotes included, when a server demands them, and stores neither."""
    sent: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent.append(self.headers.get("Authorization", ""))
            self.send_response(404 if sent[-1] else 401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text(f"[credential]\n\thelper = store --file={tmp_path / 'kept'}\n")
    (tmp_path / "kept").touch()
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        before = f"{quote(username, safe='')}:{quote(password, safe='')}"
        url = f"http://{before}@127.0.0.1:{server.server_port}/o/r"
        with pytest.raises(UsageError, match="failed to clone"), cloned(parse_git_url(url)):
            pass
        server.shutdown()
        thread.join()
    assert ["", "Basic " + b64encode(f"{username}:{password}".encode()).decode()] == sent
    assert "" == (tmp_path / "kept").read_text()
