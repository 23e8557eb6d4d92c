"""Resources from files, folders and http addresses."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pyverno.errors import UsageError
from pyverno.offline.manifests import download, load_manifests

END = threading.Event()
"""Set at the end: until then the slow address does not respond."""
POD = b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"


class Handler(BaseHTTPRequestHandler):
    """Answers by path."""

    def do_GET(self) -> None:
        """Serve a Pod, a redirect, a large body, or nothing until the end."""
        path = self.path.partition("?")[0]
        if path == "/slow.yaml":
            END.wait()
        location = {"/moved.yaml": "/pod.yaml", "/away.yaml": "ftp://x/y", "/loop.yaml": "/loop.yaml"}.get(path)
        if location:
            self.send_response(302)
            self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = b"x" * 5000 if path == "/large.yaml" else POD
        self.send_response(404 if path == "/missing.yaml" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a local server."""
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_address[1]}"
    END.set()
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.mark.parametrize("path", ["/pod.yaml", "/moved.yaml"])
def test_addresses_are_downloaded(server: str, path: str) -> None:
    """Redirects within the scheme are followed."""
    (document,) = load_manifests([f"{server}{path}"]).documents
    assert ("Pod", f"{server}{path}") == (document.value["kind"], document.file)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/missing.yaml", "the server answered 404"),
        ("/away.yaml", "it redirects to `ftp://x/y`"),
        ("/loop.yaml", "more than 5 redirects"),
    ],
)
def test_other_answers_are_errors(server: str, path: str, message: str) -> None:
    """Each error has its reason, and the other addresses are still read."""
    loaded = load_manifests([f"{server}{path}", f"{server}/pod.yaml"])
    assert 1 == len(loaded.documents)
    assert message in str(loaded.errors[0])


DIGEST = hashlib.sha256(POD).hexdigest()


@pytest.mark.parametrize("path", [f"/pod.yaml#sha256={DIGEST}", f"/moved.yaml#SHA256={DIGEST.upper()}"])
def test_an_address_may_name_its_content(server: str, path: str) -> None:
    """The digest is that of the bytes at the end of all redirects."""
    assert POD == download(server + path)


def test_another_content_than_the_address_names_is_an_error(server: str) -> None:
    """The error shows both digests, and nothing is read of the content."""
    with pytest.raises(UsageError) as caught:
        download(f"{server}/pod.yaml#sha256={'0' * 64}")
    assert f"expected sha256 {'0' * 64}, got {DIGEST}" in caught.value.message


@pytest.mark.parametrize(
    "fragment", [f"sha256:{DIGEST}", f"sha256={DIGEST[:-1]}", "sha256=", f"sha512={DIGEST}", DIGEST, "x", f"={DIGEST}"]
)
def test_a_digest_that_cannot_be_read_is_an_error(fragment: str) -> None:
    """Nothing is asked: a check that is misspelt must not be left out in silence."""
    with pytest.raises(UsageError, match="must be `sha256=` and 64 hexadecimal digits"):
        download(f"http://127.0.0.1:1/pod.yaml#{fragment}")


def test_downloads_have_a_size(server: str) -> None:
    """A download above the limit is not read to its end."""
    with pytest.raises(UsageError, match="larger than 1000 bytes"):
        download(f"{server}/large.yaml", max_bytes=1000)


def test_downloads_have_a_time(server: str) -> None:
    """One time limit holds for all downloads together."""
    with pytest.raises(UsageError, match=r"no answer within 0\.2 seconds"):
        download(f"{server}/slow.yaml", timeout=0.2)


def test_a_server_that_is_not_there_is_an_error() -> None:
    """Secrets of the address are not shown."""
    with pytest.raises(UsageError, match="cannot connect") as caught:
        download("http://me:hunter2@127.0.0.1:1/x.yaml?token=tok3n")
    assert "hunter2" not in str(caught.value)
    assert "tok3n" not in str(caught.value)


def test_a_folder_gives_its_own_files(tmp_path: Path) -> None:
    """Subfolders are not read."""
    (tmp_path / "in").mkdir()
    (tmp_path / "a.yaml").write_bytes(POD)
    (tmp_path / "in" / "b.yaml").write_bytes(POD)
    assert 1 == len(load_manifests([str(tmp_path)]).documents)
