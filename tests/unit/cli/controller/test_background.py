"""The flags of the background controller: Kyverno's, and what they do."""

from __future__ import annotations

import pytest

from pyverno.cli.args.records import command_of, ineffective
from pyverno.cli.args.sections import SectionedCommand
from pyverno.cli.controller.background import background_settings
from pyverno.cli.controller.backgroundflags import BackgroundFlags
from pyverno.cli.controller.command import controller
from pyverno.errors import UsageError
from tests.unit.cli.controller.test_admission import KYVERNO as ADMISSION

_SHARED = (
    *("autoMemLimitEnabled", "autoMemLimitRatio", "kubeconfig", "clientRateLimitQPS", "clientRateLimitBurst"),
    *("eventsRateLimitQPS", "eventsRateLimitBurst", "resyncPeriod", "crdWatcher", "enablePolicyException"),
    *("exceptionNamespace", "enableConfigMapCaching", "leaderElectionRetryPeriod", "loggingFormat"),
    *("loggingtsFormat", "disableLogColor", "v", "maxQueuedEvents", "omitEvents", "apiCallTimeout"),
    *("maxGlobalContextEntries", "allowHTTPInNamespacedPolicies", "httpBlocklist", "httpAllowlist"),
    *("enableReporting", "allowedResults", "controllerRuntimeMetricsAddress", "enableDeferredLoading"),
    *("allowInsecureRegistry", "imagePullSecrets", "registryCredentialHelpers", "cleanupServerHost"),
    *("cleanupServerPort", "metricsHost", "metricsPort", "disableMetrics", "otelConfig", "otelCollector"),
    *("transportCreds", "exemplarFilter", "enableTracing", "tracingAddress", "tracingPort", "tracingCreds"),
    *("metricsCASecretName", "metricsTLSSecretName", "metricsRenewBefore", "metricsServerIP", "profile"),
    *("profilePort", "profileAddress"),
)
KYVERNO = {
    **{name: ADMISSION[name] for name in _SHARED},
    "maxAPICallResponseLength": "2000000",
    "genWorkers": "10",
    "maxBackgroundReports": "10000",
}
"""The flags of Kyverno's background controller with their defaults."""
OURS = {
    "context",
    "trustedRoot",
    "metricsKeyAlgorithm",
    "healthHost",
    "healthPort",
    "updateRequestShards",
    "namespacedPolicyRights",
}


def read(*words: str) -> BackgroundFlags:
    """Return the flags of a command line."""
    seen: list[BackgroundFlags] = []
    command_of("probe", "Probe.", BackgroundFlags, seen.append).main(list(words), standalone_mode=False)
    return seen[0]


def test_no_flag_is_forgotten() -> None:
    """Each of the command is one of Kyverno's, or one of ours."""
    command = controller.commands["background"]
    assert isinstance(command, SectionedCommand)
    shown = {option.opts[0].removeprefix("--") for options in command.sections.values() for option in options}
    assert {*KYVERNO, *OURS} == shown


@pytest.mark.parametrize("name", KYVERNO)
def test_kyvernos_flags_have_its_names_and_defaults(name: str) -> None:
    """Giving a flag its default changes nothing."""
    assert read() == read(f"--{name}={KYVERNO[name]}")


def test_flags_without_effect_are_named_when_they_are_given() -> None:
    """Giving one its default changes nothing, here or there."""
    assert () == ineffective(read("--enableReporting=validate,mutate,mutateExisting,generate,imageVerify"))
    assert ("--cleanupServerPort",) == ineffective(read("--cleanupServerPort=5", "--genWorkers=3"))


def test_settings_come_from_flags_and_the_environment() -> None:
    """Its account is the service account of the pod."""
    environment = {
        "KYVERNO_NAMESPACE": "policy",
        "KYVERNO_SERVICEACCOUNT_NAME": "worker",
        "KYVERNO_POD_NAME": "pod-1",
        "BACKGROUND_SCAN_INTERVAL": "5m",
    }
    settings = background_settings(read("--genWorkers=3", "--updateRequestShards=2"), environment)
    assert ("policy", "system:serviceaccount:policy:worker", "pod-1", 3, 2, 300.0) == (
        settings.namespace,
        settings.account,
        settings.identity,
        settings.workers,
        settings.shards,
        settings.scan_seconds,
    )


@pytest.mark.parametrize("shards", ["0", "9"])
def test_the_number_of_shards_is_bounded_by_the_leases_of_the_role(shards: str) -> None:
    """The role names a lease for each."""
    with pytest.raises(UsageError, match="expected 1 to 8"):
        background_settings(read(f"--updateRequestShards={shards}"), {})


def test_an_interval_that_cannot_be_read_ends_the_start() -> None:
    """The variable is named."""
    with pytest.raises(UsageError, match="environment variable BACKGROUND_SCAN_INTERVAL"):
        background_settings(read(), {"BACKGROUND_SCAN_INTERVAL": "soon"})
