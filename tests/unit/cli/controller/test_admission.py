"""`pyverno controller admission`: what its flags come to before there is a cluster."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from pyverno.cli.args.records import command_of, ineffective, packed, unpacked
from pyverno.cli.args.sections import SectionedCommand
from pyverno.cli.controller.admission import settings_of
from pyverno.cli.controller.admissionflags import AdmissionFlags
from pyverno.cli.controller.command import controller
from pyverno.cli.controller.imageflags import registry_flags
from pyverno.cli.controller.services import REQUIRED, access_of, metrics_tls
from pyverno.cluster.access import Access
from pyverno.controllers.state.trustroot import TufRepository
from pyverno.errors import UsageError
from tests.authority.signing import SigningServices
from tests.support.commandline import Run
from tests.support.webhookserver import make_certificate


def read(*words: str) -> AdmissionFlags:
    """Return what words on the command line come to."""
    seen: list[AdmissionFlags] = []
    command_of("probe", "Probe.", AdmissionFlags, seen.append).main(list(words), standalone_mode=False)
    return seen[0]


KYVERNO = {
    "autoMemLimitEnabled": "true",
    "autoMemLimitRatio": "0.9",
    "kubeconfig": "",
    "clientRateLimitQPS": "100.0",
    "clientRateLimitBurst": "200",
    "eventsRateLimitQPS": "1000.0",
    "eventsRateLimitBurst": "2000",
    "resyncPeriod": "15m",
    "crdWatcher": "false",
    "enablePolicyException": "false",
    "exceptionNamespace": "",
    "enableConfigMapCaching": "true",
    "leaderElectionRetryPeriod": "2s",
    "loggingFormat": "text",
    "loggingtsFormat": "default",
    "disableLogColor": "false",
    "v": "2",
    "dumpPayload": "false",
    "dumpPatches": "false",
    "maxQueuedEvents": "1000",
    "omitEvents": "",
    "maxAPICallResponseLength": "10000000",
    "apiCallTimeout": "30s",
    "maxGlobalContextEntries": "0",
    "allowHTTPInNamespacedPolicies": "false",
    "httpBlocklist": "169.254.169.254,169.254.169.253,metadata.google.internal,127.0.0.0/8,::1/128",
    "httpAllowlist": "",
    "webhookTimeout": "10",
    "serverIP": "",
    "servicePort": "443",
    "webhookServerHost": "",
    "webhookServerPort": "9443",
    "autoUpdateWebhooks": "true",
    "excludeBootstrapResources": "false",
    "webhookRegistrationTimeout": "120s",
    "protectManagedResources": "false",
    "forceFailurePolicyIgnore": "false",
    "generateValidatingAdmissionPolicy": "true",
    "generateMutatingAdmissionPolicy": "false",
    "admissionReports": "true",
    "enableReporting": "validate,mutate,mutateExisting,generate,imageVerify",
    "allowedResults": "pass,fail,error,warn,skip",
    "maxAdmissionReports": "10000",
    "backgroundServiceAccountName": "",
    "reportsServiceAccountName": "",
    "caSecretName": "",
    "tlsSecretName": "",
    "renewBefore": "360h",
    "disableCertManagerController": "false",
    "controllerRuntimeMetricsAddress": "",
    "enableDeferredLoading": "true",
    "allowInsecureRegistry": "false",
    "imagePullSecrets": "",
    "registryCredentialHelpers": "",
    "imageVerifyCacheEnabled": "true",
    "imageVerifyCacheMaxSize": "1000",
    "imageVerifyCacheTTLDuration": "60m",
    "enableTuf": "false",
    "tufMirror": "https://tuf-repo-cdn.sigstore.dev",
    "tufRoot": "",
    "tufRootRaw": "",
    "enableCosignLogging": "false",
    "maxAuditWorkers": "8",
    "maxAuditCapacity": "1000",
    "cleanupServerHost": "",
    "cleanupServerPort": "9443",
    "metricsHost": "",
    "metricsPort": "8000",
    "disableMetrics": "false",
    "otelConfig": "prometheus",
    "otelCollector": "opentelemetrycollector.kyverno.svc.cluster.local",
    "transportCreds": "",
    "exemplarFilter": "trace-based",
    "enableTracing": "false",
    "tracingAddress": "",
    "tracingPort": "4317",
    "tracingCreds": "",
    "metricsCASecretName": "",
    "metricsTLSSecretName": "",
    "metricsRenewBefore": "360h",
    "metricsServerIP": "",
    "profile": "false",
    "profilePort": "6060",
    "profileAddress": "",
}
"""The flags of Kyverno's admission controller with their defaults; only those of keys have another one on purpose."""


