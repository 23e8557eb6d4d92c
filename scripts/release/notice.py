"""The licences of the dependencies in NOTICE: `python -m scripts.release.notice`; `--check` only compares."""

from __future__ import annotations

import argparse
import re
import sys
from importlib.metadata import metadata
from pathlib import Path
from typing import cast

from scripts.image.sbom import Metadata, licence

__all__ = ["NOTICE", "main", "with_licences"]

_ROOT = Path(__file__).resolve().parents[2]
NOTICE = _ROOT / "NOTICE"
_TITLE = "Dependencies\n------------\n"
_TEXT = """\
The wheel contains none of these packages; the container image contains all of them, with their licences, in the
versions of requirements.lock. They are unchanged, and their sources are on the Python Package Index; where a licence
asks for the source of what is distributed, as the MPL does, that is where it is.

"""


def with_licences(notice: str, lock: str) -> str:
    """Return the text of NOTICE with the declared licence of every package of a lock file as its last section."""
    names = sorted(re.findall(r"(?m)^([A-Za-z0-9._-]+)==", lock))
    rows = [f"{name}: {licence(cast('Metadata', metadata(name)))}\n" for name in names]
    return notice.partition(_TITLE)[0].rstrip("\n") + "\n\n\n" + _TITLE + _TEXT + "".join(rows)


def main() -> int:
    """Write or check NOTICE; returns the exit code."""
    parser = argparse.ArgumentParser(description="Write the licences of the dependencies into NOTICE.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail if the text is stale")
    is_check = parser.parse_args().check
    written = NOTICE.read_text(encoding="utf-8")
    wanted = with_licences(written, (_ROOT / "requirements.lock").read_text(encoding="utf-8"))
    if is_check and written != wanted:
        print("NOTICE is stale (run `make docs`)", file=sys.stderr)
        return 1
    NOTICE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
