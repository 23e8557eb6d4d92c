"""Makes the files of a release: `python -m scripts.release --url ADDRESS`, ADDRESS being where they will be."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from pyverno.version import __version__
from scripts.release.provenance import signed, statement
from scripts.release.taps import LAUNCHER, archive, homebrew_formula, krew_manifest

__all__ = ["main", "release"]

_ROOT = Path(__file__).resolve().parents[2]
_LOCKS = ("requirements.lock", "requirements-build.lock", "deploy/image/debian.lock")


def release(output: Path, url: str, image: Path | None = None, key: Path | None = None) -> dict[str, bytes]:
    """Write all files of a release into an empty folder, and return them by name.

    `image` is what `make image` left; without it the release has no image. `key` signs the provenance.
    """
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(output.resolve())]
    subprocess.run(build, cwd=_ROOT, check=True, capture_output=True, env=environment)
    made = {path.name: path.read_bytes() for path in output.iterdir()}
    made.update(_charts())
    made["install.yaml"] = subprocess.run(
        [sys.executable, "-m", "pyverno", "install", "--dry-run"], check=True, capture_output=True, cwd=_ROOT
    ).stdout
    bundle = f"pyverno-{__version__}-bundle.tar.gz"
    made[bundle] = archive(dict(_bundle(made)))
    digest = sha256(made[bundle]).hexdigest()
    address = f"{url.rstrip('/')}/{bundle}"
    made["krew.yaml"] = krew_manifest(__version__, url, address, digest).encode()
    made["pyverno.rb"] = homebrew_formula(__version__, url, address, digest).encode()
    if image is not None:
        made[f"pyverno-{__version__}-image.tar.gz"] = archive(_files(image / "layout"))
        made.update({path.name: path.read_bytes() for path in sorted(image.glob("sbom-*.cdx.json"))})
    proven = statement(made, _revision(), {name: (_ROOT / name).read_bytes() for name in _LOCKS})
    made["provenance.intoto.json"] = proven.encode()
    if key is not None:
        made["provenance.dsse.json"] = signed(proven, key.read_bytes()).encode()
    sums = "".join(f"{sha256(made[name]).hexdigest()}  {name}\n" for name in sorted(made))
    made["SHA256SUMS"] = sums.encode()
    for name, data in made.items():
        (output / name).write_bytes(data)
    return made


def _charts() -> Iterator[tuple[str, bytes]]:
    """Yield the charts as Helm packages."""
    for folder in sorted((_ROOT / "deploy" / "charts").iterdir()):
        files = {f"{folder.name}/{name}": data for name, data in _files(folder).items() if name != ".helmignore"}
        yield f"{folder.name}-{__version__}.tgz", archive(files)


def _bundle(made: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    wheels = {name: data for name, data in made.items() if name.endswith(".whl")}
    digest = sha256(b"".join((*wheels.values(), (_ROOT / "requirements.lock").read_bytes()))).hexdigest()
    launcher = LAUNCHER.replace("@ENVIRONMENT@", f"{__version__}-{digest[:12]}").encode()
    yield from (("pyverno", launcher), ("kubectl-pyverno", launcher))
    yield from wheels.items()
    for name in ("requirements.lock", "LICENSE", "NOTICE"):
        yield name, (_ROOT / name).read_bytes()


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _revision() -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    """Make a release as the arguments say; returns the exit code."""
    parser = argparse.ArgumentParser(description="Make all files of a release; nothing is published.")
    parser.add_argument("--url", required=True, help="address below which the files will be found")
    parser.add_argument("--output", type=Path, default=Path("build/release"))
    parser.add_argument("--image", type=Path, help="what `make image` left: build/image")
    parser.add_argument("--key", type=Path, help="ECDSA key (PEM) that signs the provenance")
    given = parser.parse_args()
    made = release(given.output, given.url, given.image, given.key)
    for name in sorted(made):
        print(f"{given.output / name}: {len(made[name])} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