OURS = {
    *("context", "trustedRoot", "shutdownDelay", "clientCAFile", "clientAllowedNames", "removeWebhooks"),
    *(
        "explainRequests",
        *("record", "recordMaxBytes", "recordMaxFiles", "recordRedact"),
        "tlsKeyAlgorithm",
        "metricsKeyAlgorithm",
        "webhookProcesses",
        "cleanupServiceAccountName",
        "namespacedPolicyRights",
    ),
}
"""Flags that Kyverno does not have, or that have another default here."""


def test_no_flag_is_forgotten() -> None:
    """Each of the command is one of Kyverno's, or one of ours."""
    command = controller.commands["admission"]
    assert isinstance(command, SectionedCommand)
    shown = {option.opts[0].removeprefix("--") for options in command.sections.values() for option in options}
    assert shown == {*KYVERNO, *OURS}


@pytest.mark.parametrize("name", KYVERNO)
def test_kyvernos_flags_have_its_names_and_defaults(name: str) -> None:
    """Giving a flag its default, in Go's forms, changes nothing."""
    default = read()
    for words in ([f"--{name}={KYVERNO[name]}"], [f"-{name}={KYVERNO[name]}"]):
        assert default == read(*words)
    if KYVERNO[name] not in ("true", "false"):
        assert default == read(f"-{name}", KYVERNO[name])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--protectManagedResources"], True),
        (["-protectManagedResources"], True),
        (["--protectManagedResources", "true"], True),
        (["-protectManagedResources=T"], True),
        (["--protectManagedResources", "false"], False),
        (["--protectManagedResources="], False),
    ],
)
def test_toggles_take_their_value_in_all_forms(words: list[str], expected: bool) -> None:
    """Kyverno's toggles are no booleans for Go: their value may be a word of its own."""
    assert expected == read(*words).server.protects_managed


def test_the_verbosity_of_a_controller_may_be_a_word(cli: Run) -> None:
    """`-v 4`, as Go's flags have it; the groups of commands leave it alone."""
    result = cli("controller", "admission", "-v", "4", "--loggingFormat", "xml")
    assert 'invalid argument "xml" for "--loggingFormat" flag' in result.err


def test_a_flag_wins_over_the_environment_and_that_over_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every flag that has a twin."""
    monkeypatch.setenv("FLAG_PROTECT_MANAGED_RESOURCES", "true")
    monkeypatch.setenv("FLAG_GENERATE_VALIDATING_ADMISSION_POLICY", "0")
    monkeypatch.setenv("FLAG_HTTP_BLOCKLIST", "")
    monkeypatch.setenv("FLAG_FORCE_FAILURE_POLICY_IGNORE", "")
    flags = read("--protectManagedResources=false")
    assert (False, False, ()) == (
        flags.server.protects_managed,
        flags.generation.validating,
        flags.calls.blocklist,
    )
    assert read().server.protects_managed
    assert not flags.webhooks.forces_ignore
    assert ("192.0.2.1",) == read("--httpBlocklist", " 192.0.2.1, ").calls.blocklist


def test_a_variable_that_can_not_be_read_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kyverno takes the default instead, which switches protections off in silence."""
    monkeypatch.setenv("FLAG_PROTECT_MANAGED_RESOURCES", "yes")
    with pytest.raises(UsageError, match="FLAG_PROTECT_MANAGED_RESOURCES: `yes` is neither true nor false"):
        read()


def test_flags_without_effect_are_reported_when_they_are_given() -> None:
    """Giving one its default changes nothing, here or there."""
    assert () == ineffective(
        read("--autoMemLimitEnabled=true", "--imageVerifyCacheTTLDuration=1h", "--webhookTimeout=3")
    )
    assert ("--enableDeferredLoading", "--autoMemLimitRatio", "--enableCosignLogging") == ineffective(
        read("--autoMemLimitRatio=0.5", "--enableDeferredLoading=false", "--enableCosignLogging")
    )


