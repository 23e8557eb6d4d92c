"""A TUF repository in a folder, served to this machine."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from securesystemslib.signer import CryptoSigner, Key, Signature, Signer
from tuf.api.metadata import Metadata, MetaFile, Root, Snapshot, TargetFile, Targets, Timestamp

from tests.authority.signing import SigningServices

__all__ = ["ROOT", "Repository", "Twin", "serve", "serve_bytes"]

ROOT = SigningServices().trusted_root()
"""The trusted root that a repository publishes."""

YEAR = datetime.now(UTC).replace(microsecond=0) + timedelta(days=365)


class Twin(Signer):
    """The same key under another id."""

    def __init__(self, signer: CryptoSigner) -> None:
        self._signer = signer
        body = signer.public_key.to_dict()
        self._key = Key.from_dict("0" * 64, body)

    @property
    def public_key(self) -> Key:
        """The key, with the other id."""
        return self._key

    @classmethod
    def from_priv_key_uri(cls, *_: object) -> Signer:  # type: ignore[override]
        """Twins are made of signers."""
        raise ValueError

    def sign(self, payload: bytes) -> Signature:
        """Return the signature of the key under the other id."""
        return Signature(self._key.keyid, self._signer.sign(payload).signature)


class Repository:
    """A TUF repository in a folder, whose four roles sign with one key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.signer = CryptoSigner.generate_ecdsa()
        self.signers: tuple[Signer, ...] = (self.signer,)
        self.root = Root(expires=YEAR, consistent_snapshot=False)
        for role in ("root", "timestamp", "snapshot", "targets"):
            self.root.add_key(self.signer.public_key, role)
        self.version = 0

    def publish(
        self,
        target: bytes = ROOT,
        *,
        expires: datetime = YEAR,
        stored: bytes | None = None,
        name: str = "trusted_root.json",
    ) -> None:
        """Write a version of the metadata, and the target or other bytes in its place."""
        self.version += 1
        targets = Targets(version=self.version, expires=YEAR)
        targets.targets[name] = TargetFile.from_data(name, target)
        snapshot = Snapshot(version=self.version, expires=YEAR, meta={"targets.json": MetaFile(self.version)})
        timestamp = Timestamp(version=self.version, expires=expires, snapshot_meta=MetaFile(self.version))
        (self.folder / "targets").mkdir(exist_ok=True)
        (self.folder / "targets/trusted_root.json").write_bytes(target if stored is None else stored)
        for role, signed in (("targets", targets), ("snapshot", snapshot), ("timestamp", timestamp)):
            (self.folder / f"{role}.json").write_bytes(self.sign(signed))

    def sign(self, signed: Root | Targets | Snapshot | Timestamp) -> bytes:
        """Return metadata with its signature."""
        metadata = Metadata(signed)
        for each in self.signers:
            metadata.sign(each, append=True)
        return metadata.to_bytes()


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Yield the address at which a folder is served."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def serve_bytes(answer: bytes) -> Iterator[str]:
    """Yield an address that sends these bytes to every request, and then closes the connection."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
