"""Trees of files as layers, and layers as an image in an OCI layout; the same trees give the same bytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["Image", "Layer", "Layout", "layer"]

_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_INDEX: Final = "application/vnd.oci.image.index.v1+json"
_LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
_CREATED: Final = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: its compressed bytes, and the digest of the tar archive in them."""

    data: bytes
    diff_id: str
    comment: str


@dataclass(frozen=True, slots=True)
class Image:
    """What one platform runs."""

    arch: str
    layers: tuple[Layer, ...]
    config: Mapping[str, Any]
    """User, Env, Entrypoint and Labels of containers."""


def layer(root: Path, comment: str) -> Layer:
    """Pack a tree: entries by name, owned by root, without times; write permission for root only."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(root.rglob("*"), key=lambda path: path.relative_to(root).parts):
            entry = archive.gettarinfo(str(path), str(path.relative_to(root)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = 0
            if entry.islnk():  # a file with two names: both as files, whichever comes first
                entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", path.stat().st_size
            if not entry.issym():
                entry.mode = _mode(entry, str(path.relative_to(root)))
            if entry.isreg():
                with path.open("rb") as file:
                    archive.addfile(entry, file)
            else:
                archive.addfile(entry)
    data = packed.getvalue()
    return Layer(gzip.compress(data, compresslevel=9, mtime=0), _digest(data), comment)


def _mode(entry: tarfile.TarInfo, name: str) -> int:
    if name == "tmp":
        return 0o1777
    return 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644


class Layout:
    """An OCI layout below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "blobs" / "sha256").mkdir(parents=True)

    def write(self, images: Sequence[Image], tag: str) -> str:
        """Write images of several platforms under one tag; return the digest of their index."""
        manifests = [
            {**self._image(image), "platform": {"architecture": image.arch, "os": "linux"}} for image in images
        ]
        index = self._blob(_json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": manifests}), _INDEX)
        named = {**index, "annotations": {"org.opencontainers.image.ref.name": tag}}
        (self.folder / "index.json").write_bytes(_json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [named]}))
        (self.folder / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))
        return str(index["digest"])

    def _image(self, image: Image) -> dict[str, Any]:
        config = {
            **{"created": _CREATED, "architecture": image.arch, "os": "linux", "config": dict(image.config)},
            "rootfs": {"type": "layers", "diff_ids": [each.diff_id for each in image.layers]},
            "history": [{"created": _CREATED, "created_by": each.comment} for each in image.layers],
        }
        manifest = {
            **{"schemaVersion": 2, "mediaType": _MANIFEST, "config": self._blob(_json(config), _CONFIG)},
            "layers": [self._blob(each.data, _LAYER) for each in image.layers],
        }
        return self._blob(_json(manifest), _MANIFEST)

    def _blob(self, data: bytes, media_type: str) -> dict[str, Any]:
        digest = _digest(data)
        (self.folder / "blobs" / "sha256" / digest.removeprefix("sha256:")).write_bytes(data)
        return {"mediaType": media_type, "digest": digest, "size": len(data)}


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
