"""`python -m tests.conformance`: runs a corpus and reports which cases passed, failed or were left out, and why.

Exit code 1: something failed that is no known gap, or a known gap has closed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pyverno.errors import PyvernoError
from tests.conformance.gaps import GAPS_FILE, read_gaps
from tests.conformance.runner import BUCKETS, NOT_RUN, has_bucket, run_corpus
from tests.conformance.summary import make_report

__all__ = ["main"]

_CORPUS = Path("..") / "shared" / "conformance"
_MOST_WORKERS = 4


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--corpus", type=Path, default=_CORPUS, metavar="DIR", help=f"default {_CORPUS}")
    parser.add_argument(
        "--bucket", action="append", choices=[*BUCKETS, *NOT_RUN], metavar="NAME", help=", ".join(BUCKETS)
    )
    parser.add_argument("--filter", default="", metavar="TEXT", help="only cases whose id contains this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the whole report there")
    parser.add_argument("--gaps", type=Path, default=GAPS_FILE, metavar="FILE", help="the known gaps")
    parser.add_argument("--strict", action="store_true", help="passes that say nothing are failures")
    workers = min(_MOST_WORKERS, os.cpu_count() or 1)
    parser.add_argument("--workers", type=int, default=workers, metavar="N", help=f"processes, default {workers}")
    return parser


def _left_out(corpus: Path, asked: Sequence[str]) -> dict[str, str]:
    """Return the reasons why requested buckets are not run."""
    reasons = {name: NOT_RUN.get(name, "") for name in asked}
    missing = {name: "the corpus has no such folder" for name in asked if not has_bucket(corpus, name)}
    return {name: why for name, why in {**reasons, **missing}.items() if why}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; returns the exit code."""
    options = _parser().parse_args(arguments)
    if not options.corpus.is_dir():
        print(f"there is no corpus at {options.corpus}: nothing was run")
        return 0
    try:
        gaps = read_gaps(options.gaps)
    except PyvernoError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    asked = options.bucket or [*BUCKETS, *NOT_RUN]
    outcomes = run_corpus(
        options.corpus,
        [name for name in BUCKETS if name in asked],
        text=options.filter,
        workers=options.workers,
        is_strict=options.strict,
    )
    left_out = _left_out(options.corpus, asked)
    report = make_report(outcomes, gaps, left_out, is_strict=options.strict)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report.to_json(), indent=1, ensure_ascii=False, default=str) + "\n")
    details = report.details()
    print(report.table(), *([details] if details else []), sep="\n\n")
    print("\ngood" if report.is_good else f"\n{len(report.failures)} failures, {len(report.closed_gaps)} closed gaps")
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
