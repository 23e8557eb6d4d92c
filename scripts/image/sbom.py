"""What an image consists of, as a CycloneDX document: Debian packages, wheels, and their licences."""

from __future__ import annotations

import hashlib
import json
import uuid
import zipfile
from collections.abc import Iterable
from email.parser import HeaderParser
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from scripts.image.debian import DebianPackage

__all__ = ["Metadata", "bill_of_materials", "licence", "metadata"]


class Metadata(Protocol):
    """Core metadata of a distribution, by the names of its fields."""

    def get(self, name: str) -> Any:
        """Return the first value of a field, None without one."""

    def get_all(self, name: str, failobj: Any = None) -> Any:
        """Return all values of a field."""


def bill_of_materials(packages: Iterable[DebianPackage], wheels: Iterable[Path], arch: str) -> str:
    """Return the document; it depends on the packages and wheels alone, and names no time."""
    components = [_debian(each) for each in packages] + [_wheel(each) for each in wheels]
    components.sort(key=lambda each: str(each["purl"]))
    [version] = [each["version"] for each in components if each["purl"].startswith("pkg:pypi/pyverno@")]
    body = {
        **{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1},
        "metadata": {"component": {"type": "container", "name": "pyverno", "version": f"{version}-{arch}"}},
        "components": components,
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return json.dumps({**body, "serialNumber": f"urn:uuid:{serial}"}, indent=1, ensure_ascii=False) + "\n"


def metadata(wheel: Path) -> Metadata:
    """Return the core metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA") and each.count("/") == 1]
        return HeaderParser().parsestr(archive.read(name).decode())


def licence(found: Metadata) -> str:
    """Return the licence that a distribution declares: its expression, its classifiers, or its own words."""
    if found.get("License-Expression"):
        return str(found.get("License-Expression"))
    prefix = "License :: OSI Approved :: "
    classified = [each.removeprefix(prefix) for each in found.get_all("Classifier", ()) if each.startswith(prefix)]
    return " and ".join(classified) or str(found.get("License") or "").split("\n", 1)[0]


def _debian(package: DebianPackage) -> dict[str, Any]:
    version = quote(package.version, safe="")
    return {
        **{"type": "library", "name": package.name, "version": package.version},
        "purl": f"pkg:deb/debian/{quote(package.name, safe='')}@{version}?arch={package.arch}&distro=debian-12",
        "hashes": [{"alg": "SHA-256", "content": package.sha256}],
    }


def _wheel(path: Path) -> dict[str, Any]:
    found = metadata(path)
    name = str(found.get("Name")).lower().replace("_", "-")
    licences = [{"license": {"name": text}}] if (text := licence(found)) else []
    return {
        **{"type": "library", "name": name, "version": found.get("Version"), "licenses": licences},
        "purl": f"pkg:pypi/{name}@{found['Version']}",
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
    }
