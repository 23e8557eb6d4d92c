"""Settings of a configuration file: `.pyverno.yaml`, or the table `tool.pyverno` of `pyproject.toml`.

Sections are commands, keys their long flags; `policies` and `sources` stand for the arguments. Paths are relative to
the file. A flag on the command line replaces its setting.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pyverno.cli.args.configpath import PROJECT_FILE, config_path
from pyverno.cli.args.flags import Flag, comma_list
from pyverno.errors import Location, PyvernoError, UsageError
from pyverno.kube.json import JSON
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.offline.files import read_file
from pyverno.spelling import did_you_mean
from pyverno.value import dataclass

__all__ = ["SECTIONS", "Setting", "defaults_for", "read_settings", "section_flags"]

SECTIONS: Final = ("apply", "lint", "test")
_ARGUMENTS: Final = {"apply": "policies", "lint": "policies", "test": "sources"}
_PATHS: Final = frozenset({
    *("policies", "sources", "resources", "target_resources", "parameter_resources", "exceptions", "crd_paths", "crds"),
    *("json_payloads", "http_payloads", "envoy_payloads", "helm", "helm_values", "kustomize"),
})  # fmt: skip
_REFUSED: Final = {
    "config": "names this file itself",
    "password": "is a secret",
    "username": "belongs to a secret",
    "watch": "is for one run",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: the flag, the value as the flag takes it, and where it is."""

    section: str
    key: str
    flag: Flag
    value: Any
    location: Location


def defaults_for(words: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the settings of every command by the names of its values, for the words of a command line."""
    found: dict[str, dict[str, Any]] = {}
    path = config_path(words)
    for each in read_settings(path) if path else ():
        found.setdefault(each.section, {})[each.flag.field] = each.value
    return found


def section_flags(section: str) -> dict[str, Flag]:
    """Return the flags of a command by the keys that a file may use."""
    if section == "apply":
        from pyverno.cli.apply.flags import SECTIONS as GROUPS
    elif section == "lint":
        from pyverno.cli.lint.command import SECTIONS as GROUPS
    else:
        from pyverno.cli.test.flags import SECTIONS as GROUPS
    argument = _ARGUMENTS[section]
    found = {argument: comma_list(f"--{argument}", help="")}
    for flag in (each for flags in GROUPS.values() for each in flags):
        found |= {name.removeprefix("--"): flag for name in flag.names if name.startswith("--")}
    return {key: flag for key, flag in found.items() if key not in _REFUSED}


def read_settings(path: str) -> tuple[Setting, ...]:
    """Read a file; raises UsageError with the place of the first setting that no command has."""
    body, document = _read(path)
    return tuple(_settings(path, body, document))


def _read(path: str) -> tuple[JSON, Document | None]:
    try:
        data = read_file(Path(path))
        if Path(path).name == PROJECT_FILE or path.endswith(".toml"):
            import tomllib

            found: JSON = tomllib.loads(data.decode())
            is_project = Path(path).name == PROJECT_FILE
            return (found.get("tool", {}).get("pyverno", {}) if is_project else found), None
        documents = load_documents(data, file=path)
    except PyvernoError as error:
        raise UsageError(f"the configuration cannot be used: {error}") from error
    except ValueError as error:
        raise UsageError(f"the configuration cannot be used: {path}: {str(error).lower()}") from error
    if len(documents) > 1:
        raise UsageError("the configuration cannot be used: it must hold one document", location=Location(path))
    return (documents[0].value, documents[0]) if documents else ({}, None)


def _settings(path: str, body: JSON, document: Document | None) -> Iterator[Setting]:
    def place(*steps: str) -> Location:
        return Location(path) if document is None else document.location(steps, key=True)

    if not isinstance(body, dict):
        raise UsageError("the configuration must be a map of commands", location=place())
    for section, settings in body.items():
        if section not in SECTIONS:
            hint = did_you_mean(section, SECTIONS) or f": expected {', '.join(SECTIONS)}"
            raise UsageError(f"unknown section `{section}`{hint}", location=place(section))
        if settings is None:
            continue
        if not isinstance(settings, dict):
            raise UsageError(f"section `{section}` must be a map of flags", location=place(section))
        known = section_flags(section)
        for key, value in settings.items():
            where = place(section, key)
            if key in _REFUSED:
                raise UsageError(f"`{key}` {_REFUSED[key]}: it cannot be a setting", location=where)
            flag = known.get(key)
            if flag is None:
                raise UsageError(f"unknown setting `{key}` of `{section}`{did_you_mean(key, known)}", location=where)
            yield Setting(section, key, flag, _value(flag, key, value, where, Path(path).parent), where)


def _value(flag: Flag, key: str, value: JSON, where: Location, folder: Path) -> Any:
    """Return a value as click takes it; raises UsageError for one of a wrong type."""
    match flag.kind:
        case "switch":
            if not isinstance(value, bool):
                raise UsageError(f"`{key}` must be true or false", location=where)
            return value
        case "number":
            if isinstance(value, bool) or not isinstance(value, int):
                raise UsageError(f"`{key}` must be a whole number", location=where)
            return value
        case "list" | "repeated":
            items = value if isinstance(value, list) else [value]
            if not all(isinstance(each, str) for each in items):
                raise UsageError(f"`{key}` must be a text or a list of texts", location=where)
            paths = [_from(folder, each) if flag.field in _PATHS else each for each in items]
            return paths if key in _ARGUMENTS.values() else [_quote(each) for each in paths]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UsageError(f"`{key}` must be a text", location=where)
    text = str(value)
    if flag.choices and text not in flag.choices:
        hint = did_you_mean(text, flag.choices) or f": expected {', '.join(flag.choices)}"
        raise UsageError(f"`{key}` cannot be `{text}`{hint}", location=where)
    return _from(folder, text) if flag.metavar in ("FILE", "PATH") else text


def _quote(text: str) -> str:
    """Return a text that a list flag takes as one item."""
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


def _from(folder: Path, text: str) -> str:
    """Return a path of the file as one of the working folder; stdin, addresses and library policies stay."""
    if not text or text in ("-", "none") or text.startswith("@") or "://" in text or os.path.isabs(text):  # noqa: PTH117
        return text
    if Path(os.path.abspath(folder)) == Path.cwd():  # noqa: PTH100 - links stay as they are
        return text
    return os.path.relpath(folder / text)
