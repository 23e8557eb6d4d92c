"""Versions of dependencies: none has a known vulnerability, and CI runs the lowest ones."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-build.lock", "requirements-dev.lock", "requirements-lowest.lock")

FLOORS = {
    "aiohttp": (
        "3.14.3",
        "CVE-2026-69244: malformed answers; CVE-2026-22815, CVE-2025-69229: floods of chunks, headers",
    ),
    "cryptography": ("48.0.1", "GHSA-537c-gmf6-5ccf: holes of the OpenSSL inside of the wheels"),
    "orjson": ("3.11.6", "CVE-2025-67221: recursion without end in dumps"),
    "pyyaml": ("5.4", "CVE-2020-14343: full_load runs code"),
    "protobuf": ("5.29.6", "CVE-2026-0994: recursion without end, by way of OpenTelemetry"),
}
"""The first version without the hole; there is no asking an advisory service where tests run."""


def pins(lock: str) -> dict[str, str]:
    """Return the versions of a lock file by lower-case name."""
    found = re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE)
    return {name.lower().replace("_", "-"): version for name, version in found}


def as_numbers(version: str) -> tuple[int, ...]:
    """Read a version that consists of numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


@pytest.mark.parametrize("lock", LOCKS)
def test_no_lock_holds_a_version_with_a_known_hole(lock: str) -> None:
    """Each package that is on the list of floors is at its floor or above, the lowest that we allow included."""
    found = pins(lock)
    assert {} == {
        name: found[name]
        for name, (floor, _) in FLOORS.items()
        if as_numbers(found.get(name, floor)) < as_numbers(floor)
    }


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_hashes_and_names_no_index(lock: str) -> None:
    """The hash ties an installed package to its lock, whatever index serves it."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(pins(lock)) <= len(blocks)
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in text
    assert "-index" not in text


def test_the_lowest_lock_holds_the_lower_bounds() -> None:
    """A bound raised without `make lock` would leave CI at versions that users cannot install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    bounds = dict(re.fullmatch(r"([\w.-]+)(?:\[\w+\])?>=([\d.]+).*", each).groups() for each in wanted)  # type: ignore[union-attr]
    found = pins("requirements-lowest.lock")
    low = {name: found[name.lower().replace("_", "-")] for name in bounds}
    assert {name: as_numbers(bound) for name, bound in bounds.items()} == {
        name: as_numbers(version)[: len(as_numbers(bounds[name]))] for name, version in low.items()
    }
