"""The files of a release: complete, reproducible, with checksums, provenance and the manifests of package managers."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from scripts.image.layout import Image, Layout, layer
from scripts.release.__main__ import release
from scripts.release.notice import NOTICE, with_licences
from scripts.release.verify import problems

from pyverno.version import __version__
from tests.deploy.charts import CHARTS

ROOT = CHARTS.parents[1]
URL = "https://example.org/pyverno"
BUNDLE = f"pyverno-{__version__}-bundle.tar.gz"
KEY = generate_private_key(SECP256R1())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A release with an image of one small file, signed with a fresh key."""
    folder = tmp_path_factory.mktemp("release")
    (folder / "tree").mkdir()
    (folder / "tree" / "a").write_text("a")
    Layout(folder / "image" / "layout").write([Image("amd64", (layer(folder / "tree", "x"),), {})], "1")
    (folder / "image" / "sbom-amd64.cdx.json").write_text("{}")
    (folder / "key").write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return release(folder / "out", URL, folder / "image", folder / "key")


def members(data: bytes) -> dict[str, bytes]:
    """Return the files of a compressed archive."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive if each.isfile()}


def unpack(data: bytes, folder: Path) -> None:
    """Write the files of a compressed archive into a folder."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(folder, filter="data")


def test_a_release_has_every_file_that_people_pick_up(made: dict[str, bytes]) -> None:
    """Packages, charts, manifests, image, taps, and what proves where they come from."""
    assert {
        f"pyverno-{__version__}-py3-none-any.whl",
        *(f"pyverno-{__version__}{end}" for end in (".tar.gz", "-bundle.tar.gz", "-image.tar.gz", ".tgz")),
        *(f"pyverno-policies-{__version__}.tgz", "install.yaml", "krew.yaml", "pyverno.rb", "sbom-amd64.cdx.json"),
        *("provenance.intoto.json", "provenance.dsse.json", "SHA256SUMS"),
    } == made.keys()
    kinds = {each["kind"] for each in yaml.load_all(made["install.yaml"], Loader=yaml.CSafeLoader)}
    assert {"CustomResourceDefinition", "Deployment"} <= kinds


def test_checksums_name_every_other_file(made: dict[str, bytes]) -> None:
    """In the form that `sha256sum --check` reads."""
    rows = dict(reversed(line.split("  ")) for line in made["SHA256SUMS"].decode().splitlines())
    assert rows == {name: hashlib.sha256(data).hexdigest() for name, data in made.items() if name != "SHA256SUMS"}


def test_the_provenance_names_files_sources_and_locks_and_is_signed(made: dict[str, bytes]) -> None:
    """The envelope holds the statement, and its signature is that of the key."""
    proven = json.loads(made["provenance.intoto.json"])
    later = {"SHA256SUMS", "provenance.intoto.json", "provenance.dsse.json"}
    assert {each["name"] for each in proven["subject"]} == made.keys() - later
    used = proven["predicate"]["buildDefinition"]
    assert 40 == len(used["externalParameters"]["revision"])
    assert {"requirements.lock", "requirements-build.lock", "deploy/image/debian.lock"} == {
        each["name"] for each in used["resolvedDependencies"]
    }
    envelope = json.loads(made["provenance.dsse.json"])
    payload = b64decode(envelope["payload"])
    assert made["provenance.intoto.json"] == payload
    kind = envelope["payloadType"].encode()
    text = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    KEY.public_key().verify(b64decode(envelope["signatures"][0]["sig"]), text, ECDSA(SHA256()))


def test_a_second_release_is_the_same(made: dict[str, bytes], tmp_path: Path) -> None:
    """Packages, charts and bundle do not hold the time or the folder they were made in."""
    again = release(tmp_path / "out", URL)
    names = [name for name in again if name.endswith((".whl", ".tgz", ".gz", ".rb", ".yaml"))]
    assert {} == {name: "differs" for name in names if again[name] != made[name]}


