"""What an install step fetches is known before: packages by hash, actions by commit, images by digest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.test_dependencies import pins

ROOT = Path(__file__).resolve().parents[2]
STEPS = (
    "action.yml",
    "Makefile",
    ".ci/run",
    "deploy/ci/gitlab.yml",
    "deploy/image/Containerfile",
    "docs/guide/ci.md",
)
"""The files with steps that machines run: the Action, CI, templates of CI, the image, and examples that people copy."""

_PINNED = {
    "uses": re.compile(r"@[0-9a-f]{40}( # v[0-9.]+)?$"),
    "image": re.compile(r"@sha256:[0-9a-f]{64}\b"),
    "pip": re.compile(r"--require-hashes\b|--no-deps --no-build-isolation\b"),
    "npm": re.compile(r"\bnpm ci\b.*--ignore-scripts\b"),
    "download": re.compile(r"(?!)"),
}
_FETCHES = {
    "uses": re.compile(r"\buses: *(?!\./)\S+"),
    "image": re.compile(r"^FROM +(?!scratch)|^ +image: *\S+ *(?:#.*)?$"),
    "pip": re.compile(
        r"\bpip\d? (?:--\S+ )*(?:install|download)\b|\bpipx (?:install|run)\b|\buvx? (?:pip|tool|run)\b(?! compile)"
    ),
    "npm": re.compile(r"\bnpm (?:ci|install|i)\b|\bnpx\b"),
    "download": re.compile(r"\b(?:curl|wget)\b"),
}


def commands(text: str) -> Iterator[str]:
    """Yield the lines of a file; a line that goes on behind a backslash is one."""
    yield from re.sub(r"\\\n\s*", " ", text).splitlines()


def unpinned(text: str) -> list[str]:
    """Return the lines that fetch something whose content is not known before."""
    return [
        line.strip()
        for line in commands(text)
        for kind, fetches in _FETCHES.items()
        if not line.lstrip().startswith("#") and fetches.search(line) and not _PINNED[kind].search(line)
    ]


@pytest.mark.parametrize("name", STEPS)
def test_every_step_fetches_what_is_known_before(name: str) -> None:
    """A tag or a version may mean other bytes tomorrow; a hash does not."""
    assert [] == unpinned((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "line",
    [
        "  - uses: actions/checkout@v4",
        "FROM python:3.13-slim AS build",
        "  image: python:3.13",
        "RUN pip install --no-deps --target /app .",
        "pip install \\\n  ./.pyverno",
        "python -I -m pip --quiet install hatchling",
        "uv tool install x",
        "npx esbuild",
        "curl https://example.com/install.sh | sh",
    ],
)
def test_a_step_that_fetches_what_may_change_is_found(line: str) -> None:
    """The check itself sees each form."""
    assert 1 == len(unpinned(line))


def test_the_build_backend_is_locked_where_packages_are_built() -> None:
    """The lock of the backend is that of development: what is tested is what builds."""
    build, development = pins("requirements-build.lock"), pins("requirements-dev.lock")
    assert "hatchling" in build
    assert build == {name: development[name] for name in build}
