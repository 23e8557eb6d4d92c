"""Builds the image: `python -m scripts.image`.

`--twice` compares two builds; `--lock` builds nothing and updates deploy/image/debian.lock.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from pyverno.version import __version__
from scripts.image import debian
from scripts.image.layout import Image, Layout, layer
from scripts.image.sbom import bill_of_materials
from scripts.image.wheels import SITE, compile_files, fetch_wheels, unpack_wheels

__all__ = ["CONFIG", "build", "main"]

ARCHS = ("amd64", "arm64")
CONFIG = {
    "User": "65532:65532",
    "Env": [
        "PATH=/usr/bin",
        "LANG=C.UTF-8",
        "HOME=/tmp",
        "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
    ],
    # isolated, unbuffered, and without writing compiled files; as a module, so no program needs a path
    "Entrypoint": ["/usr/bin/python3.11", "-I", "-B", "-u", "-m", "pyverno"],
    "WorkingDir": "/tmp",  # noqa: S108 -- the folder of the image
    "Labels": {
        "org.opencontainers.image.title": "pyverno",
        "org.opencontainers.image.version": __version__,
        "org.opencontainers.image.licenses": "Apache-2.0",
    },
}
"""How containers run; `docker run IMAGE apply ...` and the chart add arguments."""


def build(output: Path, cache: Path, archs: tuple[str, ...] = ARCHS) -> str:
    """Build the image for architectures into an OCI layout, with a bill of materials for each; return its digest.

    The files of the image are left below `output/root-ARCH`.
    """
    shutil.rmtree(output, ignore_errors=True)
    layout = Layout(output / "layout")
    return layout.write([_image(output, cache, arch) for arch in archs], __version__)


def _image(output: Path, cache: Path, arch: str) -> Image:
    packages, wheels = debian.fetch(arch, cache), fetch_wheels(arch, cache)
    base, app, root = (output / f"{name}-{arch}" for name in ("base", "app", "root"))
    debian.unpack(packages, base)
    compile_files(base, "usr/lib/python3.11")
    unpack_wheels(wheels, app)
    compile_files(app, SITE)
    text = bill_of_materials((package for package, _ in packages), wheels, arch)
    (app / "usr/share/sbom").mkdir(parents=True)
    (app / "usr/share/sbom/pyverno.cdx.json").write_text(text, encoding="utf-8")
    (output / f"sbom-{arch}.cdx.json").write_text(text, encoding="utf-8")
    layers = (layer(base, "Debian 12: Python and what it needs"), layer(app, "pyverno and its dependencies"))
    for tree in (base, app):
        shutil.copytree(tree, root, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(tree)
    size = sum(len(each.data) for each in layers)
    print(f"linux/{arch}: {' + '.join(f'{len(each.data) / 2**20:.1f}' for each in layers)} = {size / 2**20:.1f} MiB")
    return Image(arch, layers, CONFIG)


def main() -> int:
    """Build as the arguments say; returns the exit code."""
    parser = argparse.ArgumentParser(description="Build the container image.")
    parser.add_argument("--output", type=Path, default=Path("build/image"))
    parser.add_argument("--cache", type=Path, default=Path("build/image-cache"), help="downloads, kept between builds")
    parser.add_argument("--arch", action="append", choices=ARCHS, help="all by default")
    parser.add_argument("--twice", action="store_true", help="build a second time; fails if the digest differs")
    parser.add_argument("--lock", action="store_true", help="write deploy/image/debian.lock and build nothing")
    given = parser.parse_args()
    archs = tuple(given.arch or ARCHS)
    if given.lock:
        debian.lock(archs, given.cache / "apt")
        return 0
    digest = build(given.output, given.cache, archs)
    print(f"{given.output / 'layout'}: {digest}")
    if given.twice:
        again = build(given.output, given.cache, archs)
        if again != digest:
            print(f"the second build differs: {again}")
            return 1
        print("the second build is the same")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