def test_the_repository_of_the_trusted_root_is_that_of_the_flags(tmp_path: Path) -> None:
    """The file comes before the text; without --enableTuf the others are not read, as in Kyverno."""
    path = tmp_path / "root.json"
    path.write_bytes(b"file")
    given = ("--tufMirror=https://tuf.example.org", "--tufRootRaw=dGV4dA==")
    found = [
        registry_flags(read(*flags).images, "kyverno").repository
        for flags in (given, ("--enableTuf", *given), ("--enableTuf", *given, f"--tufRoot={path}"))
    ]
    assert [None, *(TufRepository("https://tuf.example.org", each) for each in (b"text", b"file"))] == found


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "--enableTuf needs --tufRoot or --tufRootRaw: root metadata of the repository that you trust"),
        (("--tufRootRaw=?",), "--tufRootRaw is not base64"),
        (("--tufRoot=missing.json",), "--tufRoot `missing.json`: No such file or directory"),
        (("--tufMirror=tuf.example.org",), "--tufMirror `tuf.example.org` is no address of a TUF repository"),
        (
            ("--trustedRoot=ROOT",),
            "--trustedRoot and --enableTuf exclude each other: choose one source of the trusted root",
        ),
    ],
)
def test_a_repository_that_proves_nothing_ends_the_start(tmp_path: Path, flags: tuple[str, ...], message: str) -> None:
    """Keyless signatures would be errors later, one by one."""
    path = tmp_path / "trusted_root.json"
    path.write_bytes(SigningServices().trusted_root())
    given = [each.replace("ROOT", str(path)) if each.startswith("--trusted") else each for each in flags]
    with pytest.raises(UsageError) as caught:
        registry_flags(read("--enableTuf", *given).images, "kyverno")
    assert message == caught.value.message


def test_every_group_is_shown_in_the_help(cli: Run) -> None:
    """With defaults and the twins in the environment."""
    shown = " ".join(cli("controller", "admission", "--help").out.split())
    for field in fields(AdmissionFlags):
        assert f"{field.metadata['title']}:" in shown
    for each in controller.commands["admission"].params:
        if not each.hidden:
            assert each.opts[0] in shown


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--tlsKeyAlgorithm", "DSA"], 'invalid argument "DSA" for "--tlsKeyAlgorithm" flag'),
        (["--httpBlocklist", "a b"], "invalid entry `a b` of --httpBlocklist"),
    ],
)
def test_invalid_values_are_reported_at_the_start(words: list[str], text: str) -> None:
    """Invalid values are reported before the first request to the cluster."""
    with pytest.raises(UsageError, match=text):
        settings_of(read(*words), {})


def test_the_certificates_of_metrics_need_both_names() -> None:
    """Without one of them they are served by HTTP."""
    access = Access("https://192.0.2.1")
    assert metrics_tls(read(), access, {}) is None
    with pytest.raises(UsageError, match="--metricsTLSSecretName needs --metricsCASecretName"):
        metrics_tls(read("--metricsTLSSecretName=tls"), access, {})
    found = metrics_tls(read("--metricsTLSSecretName=tls", "--metricsCASecretName=ca"), access, {"KYVERNO_SVC": "svc"})
    assert found is not None
    assert ("ca", "tls", "svc-metrics.kyverno.svc") == (
        found.certificates.ca_name,
        found.certificates.tls_name,
        found.certificates.names[-1],
    )


def test_the_authority_of_callers_is_read_at_the_start(tmp_path: Path) -> None:
    """A missing or invalid CA file is an error, because without it every caller would be served."""
    assert settings_of(read(), {}).clients.admit(None)
    file = tmp_path / "ca.pem"
    file.write_bytes(make_certificate().certificate)
    clients = settings_of(read("--clientCAFile", str(file), "--clientAllowedNames=apiserver, other"), {}).clients
    assert ("apiserver", "other") == clients.names
    assert not clients.admit(None)
    file.write_text("nothing")
    for words in (["--clientCAFile", str(file)], ["--clientCAFile=/nowhere"], ["--clientAllowedNames=a"]):
        with pytest.raises(UsageError, match="--clientCAFile"):
            settings_of(read(*words), {})


def test_no_limit_of_requests_is_the_one_of_clients() -> None:
    """Zero is Kyverno's word for the default of its client library."""
    settings = settings_of(
        read("--clientRateLimitQPS=0", "--clientRateLimitBurst=0", "--eventsRateLimitQPS=0", "-eventsRateLimitBurst=0"),
        {},
    )
    assert (5, 10, 5, 10) == (settings.qps, settings.burst, settings.events_qps, settings.events_burst)


