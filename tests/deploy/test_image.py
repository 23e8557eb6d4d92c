"""Parts of the container image: layers, the layout, the bill of materials, and the lock of Debian's packages."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from scripts.image.__main__ import ARCHS, CONFIG
from scripts.image.debian import PACKAGES, fetch, locked
from scripts.image.layout import Image, Layout, layer
from scripts.image.sbom import bill_of_materials
from scripts.image.wheels import unpack_wheels


def tree(folder: Path, names: tuple[str, ...]) -> Path:
    """Create files in this order."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def wheel(folder: Path, name: str, licence: str, *further: str) -> Path:
    """Write a wheel with metadata and further members."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Name: {name}\nVersion: 1.0\n{licence}\n")
        for member in further:
            archive.writestr(member, "")
    return path


def test_a_layer_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    """The order of creation, times and permissions for others have no effect."""
    first = tree(tmp_path / "first", ("b/x", "a"))
    second = tree(tmp_path / "second", ("a", "b/x"))
    os.utime(second / "a", (1, 1))
    (second / "a").chmod(0o600)
    assert layer(first, "x") == layer(second, "x")


def test_files_of_a_layer_belong_to_root_and_are_writable_by_root_alone(tmp_path: Path) -> None:
    """Only /tmp is writable."""
    folder = tree(tmp_path / "root", ("tmp/x", "bin/run", "etc/a"))
    (folder / "bin/run").chmod(0o4777)
    (folder / "etc/a").chmod(0o666)
    (folder / "etc/b").symlink_to("a")
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer(folder, "x").data))) as archive:
        entries = {each.name: each for each in archive}
    assert {(0, 0, "", "", 0)} == {(e.uid, e.gid, e.uname, e.gname, e.mtime) for e in entries.values()}
    assert {"tmp": 0o1777, "bin/run": 0o755, "etc/a": 0o644} == {
        name: entries[name].mode for name in ("tmp", "bin/run", "etc/a")
    }
    assert ("a", True) == (entries["etc/b"].linkname, entries["etc/b"].issym())


def test_a_layout_leads_from_its_index_to_every_blob(tmp_path: Path) -> None:
    """Sizes and digests of all descriptors are those of the files; each platform has its manifest."""
    part = layer(tree(tmp_path / "root", ("a",)), "files")
    layout = Layout(tmp_path / "layout")
    digest = layout.write([Image(arch, (part,), CONFIG) for arch in ARCHS], "1.0")

    def blob(descriptor: dict[str, object]) -> bytes:
        data = (layout.folder / "blobs/sha256" / str(descriptor["digest"]).removeprefix("sha256:")).read_bytes()
        assert descriptor["size"] == len(data)
        return data

    [index] = json.loads((layout.folder / "index.json").read_bytes())["manifests"]
    assert digest == index["digest"]
    found = json.loads(blob(index))["manifests"]
    assert list(ARCHS) == [each["platform"]["architecture"] for each in found]
    for each in found:
        manifest = json.loads(blob(each))
        config = json.loads(blob(manifest["config"]))
        assert (["65532:65532"], [part.diff_id]) == ([config["config"]["User"]], config["rootfs"]["diff_ids"])
        assert [part.data] == [blob(descriptor) for descriptor in manifest["layers"]]


def test_a_bill_of_materials_names_packages_wheels_and_licences(tmp_path: Path) -> None:
    """Entries carry package URLs, and each build gives the same bytes."""
    wheels = [wheel(tmp_path, "pyverno", "License-Expression: Apache-2.0"), wheel(tmp_path, "b", "License: MIT")]
    text = bill_of_materials(locked("amd64"), wheels, "amd64")
    assert text == bill_of_materials(locked("amd64"), wheels, "amd64")
    found = {each["purl"]: each for each in json.loads(text)["components"]}
    assert [{"license": {"name": "Apache-2.0"}}] == found["pkg:pypi/pyverno@1.0"]["licenses"]
    assert [{"license": {"name": "MIT"}}] == found["pkg:pypi/b@1.0"]["licenses"]
    assert len(PACKAGES) == sum(purl.startswith("pkg:deb/debian/") for purl in found)


def test_programs_and_headers_of_wheels_stay_out(tmp_path: Path) -> None:
    """Only packages are unpacked."""
    brings = ("a/x.py", "a/x.pyx", "a/x.h", "a-1.0.data/scripts/run", "a-1.0.data/platlib/b.py")
    unpack_wheels([wheel(tmp_path, "a", "", *brings)], tmp_path / "root")
    found = {path.name for path in (tmp_path / "root").rglob("*") if path.is_file()}
    assert {"METADATA", "x.py", "b.py"} == found


def test_the_containerfile_copies_every_file_that_the_build_reads() -> None:
    """Those that pyproject.toml names; the build of the wheel fails without one of them."""
    root = Path(__file__).resolve().parents[2]
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    project = settings["project"]
    read = {
        "pyproject.toml",
        "requirements.lock",
        "requirements-build.lock",
        project["readme"],
        *project["license-files"],
    }
    read |= {Path(name).parts[0] for name in (*wheel["packages"], *wheel["force-include"])}
    lines = (root / "deploy" / "image" / "Containerfile").read_text().splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY ") and "--from" not in line]
    assert read == {name for names in copied for name in names}


@pytest.mark.parametrize("arch", ARCHS)
def test_every_package_is_locked_for_every_architecture(arch: str) -> None:
    """With the digest of its file."""
    found = locked(arch)
    assert (sorted(PACKAGES), {64}) == (sorted(each.name for each in found), {len(each.sha256) for each in found})
    assert {"amd64", "arm64"} == set(ARCHS)


def test_a_package_that_is_not_there_any_more_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Debian mirror holds the newest versions only; apt-get's words follow."""
    program = tmp_path / "bin" / "apt-get"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ncase "$*" in *update*) exit 0 ;; esac\necho gone >&2\nexit 100\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    with pytest.raises(SystemExit) as caught:
        fetch("amd64", tmp_path / "cache")
    first, last = str(caught.value).splitlines()
    assert "base-files" == first.split()[0]
    assert first.endswith("for amd64 cannot be downloaded; a newer version? `make imagelock` takes it:")
    assert ("gone", subprocess.CalledProcessError) == (last, type(caught.value.__cause__))
