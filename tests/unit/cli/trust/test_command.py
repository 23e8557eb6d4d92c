"""`pyverno trust`: the trusted root of a TUF repository, and what a repository cannot make us believe."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from securesystemslib.signer import CryptoSigner
from tuf.api.metadata import Metadata, MetaFile, Root, Snapshot, TargetFile, Targets, Timestamp

from tests.authority.signing import SigningServices

if TYPE_CHECKING:
    from tests.support.commandline import Run

ROOT = SigningServices().trusted_root()
YEAR = datetime.now(UTC).replace(microsecond=0) + timedelta(days=365)


class Repository:
    """A TUF repository in a folder, whose four roles sign with one key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.signer = CryptoSigner.generate_ecdsa()
        self.root = Root(expires=YEAR, consistent_snapshot=False)
        for role in ("root", "timestamp", "snapshot", "targets"):
            self.root.add_key(self.signer.public_key, role)
        self.version = 0

    def publish(self, target: bytes = ROOT, *, expires: datetime = YEAR, stored: bytes | None = None) -> None:
        """Write a version of the metadata, and the target or other bytes in its place."""
        self.version += 1
        targets = Targets(version=self.version, expires=YEAR)
        targets.targets["trusted_root.json"] = TargetFile.from_data("trusted_root.json", target)
        snapshot = Snapshot(version=self.version, expires=YEAR, meta={"targets.json": MetaFile(self.version)})
        timestamp = Timestamp(version=self.version, expires=expires, snapshot_meta=MetaFile(self.version))
        (self.folder / "targets").mkdir(exist_ok=True)
        (self.folder / "targets/trusted_root.json").write_bytes(target if stored is None else stored)
        for name, signed in (("targets", targets), ("snapshot", snapshot), ("timestamp", timestamp)):
            (self.folder / f"{name}.json").write_bytes(self.sign(signed))

    def sign(self, signed: Root | Targets | Snapshot | Timestamp) -> bytes:
        """Return metadata with its signature."""
        metadata = Metadata(signed)
        metadata.sign(self.signer)
        return metadata.to_bytes()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository that holds a trusted root."""
    folder = tmp_path / "repository"
    folder.mkdir()
    made = Repository(folder)
    made.publish()
    return made


@pytest.fixture
def mirror(repository: Repository) -> Iterator[str]:
    """The address at which the repository is served."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(repository.folder))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def arguments(repository: Repository, mirror: str, folder: Path) -> list[str]:
    """The arguments of the command, with the root metadata of the repository in the working folder."""
    (folder / "root.json").write_bytes(repository.sign(repository.root))
    return ["trust", mirror, "--root", "root.json", "--cache", "cache"]


def test_the_trusted_root_is_printed_or_written(cli: Run, folder: Path, arguments: list[str]) -> None:
    """A file is replaced as a whole."""
    (folder / "trusted_root.json").write_text("old")
    printed, written = cli(*arguments), cli(*arguments, "-o", "trusted_root.json")
    assert (0, 0, ROOT.decode()) == (printed.code, written.code, printed.out)
    assert ROOT == (folder / "trusted_root.json").read_bytes()
    assert [] == list(folder.glob(".trusted_root*"))


def test_a_repository_of_other_keys_is_refused(
    cli: Run, folder: Path, repository: Repository, arguments: list[str]
) -> None:
    """Only the given root metadata decides which signatures are accepted."""
    (folder / "root.json").write_bytes(Repository(repository.folder).sign(Repository(repository.folder).root))
    assert _problem(cli, arguments)[0] == 1


def test_an_older_state_is_refused(cli: Run, repository: Repository, arguments: list[str]) -> None:
    """A mirror cannot bring back what it served before."""
    repository.publish()
    newer = cli(*arguments)
    repository.version = 0
    repository.publish()
    code, text = _problem(cli, arguments)
    assert (0, 1, True) == (newer.code, code, "proves nothing" in text)


@pytest.mark.parametrize(
    ("publish", "text"),
    [
        ({"expires": datetime(2020, 1, 1, tzinfo=UTC)}, "proves nothing"),
        ({"stored": ROOT + b" "}, "the TUF repository"),
        ({"target": b"{}"}, "the trusted root has another media type"),
        ({"target": b" " * 2_000_000}, "is larger than 1048576 bytes"),
    ],
)
def test_a_state_that_proves_nothing_is_an_error(
    cli: Run, repository: Repository, arguments: list[str], publish: dict[str, object], text: str
) -> None:
    """Metadata that expired, other bytes than the signed ones, and what is no trusted root."""
    repository.publish(**publish)  # type: ignore[arg-type]
    code, problem = _problem(cli, arguments)
    assert (1, True) == (code, text in problem)


def test_what_is_missing_is_named(cli: Run, folder: Path, arguments: list[str]) -> None:
    """The target, the root metadata, and the address."""
    found = [
        _problem(cli, [*arguments, "--target", "other.json"])[1],
        _problem(cli, ["trust", arguments[1]])[1],
        _problem(cli, ["trust", "ftp://example.com", *arguments[2:]])[1],
        _problem(cli, [*arguments[:3], "missing.json"])[1],
    ]
    texts = (
        "has no target `other.json`",
        "--root is needed",
        "is no address of a TUF repository",
        "cannot read missing",
    )
    assert [True] * 4 == [text in problem for text, problem in zip(texts, found, strict=True)]


def _problem(cli: Run, arguments: list[str]) -> tuple[int, str]:
    ran = cli(*arguments)
    assert ran.out == ""
    return ran.code, ran.err