def test_a_controller_in_a_cluster_names_every_variable_that_is_not_set(tmp_path: Path) -> None:
    """Kyverno names the first; with a kubeconfig none is needed."""
    (tmp_path / "token").write_text("x")
    (tmp_path / "ca.crt").write_text("")
    inside = {"KUBERNETES_SERVICE_HOST": "192.0.2.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(UsageError) as raised:
        access_of(read(), {**inside, "KYVERNO_NAMESPACE": "kyverno", "INIT_CONFIG": ""}, tmp_path)
    names = "KYVERNO_SERVICEACCOUNT_NAME, KYVERNO_DEPLOYMENT, KYVERNO_POD_NAME, INIT_CONFIG, METRICS_CONFIG"
    assert f"required environment variables are not set: {names}" == str(raised.value)
    access = access_of(read(), {**inside, **dict.fromkeys(REQUIRED, "x")}, tmp_path)
    assert "https://192.0.2.1:443" == access.server
    with pytest.raises(UsageError, match="does not run inside of a cluster"):
        access_of(read(), {}, tmp_path)


def test_names_come_from_the_environment() -> None:
    """As a Deployment gives them."""
    given = {"KYVERNO_NAMESPACE": "policy", "KYVERNO_SVC": "svc", "INIT_CONFIG": "settings", "KYVERNO_POD_NAME": "p-1"}
    settings = settings_of(read(), given)
    assert ("policy", "svc", "settings", "kyverno-metrics", "p-1") == (
        settings.namespace,
        settings.service,
        settings.config_map,
        settings.metrics_config_map,
        settings.identity,
    )
    assert "svc.policy.svc.kyverno-tls-ca" == settings.certificates.ca_name


def test_flags_with_capitals_reach_the_controller(tmp_path: Path) -> None:
    """Camel-case flags are accepted; a missing kubeconfig is the only reported problem."""
    missing = tmp_path / "kubeconfig"
    words = ["--kubeconfig", str(missing), "--protectManagedResources", "--removeWebhooks=false"]
    done = subprocess.run(  # in a process of its own, because a controller takes the log over
        [sys.executable, "-m", "pyverno", "controller", "admission", *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert 1 == done.returncode
    assert done.stderr.startswith("Error: ")
    assert str(missing) in done.stderr


def test_an_unknown_form_of_log_lines_is_refused(cli: Run) -> None:
    """A controller without a valid log format does not start."""
    result = cli("controller", "admission", "--loggingFormat", "xml")
    assert (1, 'Error: invalid argument "xml" for "--loggingFormat" flag: expected text or json\n') == (
        result.code,
        result.err,
    )


def test_flags_go_to_another_process_as_json() -> None:
    """Lists, durations and numbers come out as they went in."""
    flags = read("--httpAllowlist=a,b", "--shutdownDelay=10ms", "--clientRateLimitQPS=1.5", "-v=4", "--enableTracing")
    assert flags == unpacked(AdmissionFlags, json.loads(json.dumps(packed(flags))))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--webhookProcesses=0"], 'invalid argument "0" for "--webhookProcesses" flag: expected 1 to 64'),
        (["--webhookProcesses=65"], 'invalid argument "65" for "--webhookProcesses" flag: expected 1 to 64'),
        (["--webhookProcesses=2", "--webhookServerPort=0"], "needs a fixed --webhookServerPort"),
    ],
)
def test_processes_that_can_not_be(words: list[str], message: str) -> None:
    """They are refused before anything starts."""
    with pytest.raises(UsageError, match=message):
        settings_of(read(*words), {})


def test_a_system_without_shared_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several processes are refused there, one is not."""
    monkeypatch.delattr(socket, "SO_REUSEPORT")
    settings_of(read(), {})
    with pytest.raises(UsageError, match="a system on which processes can share a port"):
        settings_of(read("--webhookProcesses=2"), {})


def test_processes_share_the_budgets_of_a_replica() -> None:
    """Each has a name of its own; a body of full size fits into the bytes of every one."""
    settings = settings_of(read("--webhookProcesses=64"), {"KYVERNO_POD_NAME": "pod"})
    share = settings.share(2, 64)
    assert ("pod-2", 100 / 64, 3, 1000 / 64, 31) == (
        share.identity,
        share.qps,
        share.burst,
        share.events_qps,
        share.events_burst,
    )
    assert (share.limits.body_bytes, 31) == (share.limits.bytes_in_work, share.limits.connections)
    assert (True, False) == (share.shares_port, settings.shares_port)
