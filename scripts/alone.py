"""Runs the tests that failed in the last run once more, one after another and with nothing beside them.

CI calls it after a suite that failed. A test that passes alone is printed as flaky, and has to be mended, but it does
not hold back a change that did not touch it. A test that fails again fails CI, and so do more failures than chance
explains: those are not run again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

__all__ = ["main"]

_MOST = 5
_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main() -> int:
    """Run the failed tests again and return the exit code: 0 if there were a few and all of them passed."""
    failed = sorted(json.loads(_FAILED.read_text())) if _FAILED.exists() else []
    if not failed:
        print("no test is known to have failed: the run itself did", file=sys.stderr)
        return 1
    if len(failed) > _MOST:
        print(f"{len(failed)} tests failed, more than {_MOST}: they are not run again", file=sys.stderr)
        return 1
    print("\nfailed beside other tests, and run once more, alone:", *failed, sep="\n  ", flush=True)
    code = subprocess.run([sys.executable, "-m", "pytest", "-rs", *failed], check=False).returncode
    if code == 0:
        print("FLAKY, to be mended (the failure is shown above):", *failed, sep="\n  ")
    return code


if __name__ == "__main__":
    sys.exit(main())
