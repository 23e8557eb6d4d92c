"""Kubeconfigs in practice: contexts, several files, all kinds of credentials, and errors."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from pyverno.cluster.access import find_access, in_cluster, load_kubeconfig
from pyverno.errors import DocumentError, UsageError

CONFIG = """
apiVersion: v1
kind: Config
current-context: dev
contexts:
- {name: dev, context: {cluster: one, user: alice, namespace: team}}
- {name: prod, context: {cluster: two, user: robot}}
- {name: nobody, context: {cluster: one}}
clusters:
- {name: one, cluster: {server: "https://one.example.com:6443/", certificate-authority: ca.crt, tls-server-name: kube}}
- {name: two, cluster: {server: "https://two.example.com", insecure-skip-tls-verify: true, proxy-url: "http://proxy:1"}}
users:
- {name: alice, user: {token: secret, as: bob, as-groups: [devs]}}
- name: robot
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: [--quiet]
      env: [{name: REGION, value: north}]
      installHint: install login first
      provideClusterInfo: true
"""


def _write(folder: Path, text: str, name: str = "config") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_the_current_context_is_taken_without_a_name(tmp_path: Path) -> None:
    """Relative paths start at the folder of the file; a trailing slash of the server URL is removed."""
    (tmp_path / "ca.crt").write_text("PEM")
    access = load_kubeconfig(_write(tmp_path, CONFIG))
    assert ("https://one.example.com:6443", b"PEM", "kube", "team") == (
        access.server,
        access.ca,
        access.server_name,
        access.namespace,
    )
    assert ("secret", {"as": "bob", "as-groups": ["devs"]}) == (access.token, access.impersonate)


def test_another_context_is_taken_by_name(tmp_path: Path) -> None:
    """The path of its exec plugin starts at the folder of the file as well."""
    access = load_kubeconfig(_write(tmp_path, CONFIG), "prod")
    assert (True, "http://proxy:1", "default") == (access.skips_verification, access.proxy, access.namespace)
    plugin = access.exec_plugin
    assert plugin is not None
    assert str(tmp_path / "bin/login") == plugin.command
    assert (("--quiet",), {"REGION": "north"}, True) == (
        plugin.arguments,
        plugin.environment,
        plugin.provides_cluster_info,
    )


def test_a_context_without_a_user_is_anonymous(tmp_path: Path) -> None:
    """The server decides how to treat anonymous requests."""
    (tmp_path / "ca.crt").write_text("PEM")
    access = load_kubeconfig(_write(tmp_path, CONFIG), "nobody")
    assert ("", b"", None) == (access.token, access.certificate, access.exec_plugin)


def test_of_several_files_the_first_that_has_an_entry_wins(tmp_path: Path) -> None:
    """The rule is that of kubectl; missing files are skipped."""
    (tmp_path / "ca.crt").write_text("PEM")
    first = _write(tmp_path, "users:\n- {name: alice, user: {token: other}}\n", "first")
    second = _write(tmp_path, CONFIG, "second")
    names = os.pathsep.join((first, str(tmp_path / "missing"), second))
    assert "other" == load_kubeconfig(environment={"KUBECONFIG": names}).token


def test_without_a_name_the_home_folder_is_looked_into(tmp_path: Path) -> None:
    """The path is `~/.kube/config`."""
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "ca.crt").write_text("PEM")
    _write(tmp_path / ".kube", CONFIG)
    assert "secret" == load_kubeconfig(environment={"HOME": str(tmp_path)}).token


def test_data_in_the_file_wins_over_a_path(tmp_path: Path) -> None:
    """Certificates are decoded from base64 PEM."""
    data = base64.b64encode(b"INLINE").decode()
    text = CONFIG.replace(
        "certificate-authority: ca.crt", f"certificate-authority: ca.crt, certificate-authority-data: {data}"
    )
    assert b"INLINE" == load_kubeconfig(_write(tmp_path, text)).ca


@pytest.mark.parametrize(
    ("change", "context", "said"),
    [
        (("current-context: dev", ""), "", "has no current-context"),
        (("", ""), "elsewhere", "has no context `elsewhere`"),
        (("cluster: one, user: alice", "cluster: gone, user: alice"), "", "has no cluster `gone`"),
        (("user: robot", "user: gone"), "prod", "has no user `gone`"),
        (('"https://two.example.com"', "two"), "prod", "has no server that is a URL"),
        (("", ""), "", "`certificate-authority` of `one` in"),
        (("certificate-authority: ca.crt", "certificate-authority-data: '%'"), "", "is not base64"),
        (("command: ./bin/login", "command: ''"), "prod", "`exec` has no command"),
    ],
)
def test_a_missing_entry_is_reported_with_its_place(
    tmp_path: Path, change: tuple[str, str], context: str, said: str
) -> None:
    """The message names file and entry, and never a secret."""
    path = _write(tmp_path, CONFIG.replace(*change))
    with pytest.raises(UsageError) as caught:
        load_kubeconfig(path, context)
    assert said in str(caught.value)
    assert path in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_map_or_not_there_is_refused(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(DocumentError, match="a kubeconfig must be a map"):
        load_kubeconfig(_write(tmp_path, "[]"))
    with pytest.raises(UsageError, match="missing` cannot be read"):
        load_kubeconfig(str(tmp_path / "missing"))


def test_an_auth_provider_is_refused_by_name(tmp_path: Path) -> None:
    """Kubernetes has removed these providers; without one, requests would be anonymous."""
    (tmp_path / "ca.crt").write_text("PEM")
    text = CONFIG.replace("{token: secret, as: bob, as-groups: [devs]}", "{auth-provider: {name: gcp}}")
    with pytest.raises(UsageError, match="auth-provider"):
        load_kubeconfig(_write(tmp_path, text))


def test_a_pod_has_the_access_of_its_service_account(tmp_path: Path) -> None:
    """Only the path of the token is kept, because the token rotates; outside of a cluster there is no access."""
    for name, text in (("token", "t"), ("ca.crt", "PEM"), ("namespace", "kyverno\n")):
        (tmp_path / name).write_text(text)
    variables = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = in_cluster(tmp_path, variables)
    assert ("https://[fd00::1]:443", "kyverno", "", tmp_path / "token") == (
        access.server,
        access.namespace,
        access.token,
        access.token_file,
    )
    with pytest.raises(UsageError, match="does not run inside of a cluster"):
        in_cluster(tmp_path, {})


def test_a_program_in_a_pod_takes_its_service_account_unless_a_kubeconfig_is_named(tmp_path: Path) -> None:
    """Flag or environment names the kubeconfig; a Pod without a token needs one."""
    (tmp_path / "ca.crt").write_text("PEM")
    config = _write(tmp_path, CONFIG)
    pod = {"KUBERNETES_SERVICE_HOST": "192.0.2.1", "KUBERNETES_SERVICE_PORT": "443"}
    named = load_kubeconfig(config)
    assert named == find_access("", "", {**pod, "KUBECONFIG": config}, tmp_path)
    assert named == find_access(config, "", pod, tmp_path)
    (tmp_path / "token").write_text("t")
    assert "https://192.0.2.1:443" == find_access("", "", pod, tmp_path).server
    assert named == find_access(config, "", pod, tmp_path)
