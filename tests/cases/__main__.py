"""`python -m tests.cases [--write]`: list the cases whose snapshot differs, or rewrite the snapshots."""

from __future__ import annotations

import sys

from tests.cases.case import EXPECTED, all_cases
from tests.cases.snapshot import snapshot


def main(arguments: list[str]) -> int:
    """Return 1 when a snapshot differs and was not rewritten."""
    write = "--write" in arguments
    changed = []
    for case in all_cases():
        path = case.folder / EXPECTED
        text = snapshot(case)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        changed.append(case.name)
        if write:
            path.write_text(text, encoding="utf-8")
    for name in changed:
        print(f"{'wrote' if write else 'differs'}: {name}")
    return 1 if changed and not write else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
