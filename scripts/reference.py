"""Writes docs/reference from the code: `python -m scripts.reference`; with `--check` only lists stale pages.

Each page is a function of `scripts.reference_pages`. The output depends on the code alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pyverno.cli.docs import SCHEMAS, schema_text
from scripts.reference_pages.analysis import analysis
from scripts.reference_pages.cel_libraries import cel_libraries
from scripts.reference_pages.commands import commands
from scripts.reference_pages.controller_flags import controller_flags
from scripts.reference_pages.error_codes import error_codes
from scripts.reference_pages.functions import functions
from scripts.reference_pages.limits import limits
from scripts.reference_pages.lints import lints
from scripts.reference_pages.markdown import page
from scripts.reference_pages.metrics import metrics
from scripts.reference_pages.operators import operators
from scripts.reference_pages.patterns import patterns
from scripts.reference_pages.pod_security import pod_security
from scripts.reference_pages.policy_kinds import policy_kinds
from scripts.reference_pages.policy_library import policy_library

__all__ = ["PAGES", "main"]

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"

PAGES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "policy-kinds.md": ("policy kinds and their fields", policy_kinds),
    "policy-library.md": ("policies of the library by category", policy_library),
    "patterns.md": ("anchors and pattern operators", patterns),
    "condition-operators.md": ("operators of conditions", operators),
    "jmespath-functions.md": ("functions of expressions", functions),
    "cel-libraries.md": ("functions of CEL expressions by library", cel_libraries),
    "pod-security.md": ("controls of the Pod Security Standards by version", pod_security),
    "analysis.md": ("checks of `pyverno analyze`", analysis),
    "lints.md": ("checks of `pyverno lint`", lints),
    "command-line.md": ("commands and flags", commands),
    "controllers.md": ("flags of the controllers", controller_flags),
    "metrics.md": ("metrics of the controllers", metrics),
    "errors.md": ("exceptions and codes", error_codes),
    "limits.md": ("what input and policies may use", limits),
}
"""File names with what each page tells and the function that makes it."""


SCHEMA_FILES: Mapping[str, Callable[[], str]] = {f"schemas/{name}.json": partial(schema_text, name) for name in SCHEMAS}
"""Schemas of JSON documents, as the wheel contains them."""


def _index() -> str:
    lines = "\n".join(f"- [{name.removesuffix('.md')}]({name}): {what}" for name, (what, _) in PAGES.items())
    lines += "\n- [schemas](schemas/): JSON schemas of the documents that commands print (`pyverno docs --schema NAME`)"
    return page("Reference", "These pages are made from the code by `make docs`.", lines)


def main() -> int:
    """Write or check the pages; returns the exit code."""
    parser = argparse.ArgumentParser(description="Write docs/reference from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing, name the pages that are stale")
    is_check = parser.parse_args().check
    texts = {"README.md": _index(), **{name: make() for name, (_, make) in PAGES.items()}}
    texts |= {name: make() for name, make in SCHEMA_FILES.items()}
    stale = sorted(path.name for path in FOLDER.glob("*.md") if path.name not in texts)
    for name, text in texts.items():
        file = FOLDER / name
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        if is_check:
            stale.append(name)
        else:
            FOLDER.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            print(f"wrote docs/reference/{name}")
    if stale:
        print("stale pages of docs/reference (run `make docs`): " + ", ".join(sorted(stale)), file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
