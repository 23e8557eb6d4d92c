"""The work of `pyverno policies`: list, show and copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pyverno.cli.policies.page import library_page
from pyverno.cli.style import style_for
from pyverno.cli.terminal import STDOUT
from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject, encode_indent
from pyverno.kube.wildcard import match
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.files import read_file
from pyverno.offline.policylibrary import CEL_DIALECT, LIBRARY_SIGN, Control, find_controls, library_root, list_controls
from pyverno.report.markdown import markdown_table
from pyverno.report.table import draw_table
from pyverno.value import dataclass

# trust rows: package

__all__ = ["ListOptions", "copy_policies", "list_policies", "show_policies"]

_HEADERS: Final = ("NAME", "SEVERITY", "SUBJECT", "TITLE", "STANDARDS")
_RULE: Final = "\n\n---\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """All flags of `pyverno policies list`."""

    names: tuple[str, ...] = ()
    dialect: str = "kyverno"
    categories: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    standards: tuple[str, ...] = ()
    search: str = ""
    form: str = "table"
    remove_color: bool = False


def list_policies(options: ListOptions) -> None:
    """Print the controls that every given filter selects; raises UsageError when none is left."""
    controls = [control for control in _select_controls(options) if _is_selected(control, options)]
    if not controls:
        raise UsageError("no policy of the library has all of this: leave out a filter, or see `pyverno policies list`")
    STDOUT.write(_WRITERS[options.form](controls, options))


def show_policies(names: Sequence[str], *, form: str) -> None:
    """Print README and policy of each control, or the policies alone as YAML or JSON."""
    controls = _distinct(each for name in names for each in find_controls(name))
    texts = [(read_file(each.folder / "README.md").decode(), read_file(each.path).decode()) for each in controls]
    if form == "yaml":
        STDOUT.write("---\n".join(policy.removeprefix("---\n") for _, policy in texts))
    elif form == "json":
        items = [document.value for _, policy in texts for document in load_documents(policy)]
        STDOUT.write(encode_indent(items[0] if len(items) == 1 else _list_of(items)) + "\n")
    else:
        shown = (f"{readme.rstrip()}\n\n```yaml\n{policy.rstrip()}\n```" for readme, policy in texts)
        STDOUT.write(_RULE.join(shown) + "\n")


def copy_policies(names: Sequence[str], to: str, *, force: bool) -> None:
    """Copy the folders of controls below `to`, under the paths they have in the library; nothing is half replaced."""
    root = library_root()
    folders = sorted({each.folder for name in names for each in find_controls(name)})
    # the cases of a CEL policy are the resources of its twin
    twins = {root / folder.relative_to(root / CEL_DIALECT) for folder in folders if CEL_DIALECT in folder.parts}
    copies = {
        Path(to) / path.relative_to(root): read_file(path)
        for folder in sorted({*folders, *(twin for twin in twins if twin.is_dir())})
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    changed = [path for path, data in copies.items() if path.exists() and read_file(path) != data]
    if changed and not force:
        raise UsageError(f"`{changed[0]}` exists and differs: give --force to replace it, or another folder with --to")
    try:
        for path, data in copies.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"cannot write into `{to}`: {(error.strerror or str(error)).lower()}") from error
    STDOUT.write(f"copied {len(folders)} policies into {to}: {len(copies)} files\n")


def _select_controls(options: ListOptions) -> Iterable[Control]:
    if options.names:
        return _distinct(each for name in options.names for each in find_controls(name))
    wanted = {"kyverno": (False,), "cel": (True,), "both": (False, True)}[options.dialect]
    return [each for each in list_controls() if each.is_cel in wanted]


def _distinct(controls: Iterable[Control]) -> list[Control]:
    return list(dict.fromkeys(controls))


def _is_selected(control: Control, options: ListOptions) -> bool:
    subjects = [each.strip() for each in control.subject.split(",")]
    text = f"{control.name} {control.title} {control.description}".lower()
    return (
        _has_any(options.categories, (control.category, control.name.partition("/")[0]))
        and _has_any(options.severities, (control.severity,))
        and _has_any(options.kinds, subjects)
        and _has_any(options.standards, control.standards)
        and options.search.lower() in text
    )


def _has_any(patterns: Sequence[str], values: Iterable[str]) -> bool:
    """Return whether a value fits a pattern; no patterns select everything.

    >>> _has_any(["CIS*"], ["CIS 5.2.1", "PSS baseline"]), _has_any(["pod"], ["Pod"]), _has_any([], [])
    (True, True, True)
    """
    found = [value.lower() for value in values]
    return not patterns or any(match(pattern.lower(), value) for pattern in patterns for value in found)


def _list_of(items: Sequence[JSONObject]) -> JSONObject:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def _row(control: Control) -> tuple[str, ...]:
    return (control.name, control.severity, control.subject, control.title, "; ".join(control.standards))


def _write_table(controls: Sequence[Control], options: ListOptions) -> str:
    style = style_for(STDOUT, remove_color=options.remove_color)
    return draw_table(_HEADERS, [_row(each) for each in controls], paint_header=style.header) + "\n"


def _write_names(controls: Sequence[Control], _: ListOptions) -> str:
    return "".join(f"{LIBRARY_SIGN}{each.name}\n" for each in controls)


def _write_markdown(controls: Sequence[Control], _: ListOptions) -> str:
    return markdown_table(_HEADERS, [_row(each) for each in controls])


_WRITERS: Mapping[str, Callable[[Sequence[Control], ListOptions], str]] = {
    "table": _write_table,
    "name": _write_names,
    "json": lambda controls, _: encode_indent([each.to_json() for each in controls]) + "\n",
    "yaml": lambda controls, _: dump_yaml([each.to_json() for each in controls], sort_keys=False),
    "markdown": _write_markdown,
    "html": lambda controls, _: library_page(controls),
}
