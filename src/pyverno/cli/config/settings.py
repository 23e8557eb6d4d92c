"""Settings of a configuration file: `.pyverno.yaml`, or the table `tool.pyverno` of `pyproject.toml`.

Sections are commands, keys their long flags; `policies` and `sources` stand for the arguments. Paths are relative to
the file. A flag on the command line replaces its setting. A file that is found, and not named, may have come with what
is judged: the roles of flags decide what it may set, and its paths stay in its repository.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pyverno.cli.args.configpath import PROJECT_FILE, config_path, empty_flag, named_path, named_revision
from pyverno.cli.args.flags import Flag, comma_list
from pyverno.cli.bounds import outside, own_tree
from pyverno.cli.config.roles import ROLES
from pyverno.errors import Location, PyvernoError, UsageError
from pyverno.kube.json import JSON
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.files import read_file
from pyverno.spelling import did_you_mean
from pyverno.value import dataclass

# trust rows: found-configuration, named-configuration

__all__ = ["SECTIONS", "Setting", "check_settings", "defaults_for", "read_settings", "section_flags", "settings_for"]

SECTIONS: Final = ("apply", "lint", "test")
_ARGUMENTS: Final = {"apply": "policies", "lint": "policies", "test": "sources"}
_PATHS: Final = frozenset({
    *("policies", "sources", "resources", "target_resources", "parameter_resources", "exceptions", "crd_paths", "crds"),
    *("json_payloads", "http_payloads", "envoy_payloads", "helm", "helm_values", "kustomize"),
})  # fmt: skip
_Places = Callable[..., Location]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: the flag, the value as the flag takes it, and where it is.

    `refusal` is the reason why a file that is found may not have it, "" where it may.
    """

    section: str
    key: str
    flag: Flag
    value: Any
    location: Location
    refusal: str = ""


