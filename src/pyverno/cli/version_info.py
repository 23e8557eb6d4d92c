"""The output of `pyverno version` as text, JSON and YAML.

The fast start-up path imports this module, which must therefore not import click or other large modules.
"""

from __future__ import annotations

import os

from pyverno.version import __version__

# trust rows: package

__all__ = ["UNKNOWN", "version_text"]

UNKNOWN = "---"


def version_text(form: str = "") -> str | None:
    """Return the answer in a form ("" = text, `json`, `yaml`), or None for a form that does not exist.

    >>> version_text().splitlines()[1]
    'Time: ---'
    """
    commit = _commit()
    rows = (("version", __version__), ("time", UNKNOWN), ("gitCommitId", commit))
    if not form:
        return f"Version: {__version__}\nTime: {UNKNOWN}\nGit commit ID: {commit}\n"
    if form == "json":
        body = ",\n".join(f'  "{key}": "{value}"' for key, value in rows)
        return f"{{\n{body}\n}}\n"
    if form == "yaml":
        from pyverno.kube.yaml.writer import dump_yaml

        # COMPAT: a blank line follows the YAML
        return dump_yaml(dict(rows)) + "\n"
    return None


def _commit() -> str:
    """Return the commit that a package was installed from, as pip writes it down (PEP 610)."""
    place = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120 - pathlib is slow to import
    path = os.path.join(place, f"pyverno-{__version__}.dist-info", "direct_url.json")  # noqa: PTH118
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return UNKNOWN
    import json

    try:
        commit = json.loads(text).get("vcs_info", {}).get("commit_id", UNKNOWN)
    except (ValueError, AttributeError):
        return UNKNOWN
    return commit if isinstance(commit, str) and commit.isalnum() else UNKNOWN
