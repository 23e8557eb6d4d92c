"""A web site with git repositories, which may have moved or demand a login."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

__all__ = ["Site", "serving"]


class Site(ThreadingHTTPServer):
    """Serves the repositories of a folder by git's own program; `moved` has redirects, `login` is demanded if given."""

    daemon_threads = True

    def __init__(self, root: Path, moved: dict[str, str] | None = None, login: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.root, self.moved, self.login = root, moved or {}, login
        self.seen: list[tuple[str, str]] = []  # program and login of each request
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        given = self.headers.get("Authorization", "")
        self.server.seen.append((self.headers.get("User-Agent", ""), given))
        for old, new in self.server.moved.items():
            if self.path.startswith(old):
                self._reply(302, {"Location": new + self.path.removeprefix(old)}, b"")
                return
        if self.server.login and given != self.server.login:
            self._reply(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
            return
        path, _, query = self.path.partition("?")
        environment = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=environment, check=True, capture_output=True
        ).stdout
        head, _, content = done.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self._reply(int(fields.pop("Status", "200").split()[0]), fields, content)

    do_POST = do_GET  # noqa: N815 - the name that http.server looks for

    def _reply(self, status: int, fields: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in {**fields, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    """Serve until the block ends."""
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    try:
        yield site
    finally:
        site.shutdown()
        thread.join()
        site.server_close()