def defaults_for(words: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the settings of every command by the names of its values, for the words of a command line.

    Raises UsageError for a file that was found and has settings that only a named one may have.
    """
    found: dict[str, dict[str, Any]] = {}
    settings = settings_for(words)
    check_settings(settings)
    for each in settings:
        found.setdefault(each.section, {})[each.flag.field] = each.value
    return found


def settings_for(words: Sequence[str]) -> tuple[Setting, ...]:
    """Return the settings of the file that the words of a command line name, or that is found for them.

    Raises UsageError for an empty name: the file of the working tree must not stand in for the one that was meant.
    """
    if empty := empty_flag(words):  # guard: an empty variable selects no configuration
        raise UsageError(
            f"`{empty}` has an empty value: give it one, or leave the flag out (`--config none` reads no file)"
        )
    revision = named_revision(words)
    if revision:
        from pyverno.cli.config.revision import read_at  # few runs take it from git

        if named_path(words):
            raise UsageError("--config and --config-revision cannot be used together, use one or the other")
        path, data = read_at(revision)
        return _parse(os.path.relpath(path), data, is_found=True) if path else ()
    named = named_path(words)
    path = config_path(words)
    return read_settings(path if named else os.path.relpath(path), is_found=not named) if path else ()


def check_settings(settings: Sequence[Setting]) -> None:
    """Raise UsageError for settings that a found file may not have: one error that names all of them."""
    refused = [each for each in settings if each.refusal]
    if not refused:
        return
    first, *others = refused
    also = ", ".join(f"`{each.key}` ({each.location.line}:{each.location.column})" for each in others)
    more = f" (this also refuses {also})" if also else ""
    raise UsageError(
        f"`{first.key}` of `{first.section}` {first.refusal}: a configuration file that is found, not named, selects "
        f"and formats only{more}; give it on the command line, or name a file that you trust with --config FILE",
        location=first.location,
    )


def section_flags(section: str, *, every: bool = False) -> dict[str, Flag]:
    """Return the flags of a command by the keys that a file may use; with `every`, also those that no file may set."""
    if section == "apply":
        from pyverno.cli.apply.flags import SECTIONS as GROUPS
    elif section == "lint":
        from pyverno.cli.lint.command import SECTIONS as GROUPS
    else:
        from pyverno.cli.test.flags import SECTIONS as GROUPS
    argument = _ARGUMENTS[section]
    found = {argument: comma_list(f"--{argument}", help="", role="selection")}
    for flag in (each for flags in GROUPS.values() for each in flags):
        found |= {name.removeprefix("--"): flag for name in flag.names if name.startswith("--")}
    return {key: flag for key, flag in found.items() if every or ROLES[flag.role].in_named}


def read_settings(path: str, *, is_found: bool = False) -> tuple[Setting, ...]:
    """Read a file; raises UsageError with the place of the first setting that no command has.

    With `is_found`, what only a named file may set has a `refusal`.
    """
    try:
        if is_found and (target := outside(path, own_tree(Path(path).parent))):  # guard: a found file is no link out
            raise UsageError(f"`{path}` is a link to `{target}`, outside of its repository: name it with --config")
        data = read_file(Path(path))
    except PyvernoError as error:
        raise UsageError(f"the configuration cannot be used: {error}") from error
    return _parse(path, data, is_found=is_found)


def _parse(path: str, data: bytes, *, is_found: bool) -> tuple[Setting, ...]:
    try:
        body, places = _read_toml(path, data) if path.endswith(".toml") else _read_yaml(path, data)
    except PyvernoError as error:
        raise UsageError(f"the configuration cannot be used: {error}") from error
    except ValueError as error:
        raise UsageError(f"the configuration cannot be used: {path}: {str(error).lower()}") from error
    except RecursionError as error:
        raise UsageError(f"the configuration cannot be used: {path}: values are nested too deeply") from error
    return tuple(_settings(path, body, places, is_found=is_found))


def _read_toml(path: str, data: bytes) -> tuple[JSON, _Places]:
    import tomllib

    from pyverno.cli.config.places import toml_place

    text = data.decode()
    body: JSON = tomllib.loads(text)
    above = ("tool", "pyverno") if Path(path).name == PROJECT_FILE else ()
    for step in above:
        body = body.get(step, {}) if isinstance(body, dict) else {}
    return body, lambda *steps: toml_place(path, text, (*above, *steps))


def _read_yaml(path: str, data: bytes) -> tuple[JSON, _Places]:
    documents = load_documents(data, file=path)
    if len(documents) > 1:
        raise UsageError("it must hold one document", location=Location(path))
    if not documents:
        return {}, lambda *steps: Location(path)
    return documents[0].value, lambda *steps: documents[0].location(steps, key=True)


def _settings(path: str, body: JSON, place: _Places, *, is_found: bool) -> Iterator[Setting]:
    if not isinstance(body, dict):
        raise UsageError("the configuration must be a map of commands", location=place())
    folder = Path(path).parent
    for section, settings in body.items():
        if section not in SECTIONS:
            hint = did_you_mean(section, SECTIONS) or f": expected {', '.join(SECTIONS)}"
            raise UsageError(f"unknown section `{section}`{hint}", location=place(section))
        if settings is None:
            continue
        if not isinstance(settings, dict):
            raise UsageError(f"section `{section}` must be a map of flags", location=place(section))
        known = section_flags(section, every=True)
        for key, value in settings.items():
            where = place(section, key)
            flag = known.get(key)
            if flag is None:
                hint = did_you_mean(key, section_flags(section))
                raise UsageError(f"unknown setting `{key}` of `{section}`{hint}", location=where)
            rights = ROLES[flag.role]
            if not rights.in_named:  # guard: secrets and flags without a role are in no file
                raise UsageError(f"`{key}` {rights.reason}: it cannot be a setting", location=where)
            taken = _value(flag, key, value, where, folder)
            refusal = _refusal(flag, value, folder) if is_found else ""  # guard: a found file selects and formats only
            yield Setting(section, key, flag, taken, where, refusal)


def _refusal(flag: Flag, value: JSON, folder: Path) -> str:
    """Return the reason why a found file may not hold a setting."""
    rights = ROLES[flag.role]
    if not rights.in_found:
        return rights.reason
    paths = (value if isinstance(value, list) else [value]) if flag.field in _PATHS else []
    for text in (_from(folder, str(each)) for each in paths):
        if "://" in text:
            return f"reaches the network (`{text}`)"  # guard: a found file names no address
        if target := outside(text, own_tree(folder)):
            return f"leads out of the repository (`{target}`)"  # guard: a found file names no path outside
    return ""


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
