"""Charts and kustomizations become manifests that name their templates."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyverno.offline.adoption.rendering import load_charts, load_kustomizations

if TYPE_CHECKING:
    from collections.abc import Mapping

CHART: Mapping[str, str] = {
    "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 0.1.0\n",
    "values.yaml": "image: {name: nginx, tag: latest}\n",
    "templates/pod.yaml": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
        'spec: {containers: [{name: c, image: "{{ .Values.image.name }}:{{ .Values.image.tag }}"}]}\n'
    ),
    "templates/NOTES.txt": "Hello.\n",
}

PROGRAM = """\
#!/bin/sh
echo "$@" > {log}
cat <<'END'
---
# Source: shop/templates/pod.yaml
apiVersion: v1
kind: Pod
metadata: {{name: web}}
---
# Source: shop/charts/db/templates/config.yaml
# pyverno: ignore[p/r] why
apiVersion: v1
kind: ConfigMap
metadata: {{name: db}}
END
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a chart, and a path without programs."""
    for name, text in CHART.items():
        path = tmp_path / "charts/shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    for name in ("sh", "cat"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name, path="/bin:/usr/bin")))
    return tmp_path


def _program(folder: Path, name: str, text: str = PROGRAM) -> Path:
    path, log = folder / "bin" / name, folder / f"{name}.log"
    path.write_text(text.format(log=log))
    path.chmod(0o755)
    return log


def test_rendered_documents_name_their_templates(folder: Path) -> None:
    """Documents of subcharts do, too; their places have no lines, and comments are kept."""
    log = _program(folder, "helm")
    (folder / "prod.yaml").write_text("a: 1\n")
    loaded = load_charts(["charts/shop"], ["prod.yaml"])
    expected = ["charts/shop/templates/pod.yaml", "charts/shop/charts/db/templates/config.yaml"]
    assert expected == [str(each.location(("metadata",))) for each in loaded.documents]
    expected = f"template release-name {folder}/charts/shop --include-crds --values=/\n"
    assert expected == re.sub("=/.*/values-0.yaml", "=/", log.read_text())
    assert loaded.documents[1].mentions("pyverno: ignore")


def test_a_program_that_fails_is_an_error_in_its_own_words(folder: Path) -> None:
    """The other charts are still rendered; a chart that does not exist is an error."""
    _program(folder, "helm", "#!/bin/sh\necho 'no such\nvalue' >&2\nexit 3\n")
    loaded = load_charts(["charts/shop", "charts/none"])
    expected = [
        "--helm: `charts/shop` cannot be rendered: no such value",
        "--helm: `charts/none` does not exist",
    ]
    assert expected == [each.message for each in loaded.errors]


def test_without_the_program_the_library_renders(folder: Path) -> None:
    """Values files are applied in their order."""
    pytest.importorskip("helm_python", reason="helm-python-sdk has no build for this platform")
    (folder / "a.yaml").write_text("image: {tag: '1'}\n")
    (folder / "b.yaml").write_text("image: {tag: '2'}\n")
    loaded = load_charts(["charts/shop"], ["a.yaml", "b.yaml"])
    assert [] == loaded.errors
    (document,) = loaded.documents
    assert "nginx:2" == document.value["spec"]["containers"][0]["image"]
    assert "charts/shop/templates/pod.yaml" == str(document.location())
    (folder / "charts/shop/templates/pod.yaml").write_text("a: {{ .Values.\n")
    assert "`charts/shop` cannot be rendered: " in str(load_charts(["charts/shop"]).errors[0])


KUSTOMIZE = """\
#!/bin/sh
echo "$@" > {log}
cat <<'END'
apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations:
    config.kubernetes.io/origin: |
      path: ../base/pod.yaml
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: made}}
END
"""


def test_kustomizations_are_built_by_kustomize_or_kubectl(folder: Path) -> None:
    """An object names its file where the kustomization records origins."""
    (folder / "overlays/prod").mkdir(parents=True)
    missing = load_kustomizations(["overlays/prod"])
    assert "--kustomize needs the program `kustomize` or `kubectl`; neither is installed" == str(missing.errors[0])
    log = _program(folder, "kubectl", KUSTOMIZE)
    found = load_kustomizations(["overlays/prod"])
    assert ["overlays/base/pod.yaml", "overlays/prod"] == [str(each.location()) for each in found.documents]
    assert f"kustomize --load-restrictor=LoadRestrictionsRootOnly {folder}/overlays/prod\n" == log.read_text()
    log = _program(folder, "kustomize", KUSTOMIZE)
    load_kustomizations(["overlays/prod"])
    assert f"build --load-restrictor=LoadRestrictionsRootOnly {folder}/overlays/prod\n" == log.read_text()


def test_a_name_is_never_a_flag_of_a_program(folder: Path) -> None:
    """A folder may begin with a dash."""
    (folder / "--post-renderer").mkdir()
    log = _program(folder, "helm")
    load_charts(["--post-renderer"])
    assert f"template release-name {folder}/--post-renderer --include-crds\n" == log.read_text()
