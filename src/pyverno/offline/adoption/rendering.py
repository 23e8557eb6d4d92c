"""Helm charts and kustomizations as manifests, rendered by the programs that the user has, after an inspection.

Charts need `helm`, or the Helm SDK for Python (`helm-python-sdk`); kustomizations need `kustomize` or `kubectl`.
Rendered documents have the name of their template and no lines, because those of the output are in no file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.lazyregex import regex
from pyverno.offline.adoption.inspection import check_chart, check_kustomization
from pyverno.offline.adoption.process import render
from pyverno.offline.files import Loaded, check_local, read_file
from pyverno.programs import find_program

__all__ = ["load_charts", "load_kustomizations"]

_RELEASE = "release-name"
_SOURCE = regex(r"^# Source: (\S.*?)\s*$")
_ORIGIN = "config.kubernetes.io/origin"


def load_charts(charts: Sequence[str], values: Sequence[str] = ()) -> Loaded:
    """Render charts, each with all values files; a chart that does not render is one error."""
    loaded = Loaded()
    for chart in charts:
        try:
            loaded.documents.extend(_render_chart(_existing(chart, "--helm"), values))
        except PyvernoError as error:
            loaded.errors.append(error)
    return loaded


def load_kustomizations(folders: Sequence[str], *, allows_remote: bool = False) -> Loaded:
    """Build kustomizations; one that cannot be built, or names what is elsewhere, is one error.

    With `allows_remote` it may, and kustomize has the environment and the credentials of the user.
    """
    loaded = Loaded()
    for folder in folders:
        try:
            loaded.documents.extend(_build(_existing(folder, "--kustomize"), allows_remote))
        except PyvernoError as error:
            loaded.errors.append(error)
    return loaded


def _existing(text: str, flag: str) -> str:
    check_local(text)
    if not Path(text).exists():
        raise UsageError(f"{flag}: `{text}` does not exist")
    return text


# ---------------------------------------------------------------------------------------------------------- helm


def _render_chart(chart: str, values: Sequence[str]) -> Iterator[Document]:
    check_chart(Path(chart))
    contents = [read_file(Path(each)) for each in values]
    helm = find_program("helm")
    if helm is None:
        return _by_library(chart, values)
    # an absolute path is neither a flag nor an address; helm takes names of values files for addresses, too
    command = [helm, "template", _RELEASE, str(Path(chart).resolve()), "--include-crds"]
    return _by_source(chart, load_documents(render(command, f"--helm: `{chart}`", values=contents), file=chart))


def _by_source(chart: str, documents: Iterable[Document]) -> Iterator[Document]:
    """Yield documents under the names of their templates, which helm writes above each."""
    template = chart
    for document in documents:
        sources = (_SOURCE.match(line) for line in document.own_lines[1])
        template = next((_template(chart, found[1]) for found in sources if found is not None), template)
        yield document.rendered_from(template)


def _template(chart: str, source: str) -> str:
    """Return the file of a template; its name begins with that of the chart.

    >>> _template("charts/shop", "shop/templates/pod.yaml")
    'charts/shop/templates/pod.yaml'
    """
    below = PurePosixPath(*PurePosixPath(source).parts[1:])
    return f"{chart.rstrip('/')}/{below}" if Path(chart).is_dir() or not Path(chart).exists() else f"{chart}!{below}"


def _by_library(chart: str, values: Sequence[str]) -> Iterator[Document]:
    try:
        import helm_python
    except (ImportError, OSError):
        raise UsageError(
            "--helm needs the program `helm`, or the Helm SDK for Python (`pip install helm-python-sdk`); neither is "
            "installed"
        ) from None
    merged: JSONObject = {}
    for file in values:
        for document in load_documents(read_file(Path(file)), file=file):
            if isinstance(document.value, dict):
                merged = _merge(merged, document.value)
    try:
        with helm_python.Chart.load(str(Path(chart).resolve())) as loaded:
            rendered: dict[str, str] = loaded.render(values=merged, name=_RELEASE, namespace="default")
            definitions: list[dict[str, Any]] = loaded.crds
    except helm_python.HelmError as error:
        raise UsageError(f"--helm: `{chart}` cannot be rendered: {' '.join(str(error).split())}") from error
    found = [(each["filename"], each["data"]) for each in definitions]
    found += [(name, text) for name, text in sorted(rendered.items()) if not name.endswith((".txt", ".tpl"))]
    return _load_rendered(chart, found)


def _load_rendered(chart: str, found: Iterable[tuple[str, str]]) -> Iterator[Document]:
    for name, text in found:
        file = _template(chart, name)
        for document in load_documents(text, file=file):
            yield document.rendered_from(file)


def _merge(below: JSONObject, above: JSONObject) -> JSONObject:
    """Merge values as helm does: maps by key, everything else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        old: JSON = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


# ---------------------------------------------------------------------------------------------------------- kustomize


_ROOT_ONLY: Final = "--load-restrictor=LoadRestrictionsRootOnly"


def _build(folder: str, allows_remote: bool) -> Iterator[Document]:
    if not allows_remote:  # guard: a kustomization is inspected before it is built
        check_kustomization(Path(folder))
    kustomize, kubectl = find_program("kustomize"), find_program("kubectl")
    if kustomize is not None:
        command = [kustomize, "build", _ROOT_ONLY, str(Path(folder).resolve())]
    elif kubectl is not None:
        command = [kubectl, "kustomize", _ROOT_ONLY, str(Path(folder).resolve())]
    else:
        raise UsageError("--kustomize needs the program `kustomize` or `kubectl`; neither is installed")
    text = render(command, f"--kustomize: `{folder}`", is_open=allows_remote)
    for document in load_documents(text, file=folder):
        yield document.rendered_from(_origin(folder, document.value))


def _origin(folder: str, value: JSON) -> str:
    """Return the file that an object comes from, where the kustomization records origins; else its folder."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    written = annotations.get(_ORIGIN) if isinstance(annotations, dict) else None
    if isinstance(written, str) and "repo:" not in written:
        for line in written.splitlines():
            name, _, path = line.partition(":")
            if name == "path" and path.strip():
                return os.path.normpath(f"{folder}/{path.strip()}").replace("\\", "/")
    return folder
