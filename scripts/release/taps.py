"""The manifests of package managers: krew for `kubectl pyverno`, Homebrew for `pyverno`, both made of the bundle.

The bundle is one archive for every platform: the wheel, the locked requirements and a launcher, which makes a virtual
environment of them when it is called first, and again when its interpreter is another. The name of the environment has
a digest of wheel and requirements, so that a rebuilt bundle of the same version never runs the code of the one before.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from gzip import compress
from typing import Final

import yaml

__all__ = ["LAUNCHER", "archive", "homebrew_formula", "krew_manifest"]

_SUMMARY: Final = "Policy for Kubernetes: one engine for Kyverno policies, one verdict everywhere"

LAUNCHER: Final = """\
#!/bin/sh
# Runs pyverno from the wheel beside this file, in a virtual environment that the first call makes.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$(readlink -f -- "$0")")" && pwd)
home=${XDG_DATA_HOME:-$HOME/.local/share}/pyverno/@ENVIRONMENT@
is_current() { # made, and by the interpreter that its link still leads to: an update may have replaced or removed that
  [ -x "$home/bin/python" ] || return 1
  [ ! -L "$home/bin/python" ] || [ "$(readlink -f "$home/bin/python")" = "$(cat "$home/interpreter" 2>/dev/null)" ]
}
if ! is_current; then
  python=${PYVERNO_PYTHON:-python3}
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "pyverno: error: Python 3.11 or newer is needed; name one in PYVERNO_PYTHON" >&2
    exit 2
  }
  echo "pyverno: installing into $home, once" >&2
  made=$home.$$ # first calls at the same time make one each; the first that is complete stays
  trap 'rm -rf "$made"' EXIT
  trap 'exit 130' INT TERM
  "$python" -m venv "$made"
  "$made/bin/python" -m pip --disable-pip-version-check --quiet install --require-hashes -r "$here/requirements.lock"
  "$made/bin/python" -m pip --disable-pip-version-check --quiet install --no-deps "$here"/pyverno-*.whl
  readlink -f "$made/bin/python" > "$made/interpreter"
  is_current || { rm -rf "$home" && mv "$made" "$home"; }
  rm -rf "$made"
fi
exec "$home/bin/python" -m pyverno "$@"
"""


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return files as a compressed tar archive; the same files give the same bytes. Launchers are executable."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as made:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            entry.mode = 0o755 if files[name].startswith(b"#!") else 0o644
            made.addfile(entry, io.BytesIO(files[name]))
    return compress(packed.getvalue(), mtime=0)


def krew_manifest(version: str, home: str, url: str, sha256: str) -> str:
    """Return the manifest of the plug-in, for `kubectl krew install --manifest`."""
    platform = {
        "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]},
        **{"uri": url, "sha256": sha256, "bin": "kubectl-pyverno"},
        "files": [{"from": "*", "to": "."}],
    }
    spec = {
        **{"version": f"v{version}", "homepage": home, "shortDescription": "Apply and test Kyverno policies"},
        "description": f"{_SUMMARY}.\n",
        "caveats": "Needs Python 3.11 or newer; the first call installs the dependencies.\n",
        "platforms": [platform],
    }
    body = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        **{"kind": "Plugin", "metadata": {"name": "pyverno"}, "spec": spec},
    }
    return yaml.safe_dump(body, sort_keys=False, width=120)


def homebrew_formula(version: str, home: str, url: str, sha256: str) -> str:
    """Return the formula of a tap."""
    return f"""\
class Pyverno < Formula
  include Language::Python::Virtualenv

  desc "Apply, test and lint Kyverno policies"
  homepage "{home}"
  url "{url}"
  version "{version}"
  sha256 "{sha256}"
  license "Apache-2.0"

  depends_on "python@3.13"

  def install
    venv = virtualenv_create(libexec, "python3.13", without_pip: false)
    python = venv.root/"bin/python"
    system python, "-m", "pip", "install", "--require-hashes", "-r", "requirements.lock"
    system python, "-m", "pip", "install", "--no-deps", Dir["pyverno-*.whl"].first
    bin.install_symlink libexec/"bin/pyverno", libexec/"bin/kubectl-pyverno"
  end

  test do
    assert_match "Version: #{{version}}", shell_output("#{{bin}}/pyverno version")
  end
end
"""