def test_package_managers_get_the_bundle_with_its_checksum(made: dict[str, bytes]) -> None:
    """Under the address that was given; the wheel, the locked requirements and the licences are in it."""
    digest, address = hashlib.sha256(made[BUNDLE]).hexdigest(), f"{URL}/{BUNDLE}"
    [platform] = yaml.safe_load(made["krew.yaml"])["spec"]["platforms"]
    inside = members(made[BUNDLE])
    assert (address, digest, True) == (platform["uri"], platform["sha256"], platform["bin"] in inside)
    formula = made["pyverno.rb"].decode()
    assert (True, True) == (f'url "{address}"' in formula, f'sha256 "{digest}"' in formula)
    assert inside["requirements.lock"] == (ROOT / "requirements.lock").read_bytes()
    assert {"LICENSE", "NOTICE", "pyverno", f"pyverno-{__version__}-py3-none-any.whl"} <= inside.keys()


@pytest.mark.parametrize("name", ["pyverno", "kubectl-pyverno"])
def test_the_launcher_runs_the_environment_that_it_made(made: dict[str, bytes], tmp_path: Path, name: str) -> None:
    """This works through a symbolic link too, as krew installs it."""
    unpack(made[BUNDLE], tmp_path / "store")
    (tmp_path / "link").symlink_to(tmp_path / "store" / name)
    home = environment_of(made, tmp_path / "data")
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (home / "bin" / "python").chmod(0o755)
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}
    out = subprocess.run([tmp_path / "link", "version"], env=environment, check=True, capture_output=True, text=True)
    assert f"Version: {__version__}" == out.stdout.splitlines()[0]


def test_the_launcher_names_the_python_that_it_needs(made: dict[str, bytes], tmp_path: Path) -> None:
    """The message comes before anything is installed."""
    unpack(made[BUNDLE], tmp_path)
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data"), "PYVERNO_PYTHON": "false"}
    ran = subprocess.run([tmp_path / "pyverno"], env=environment, check=False, capture_output=True, text=True)
    wanted = "pyverno: error: Python 3.11 or newer is needed; name one in PYVERNO_PYTHON\n"
    assert (2, wanted, False) == (ran.returncode, ran.stderr, (tmp_path / "data").exists())


def environment_of(made: dict[str, bytes], data: Path) -> Path:
    """Return where the launcher has its environment."""
    found = re.search(r"pyverno/(\S+)$", members(made[BUNDLE])["pyverno"].decode(), re.MULTILINE)
    assert found is not None
    assert found[1].startswith(f"{__version__}-")
    return data / "pyverno" / found[1]


def interpreter(path: Path, check: str = ":", install: str = ":") -> str:
    """Write a program that makes environments of itself and prints `ran` for pyverno."""
    text = f"""\
        #!/bin/sh
        case "$1 $2" in
          "-c "*) {check} ;;
          "-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
          "-m pip") {install} ;;
          "-m pyverno") echo ran ;;
        esac
        """
    path.write_text(dedent(text))
    path.chmod(0o755)
    return str(path)


def test_a_first_call_leaves_the_environment_of_another_in_place(made: dict[str, bytes], tmp_path: Path) -> None:
    """A call that began before another was complete does not take away what that one runs from."""
    unpack(made[BUNDLE], tmp_path)
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}
    home = environment_of(made, tmp_path / "data")
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    slow, quick = interpreter(tmp_path / "slow", check=f'read line < "{fifo}"'), interpreter(tmp_path / "quick")
    first = subprocess.Popen([tmp_path / "pyverno"], env=environment | {"PYVERNO_PYTHON": slow}, stdout=subprocess.PIPE)
    with fifo.open("w") as go:  # opened as soon as the first call waits
        second = subprocess.check_output([tmp_path / "pyverno"], env=environment | {"PYVERNO_PYTHON": quick})
        (home / "used").touch()
        go.write("go\n")
    out, _ = first.communicate(timeout=300)
    assert (b"ran\n", b"ran\n", 0, True) == (second, out, first.returncode, (home / "used").exists())
    assert [home] == [*home.parent.iterdir()]


def test_the_launcher_makes_the_environment_again_without_its_interpreter(
    made: dict[str, bytes], tmp_path: Path
) -> None:
    """As after an update of Python that removed the one before; an installation that failed is made again, too."""
    unpack(made[BUNDLE], tmp_path)
    home = environment_of(made, tmp_path / "data")
    (home / "bin").mkdir(parents=True)
    (home / "complete").touch()
    (home / "bin" / "python").symlink_to(tmp_path / "gone")
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}

    def run(python: str) -> tuple[int, str]:
        given = environment | {"PYVERNO_PYTHON": python}
        ran = subprocess.run([tmp_path / "pyverno"], env=given, check=False, capture_output=True, text=True)
        return ran.returncode, ran.stdout

    assert (7, "") == run(interpreter(tmp_path / "failing", install="exit 7"))
    assert (0, "ran\n") == run(interpreter(tmp_path / "quick"))
    assert [home] == [*home.parent.iterdir()]


