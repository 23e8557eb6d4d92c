"""`pyverno trust`: the trusted root of a TUF repository, and what a repository cannot make us believe."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from securesystemslib.signer import CryptoSigner

from tests.authority.tuf import ROOT, Repository, Twin, serve, serve_bytes

if TYPE_CHECKING:
    from tests.support.commandline import Run


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
    with serve(repository.folder) as address:
        yield address


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
    """A mirror cannot bring back what it served before (CVE-2022-29173)."""
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
    """Metadata that expired, other bytes than the signed ones, and what is no trusted root (CVE-2024-47534)."""
    repository.publish(**publish)  # type: ignore[arg-type]
    code, problem = _problem(cli, arguments)
    assert (1, True) == (code, text in problem)


@pytest.mark.parametrize(
    "answer",
    [
        b"Content-Length: 1000\r\n\r\n{",
        b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
        b"Content-Length: 4\r\n\r\nnull",
        b"Connection: close\r\n\r\n" + b"[" * 10_000,
    ],
)
def test_an_answer_that_breaks_off_or_is_damaged_is_an_error(
    cli: Run, repository: Repository, arguments: list[str], answer: bytes
) -> None:
    """Whatever the library raises, it ends no controller and shows no traceback."""
    with serve_bytes(b"HTTP/1.1 200 OK\r\n" + answer) as mirror:
        code, problem = _problem(cli, [arguments[0], mirror, *arguments[2:]])
    assert (1, True) == (code, problem.startswith(f"Error: the TUF repository {mirror} "))


@pytest.mark.parametrize("role", ["targets", "root"])
def test_one_key_under_two_ids_is_one_signer(
    cli: Run, folder: Path, repository: Repository, arguments: list[str], role: str
) -> None:
    """A threshold counts keys, not the ids that the metadata gives them; the twin is another key (GHSA-3633)."""
    found = []
    for second in (CryptoSigner.generate_ecdsa(), Twin(repository.signer)):
        repository.root.add_key(second.public_key, role)
        repository.root.roles[role].threshold = 2
        repository.signers = (repository.signer, second)
        repository.publish()
        for version, path in ((2, repository.folder / "2.root.json"), (1, folder / "root.json")):
            repository.root.version = version
            path.write_bytes(repository.sign(repository.root))
        ran = cli(*arguments[:-1], f"cache{len(found)}")
        found.append((ran.code, f"`{role}` is signed by fewer keys than its threshold" in ran.err))
        repository.root.revoke_key(second.public_key.keyid, role)
    assert [(0, False), (1, True)] == found


@pytest.mark.parametrize("threshold", [0, -1])
def test_a_threshold_below_one_is_an_error(
    cli: Run, folder: Path, repository: Repository, arguments: list[str], threshold: int
) -> None:
    """Otherwise metadata without a signature would count (CVE-2026-23992)."""
    repository.root.roles["targets"].threshold = threshold
    (folder / "root.json").write_bytes(repository.sign(repository.root))
    code, problem = _problem(cli, arguments)
    assert (1, True) == (code, "proves nothing" in problem)


def test_no_name_of_a_target_is_a_path(cli: Run, folder: Path, repository: Repository, arguments: list[str]) -> None:
    """A target with dots in its name is written nowhere but to the output (CVE-2026-24137)."""
    repository.publish(name="../../../outside.json")
    (repository.folder / "outside.json").write_bytes(ROOT)
    before = {each for each in folder.rglob("*") if "cache" not in each.parts}
    ran = cli(*arguments, "--target", "../../../outside.json")
    after = {each for each in folder.rglob("*") if "cache" not in each.parts}
    kept = {each.name for each in (folder / "cache").rglob("*") if each.is_file()}
    assert (0, ROOT.decode(), before) == (ran.code, ran.out, after)
    assert {"1.root.json", "root.json", "timestamp.json", "snapshot.json", "targets.json"} == kept
    assert [] == [*folder.parent.glob("outside.json"), *folder.parent.parent.glob("outside.json")]


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
