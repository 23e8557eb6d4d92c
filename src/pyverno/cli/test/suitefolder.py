"""The folder of a test suite, to which the names of its files are relative."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from pyverno.errors import UsageError
from pyverno.offline.folderrules import check_regular
from pyverno.offline.links import is_inside
from pyverno.value import dataclass

__all__ = ["SuiteFolder"]


@dataclass(frozen=True, slots=True)
class SuiteFolder:
    """A folder; with a `root`, that of its repository, its suite names files of the repository only."""

    path: Path
    root: Path | None = None

    def __truediv__(self, name: str) -> Path:
        """Return the file or folder of a name; raises UsageError for one outside of the root, and for a device.

        >>> str(SuiteFolder(Path("a"), Path("a")) / "b.yaml").replace(os.sep, "/")
        'a/b.yaml'
        """
        found = self.path / name
        if self.root is not None:
            climbs = ".." in found.parts and glob.has_magic(name)
            written = Path(os.path.abspath(found))  # noqa: PTH100 - `..` as it is written; links are followed below
            inside = written.is_relative_to(os.path.abspath(self.root)) and is_inside(found, self.root.resolve())  # noqa: PTH100
            if climbs or not inside:
                raise UsageError(f"`{name}` is outside of the repository of the test")
        return check_regular(found)
