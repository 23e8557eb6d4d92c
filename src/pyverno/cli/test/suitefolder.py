"""The folder of a test suite, to which the names of its files are relative."""

from __future__ import annotations

from pathlib import Path

from pyverno.cli.bounds import outside
from pyverno.errors import UsageError
from pyverno.offline.folderrules import check_regular
from pyverno.value import dataclass

# trust rows: test-suite

__all__ = ["SuiteFolder"]


@dataclass(frozen=True, slots=True)
class SuiteFolder:
    """A folder; with `roots`, its suite names files below these folders only, because others may have written it."""

    path: Path
    roots: tuple[Path, ...] = ()

    def __truediv__(self, name: str) -> Path:
        """Return the file or folder of a name; raises UsageError for one outside of the roots, and for a device.

        >>> (SuiteFolder(Path("a"), (Path("a"),)) / "b.yaml").as_posix()
        'a/b.yaml'
        """
        found = self.path / name
        if self.roots and outside(str(found), *self.roots):  # guard: a test names files of its own tree
            raise UsageError(
                f"`{name}` is outside of the tree of the test: its repository, or the folder that was given"
            )
        return check_regular(found)
