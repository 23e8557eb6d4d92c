"""Rewrites the golden renders: `python -m tests.deploy --write`."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.deploy.charts import RENDERS, golden_text


def main() -> None:
    """Write every golden file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    for name in RENDERS:
        (Path(__file__).parent / "renders" / f"{name}.yaml").write_text(golden_text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