def test_the_launcher_makes_the_environment_again_for_another_python(made: dict[str, bytes], tmp_path: Path) -> None:
    """`python3` is a link of the system: after its update the environment has no packages for the new version."""
    unpack(made[BUNDLE], tmp_path)
    home, link = environment_of(made, tmp_path / "data"), tmp_path / "python3"
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data"), "PYVERNO_PYTHON": str(link)}
    install = 'ln -sf "$PYVERNO_PYTHON" "$0"'  # venv names the interpreter as it was called
    for name in ("old", "new", "new"):
        interpreter(tmp_path / name, install=install)
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / name)
        ran = subprocess.run([tmp_path / "pyverno"], env=environment, check=True, capture_output=True, text=True)
        assert ("ran\n", f"{tmp_path / name}\n") == (ran.stdout, (home / "interpreter").read_text())


def test_a_rebuilt_bundle_of_the_same_version_has_an_environment_of_its_own(made: dict[str, bytes]) -> None:
    """The one of the bundle before held its code for ever."""
    wheel = next(data for name, data in made.items() if name.endswith(".whl"))
    digest = hashlib.sha256(wheel + (ROOT / "requirements.lock").read_bytes()).hexdigest()
    assert f"{__version__}-{digest[:12]}" == environment_of(made, Path()).name


def test_notice_has_the_licence_of_every_dependency() -> None:
    """`make docs` writes it from what the packages declare."""
    written = NOTICE.read_text(encoding="utf-8")
    assert written == with_licences(written, (ROOT / "requirements.lock").read_text(encoding="utf-8"))
    assert "orjson: MPL-2.0" in written


def public(key: EllipticCurvePrivateKey = KEY) -> bytes:
    """Return the public half of a key, as it is published."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture
def published(made: dict[str, bytes], tmp_path: Path) -> Path:
    """The files of the release in a folder, as somebody picked them up."""
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def test_a_release_is_verified_against_its_provenance(published: Path) -> None:
    """The signature is that of the key, and every file is what the statement names."""
    assert [] == problems(published, public())


def test_a_release_of_another_key_is_not_verified(published: Path) -> None:
    """Whoever replaces files can sign, but not with the key of the project."""
    assert ["provenance.dsse.json is not signed by this key"] == problems(
        published, public(generate_private_key(SECP256R1()))
    )


def test_a_release_of_another_commit_is_not_verified(published: Path) -> None:
    """An older release, with holes that are known, is signed as well."""
    [found] = problems(published, public(), "0" * 40)
    assert found.endswith(f"not from {'0' * 40}")


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda folder: (folder / "install.yaml").write_text("x"), "install.yaml was changed"),
        (lambda folder: (folder / "install.yaml").unlink(), "install.yaml is missing"),
        (lambda folder: (folder / "more.yaml").write_text("x"), "more.yaml is not of this release"),
        (lambda folder: (folder / "provenance.dsse.json").write_text("[]"), "cannot be read"),
        (lambda folder: (folder / "provenance.dsse.json").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "provenance.dsse.json").unlink(), "this release is not signed"),
        (lambda folder: unsign(folder / "provenance.dsse.json"), "is not signed by this key"),
        (lambda folder: other_payload(folder / "provenance.dsse.json"), "is not signed by this key"),
    ],
    ids=["changed", "missing", "more", "no envelope", "no JSON", "unsigned", "no signature", "other statement"],
)
def test_a_release_with_a_strange_file_is_not_verified(
    published: Path, change: Callable[[Path], object], wrong: str
) -> None:
    """Each change is named; the checksums of the folder prove nothing."""
    change(published)
    [found] = problems(published, public())
    assert found.endswith(wrong) or wrong in found


def unsign(path: Path) -> None:
    """Take the signatures out of an envelope."""
    path.write_text(json.dumps(json.loads(path.read_text()) | {"signatures": []}))


def other_payload(path: Path) -> None:
    """Put another statement under the signatures of an envelope."""
    path.write_text(json.dumps(json.loads(path.read_text()) | {"payload": b64encode(b"{}").decode()}))
