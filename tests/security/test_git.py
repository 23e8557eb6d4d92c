"""No repository and no server of git fills the disk or the memory, holds up a command, or reaches beyond its folder."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
from base64 import b64encode
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

import pyverno
from pyverno.errors import UsageError
from pyverno.offline.git.clone import Credentials, GitSource, cloned
from pyverno.offline.git.process import LIMITS, GitLimits, run_git
from pyverno.value import replace
from tests.support.gitsite import Site, serving
from tests.support.hostilepeers import FAULTS, hostile_peer
from tests.support.hostilerepositories import (
    HARMLESS_REPOSITORIES,
    POLICY,
    REPOSITORIES,
    UNSETTLED_REPOSITORIES,
    HostileRepository,
    make_repository,
)

_LIMITS = GitLimits(seconds=60.0, bytes=1024 * 1024, files=1000)
_SOURCE = GitSource("https://git.example/owner/policies")
_WAIT = 60.0


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of a user: a home, a working folder, and a place for temporary folders; git.example is `origin`."""
    for name in ("home", "work", "temporary", "origin/owner"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{tmp_path}/origin/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://git.example/")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "home" / ".gitconfig").write_text(
        "[protocol]\n\tallow = always\n[submodule]\n\trecurse = true\n[core]\n\tsymlinks = true\n"
    )
    return tmp_path


def _seen(machine: Path) -> dict[str, bytes]:
    """Everything but the repository itself; the temporary folder has to be empty again."""
    return {
        str(path.relative_to(machine)): b"" if path.is_dir() else path.read_bytes()
        for name in ("home", "work", "temporary")
        for path in sorted((machine / name).rglob("*"))
    }


@pytest.mark.parametrize("kind", REPOSITORIES, ids=lambda kind: kind.replace(" ", "-"))
def test_no_repository_reaches_beyond_its_folder_and_its_limits(machine: Path, kind: str) -> None:
    """It is read as data or refused; home, working folder and temporary folders are as before."""
    make_repository(machine / "origin" / "owner" / "policies", kind)
    before = _seen(machine)
    found: dict[str, bytes] = {}
    with suppress(UsageError), cloned(_SOURCE, limits=_LIMITS) as folder:
        for path in folder.rglob("*"):
            assert not path.is_symlink()
            if path.is_file() and ".git" not in path.relative_to(folder).parts:
                found[str(path.relative_to(folder))] = path.read_bytes()
    assert before == _seen(machine)
    assert kind in UNSETTLED_REPOSITORIES or (kind in HARMLESS_REPOSITORIES) == bool(found)
    assert POLICY == (found or {"p.yaml": POLICY})["p.yaml"]
    assert Path("/etc/hostname").read_bytes() not in found.values()


_VARIABLES = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True).stdout
_KEPT = {"GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG"}
"""Of these the first two say how to reach servers."""


def _mine(machine: Path) -> Path:
    mine = machine / "work"
    (mine / "staged").write_text("mine\n")
    for words in (("init", "--quiet"), ("add", "staged")):
        subprocess.run(["git", *words], cwd=mine, check=True)
    return mine


