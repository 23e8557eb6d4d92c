"""Coverage and mutation score of the policy library, as one line of its README: `--check` compares, no flag writes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "policies" / "README.md"
LINE = re.compile(r"^Measured by `pyverno test policies .*$", re.MULTILINE)


def measured(workers: int = 2) -> str:
    """Run all cases against all mutants and return the line; takes some minutes."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        flags = ("--strict", "--coverage", "--mutate", "--workers", str(workers), "--report", str(report))
        command = [sys.executable, "-m", "pyverno", "test", "policies", *flags]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        found = json.loads(report.read_text())
    return line(found)


def line(found: dict[str, dict[str, object]]) -> str:
    """Return the line for a report of `pyverno test`."""
    rules, branches, mutation = found["coverage"]["rules"], found["coverage"]["branches"], found["mutation"]
    killed, survived = mutation["killed"], mutation["survived"]
    return (
        "Measured by `pyverno test policies --strict --coverage --mutate`: "
        f"{rules['percent']}% of {rules['total']} rules and {branches['percent']}% of {branches['total']} branches "
        f"are covered, {mutation['percent']}% of {int(killed) + int(survived)} mutants are killed."
    )


def main() -> int:
    """Write the line, or compare it."""
    found = measured()
    # read last: what was written in those minutes stays
    text = README.read_text(encoding="utf-8")
    new = LINE.sub(found, text)
    if "--check" in sys.argv:
        return int(new != text)
    README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