@pytest.mark.parametrize("variable", sorted({*_VARIABLES.split(), "GIT_TEMPLATE_DIR", "GIT_TRACE"} - _KEPT))
def test_a_hook_of_git_may_clone(machine: Path, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git tells hooks their repository by variables: its index was that of the clone after a run in a hook."""
    make_repository(machine / "origin" / "owner" / "policies", "names of two cases")
    mine = _mine(machine)
    inside = {
        "GIT_INDEX_FILE": mine / ".git" / "index",
        "GIT_WORK_TREE": mine,
        "GIT_OBJECT_DIRECTORY": mine / ".git" / "objects",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": mine / ".git" / "objects",
        "GIT_TRACE": mine / "trace",
    }
    monkeypatch.setenv(variable, str(inside.get(variable, mine / ".git")))
    before = _seen(machine)
    with cloned(_SOURCE) as folder:
        assert POLICY == (folder / "p.yaml").read_bytes()
    assert before == _seen(machine)


def test_what_reaches_a_server_is_kept(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: certificates and configuration of the environment hold for the clone; the fixture's address does."""
    monkeypatch.setenv("GIT_SSL_CAINFO", "/certificates")
    code, output, _ = run_git(
        ("-c", "alias.x=!env", "x"), folder=machine / "work", environment=_own_environment(), deadline=_soon()
    )
    assert (0, True) == (code, b"GIT_SSL_CAINFO=/certificates" in output.read_bytes())


def _own_environment() -> dict[str, str]:
    from pyverno.offline.git import clone

    return dict(clone._environment(_SOURCE, None))


def _soon() -> float:
    return time.monotonic() + _WAIT


# ------------------------------------------------------------------------------------------------ programs that fail

_STEPS = ("clone", "ls-tree", "reset")
_FAULTS: dict[str, str] = {
    "hangs": "while True: time.sleep(1)",
    "hangs and ignores signals": "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(1)",
    "leaves a writer behind": (
        "if not os.fork():\n"
        " signal.alarm(120)\n"
        " while True:\n"
        "  time.sleep(0.001)\n"
        "  os.makedirs('clone/more', exist_ok=True)\n"
        "  open(f'clone/more/{time.time()}', 'w').close()\n"
        "while True: time.sleep(1)"
    ),
    "says much": "while True: sys.stderr.write('remote: \\x1b[31m' + 'x' * 65536)",
    "writes much": "while True: sys.stdout.write('x' * 65536)",
    "fills the folder": (
        "os.makedirs('clone', exist_ok=True)\nfile = open('clone/x', 'w')\nwhile True: file.write('x' * 65536)"
    ),
    "makes many files": "os.makedirs('clone', exist_ok=True)\nfor n in range(10**9): open(f'clone/{n}', 'w').close()",
    "fails": "sys.exit('fatal: \\x1b]0;x\\x07no')",
    "dies": "os.kill(os.getpid(), signal.SIGSEGV)",
}


_HANGING = {"hangs", "hangs and ignores signals", "leaves a writer behind"}
_GROWING = {"says much", "writes much", "fills the folder", "makes many files"}


@pytest.fixture
def failing(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Put a `git` first in the path that fails at one of its steps, and leaves the others to the real one."""
    make_repository(machine / "origin" / "owner" / "policies", "names of two cases")
    real = shutil.which("git")

    def install(step: str, fault: str) -> None:
        program = machine / "bin" / "git"
        program.parent.mkdir()
        program.write_text(
            f"#!{sys.executable} -S\nimport os, signal, sys, time\n"
            f"if {step!r} not in sys.argv: os.execv({real!r}, sys.argv)\n"
            f"open({str(machine / 'started')!r}, 'w').write(str(os.getpgrp()))\n"
            f"signal.alarm(120)  # a test that fails leaves nothing behind for longer\n{_FAULTS[fault]}\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{machine / 'bin'}{os.pathsep}{os.environ['PATH']}")

    return install


def _is_running(machine: Path) -> bool:
    """Return whether a program of the group is there that is no zombie."""
    group = (machine / "started").read_text()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            if fields[2] == group and fields[0] != "Z":
                return True
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize("fault", _FAULTS, ids=lambda fault: fault.replace(" ", "-"))
@pytest.mark.parametrize("step", _STEPS)
def test_no_step_of_git_goes_on_without_end(
    machine: Path, failing: Callable[[str, str], None], step: str, fault: str
) -> None:
    """Each ends with an error of one line, with nothing left in the folder of temporary files and no process."""
    failing(step, fault)
    limits = replace(_LIMITS, seconds=_WAIT if fault in _GROWING else 2.0)
    before = _seen(machine)
    with pytest.raises(UsageError) as caught, cloned(_SOURCE, limits=limits):
        pass
    assert caught.value.message.isprintable()
    assert fault not in _GROWING or "it is larger than" in caught.value.message
    assert fault not in _HANGING or "no answer within 2 seconds" in caught.value.message
    assert len(caught.value.message) < 5000
    assert before == _seen(machine)
    assert not _is_running(machine)


def test_a_machine_without_git_says_so(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, not a traceback."""
    monkeypatch.setenv("PATH", str(machine))
    with pytest.raises(UsageError, match="`git` is not installed"), cloned(_SOURCE):
        pass
    assert [] == list((machine / "temporary").iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_git_and_removes_its_folder(
    machine: Path, failing: Callable[[str, str], None], number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CI systems end jobs by SIGTERM: nothing may be left on their disks, nor a program that goes on loading."""
    failing("clone", "hangs")
    monkeypatch.setenv("TMPDIR", str(machine / "temporary"))
    monkeypatch.setenv("PYTHONPATH", str(Path(pyverno.__file__).parents[1]))
    words = [sys.executable, "-m", "pyverno", "apply", f"{_SOURCE.url}/main", "--resource", "pod.yaml"]
    running = subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # shells let jobs in the background ignore SIGINT
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # noqa: PLW1509 - one call
    )
    try:
        _wait_for((machine / "started").exists)
        running.send_signal(number)
        code = running.wait(timeout=_WAIT)
    finally:
        running.kill()
        running.wait()
    assert code == 128 + number
    assert [] == list((machine / "temporary").iterdir())
    assert not _is_running(machine)


def _wait_for(is_there: Callable[[], bool]) -> None:
    limit = _soon()
    while not is_there():
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_the_limits_are_those_of_the_guide() -> None:
    """A repository of policies is a thousand times smaller."""
    assert (300.0, 512 * 2**20, 50_000, 64, 2**31) == (
        LIMITS.seconds,
        LIMITS.bytes,
        LIMITS.files,
        LIMITS.depth,
        LIMITS.memory,
    )


# ----------------------------------------------------------------------------------------------------------- servers


_LOGIN = "Basic " + b64encode(b"me:hunter2").decode()


def test_a_repository_that_moved_on_its_host_is_read(machine: Path) -> None:
    """The twin: sites add `.git` to addresses by a redirect, and ask for the password there."""
    make_repository(machine / "origin" / "owner" / "policies.git", "names of two cases")
    with serving(Site(machine / "origin", {"/owner/policies/": "/owner/policies.git/"}, _LOGIN)) as site:
        source = GitSource(f"{site.url}/owner/policies")
        with cloned(source, Credentials("me", "hunter2")) as folder:
            assert POLICY == (folder / "p.yaml").read_bytes()


def test_a_password_is_for_the_host_of_its_address(machine: Path) -> None:
    """A repository that moved to another host is read without it; that host never sees it."""
    make_repository(machine / "origin" / "owner" / "policies.git", "names of two cases")
    with (
        serving(Site(machine / "origin", login=_LOGIN)) as other,
        serving(Site(machine, {"/": f"{other.url}/"})) as site,
        pytest.raises(UsageError) as caught,
        cloned(GitSource(f"{site.url}/owner/policies.git"), Credentials("me", "hunter2")),
    ):
        pass
    assert "hunter2" not in str(caught.value)
    assert [""] == sorted({given for _, given in other.seen})
    assert not other.seen[0][0].startswith("git/")


@pytest.mark.parametrize("address", ["file:///etc/", "ext::sh -c touch% touched", "ftp://127.0.0.1/", "http://[::1/"])
def test_a_repository_moves_to_web_sites_alone(machine: Path, address: str) -> None:
    """Git itself would go to any address of HTTP; where redirects lead is `test_peers.py`."""
    before = _seen(machine)
    with (
        serving(Site(machine, {"/": address})) as site,
        pytest.raises(UsageError, match="the connection failed" if "[" in address else "it redirects to"),
        cloned(GitSource(f"{site.url}/owner/policies")),
    ):
        pass
    assert before == _seen(machine)
    assert 2 == len(site.seen)


def test_a_page_is_no_repository(machine: Path) -> None:
    """Sites send those who are not logged in to a page."""
    old = "/owner/policies/info/refs?service=git-upload-pack"
    with (
        serving(Site(machine, {old: "/login"})) as site,
        pytest.raises(UsageError, match="redirects to what is no repository"),
        cloned(GitSource(f"{site.url}/owner/policies")),
    ):
        pass


@pytest.mark.parametrize(
    ("later", "why"), [("127.0.0.1", ""), ("169.254.169.254", "metadata-service"), ("", "resolved")]
)
def test_git_connects_to_the_addresses_that_were_checked(
    machine: Path, monkeypatch: pytest.MonkeyPatch, later: str, why: str
) -> None:
    """The name of a redirect is known to this process alone: git, which would look it up once more, knows none."""
    make_repository(machine / "origin" / "owner" / "policies.git", "names of two cases")
    real, looks = socket.getaddrinfo, 0

    def look_up(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        nonlocal looks
        looks += host == "moved.example"
        if host == "moved.example" and looks > 1 and not later:
            raise socket.gaierror(socket.EAI_NONAME, "no")
        place = (later if looks > 1 else "127.0.0.1") if host == "moved.example" else host
        return real(place, port, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with serving(Site(machine / "origin")) as other:
        there = f"http://moved.example:{other.server_port}/"
        with serving(Site(machine, {"/": there})) as site:
            source = GitSource(f"{site.url}/owner/policies.git")
            with (
                pytest.raises(UsageError, match=why.replace("-", " ")) if why else nullcontext(),
                cloned(source) as folder,
            ):
                assert POLICY == (folder / "p.yaml").read_bytes()


def test_a_list_of_files_takes_little_memory(machine: Path) -> None:
    """Six folders list a million files; the list is not kept, and ends early."""
    repository = HostileRepository(machine / "origin" / "owner" / "policies")
    tree = repository.files({b"f%d.yaml" % number: POLICY for number in range(10)})
    for _ in range(5):
        tree = repository.tree([("40000", b"d%d" % number, tree) for number in range(10)])
    repository.commit(tree)
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=r"more than|larger than"), cloned(_SOURCE, limits=LIMITS):
            pass
        assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of other programs is bounded on Linux")
def test_an_answer_without_end_takes_so_much_memory(machine: Path) -> None:
    """Git keeps the list of branches in memory, whatever its length; the program that does is a child of git's."""
    words = (
        "import sys\n"
        "from pyverno.errors import UsageError\n"
        "from pyverno.offline.git.clone import GitSource, cloned\n"
        "from pyverno.offline.git.process import GitLimits\n"
        "try:\n"
        "    with cloned(GitSource(sys.argv[1]), limits=GitLimits(memory=256 * 2**20)): pass\n"
        "except UsageError as error: print(error)\n"
    )
    source = str(Path(pyverno.__file__).parents[1])

    async def play() -> bytes:
        async with hostile_peer(FAULTS["a body without end"], most=2**30) as peer:
            running = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", words, f"{peer.url}/o/r"),
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": source},
            )
            async with asyncio.timeout(_WAIT):
                said, _ = await running.communicate()
            return said

    assert b"Out of memory" in asyncio.run(play())
