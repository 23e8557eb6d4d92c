"""The flags of the cleanup controller: Kyverno's, and what they do."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from pyverno.cli.args.records import command_of
from pyverno.cli.args.sections import SectionedCommand
from pyverno.cli.controller.cleanup import cleanup_settings
from pyverno.cli.controller.cleanupflags import CleanupFlags
from pyverno.cli.controller.command import controller
from pyverno.errors import UsageError
from tests.unit.cli.controller.test_admission import KYVERNO as ADMISSION

_SHARED = (
    *("autoMemLimitEnabled", "autoMemLimitRatio", "kubeconfig", "clientRateLimitQPS", "clientRateLimitBurst"),
    *("eventsRateLimitQPS", "eventsRateLimitBurst", "resyncPeriod", "crdWatcher", "enableConfigMapCaching"),
    *("leaderElectionRetryPeriod", "loggingFormat", "loggingtsFormat", "disableLogColor", "v", "maxQueuedEvents"),
    *("apiCallTimeout", "maxGlobalContextEntries", "allowHTTPInNamespacedPolicies", "httpBlocklist"),
    *("httpAllowlist", "enableDeferredLoading", "metricsHost", "metricsPort", "disableMetrics", "otelConfig"),
    *("otelCollector", "transportCreds", "exemplarFilter", "enableTracing", "tracingAddress", "tracingPort"),
    *("tracingCreds", "metricsCASecretName", "metricsTLSSecretName", "metricsRenewBefore", "metricsServerIP"),
    *("profile", "profilePort", "profileAddress", "cleanupServerHost", "cleanupServerPort", "dumpPayload"),
    *("serverIP", "servicePort", "webhookServerPort", "caSecretName", "tlsSecretName", "renewBefore"),
    *("disableCertManagerController", "protectManagedResources"),
)
KYVERNO = {
    **{name: ADMISSION[name] for name in _SHARED},
    "maxAPICallResponseLength": "2000000",
    "ttlReconciliationInterval": "1m",
    "tlsKeyAlgorithm": "RSA",
    "autoDeleteWebhooks": "false",
}
"""The flags of Kyverno's cleanup controller with their defaults."""
OURS = {
    *("context", "metricsKeyAlgorithm", "healthHost", "healthPort", "omitEvents"),
    *("dryRun", "confirmDeletionsAbove", "namespacedPolicyRights"),
}


def read(*words: str) -> CleanupFlags:
    """Return the flags of a command line."""
    seen: list[CleanupFlags] = []
    command_of("probe", "Probe.", CleanupFlags, seen.append).main(list(words), standalone_mode=False)
    return seen[0]


def test_no_flag_is_forgotten() -> None:
    """Each of the command is one of Kyverno's, or one of ours."""
    command = controller.commands["cleanup"]
    assert isinstance(command, SectionedCommand)
    shown = {option.opts[0].removeprefix("--") for options in command.sections.values() for option in options}
    assert {*KYVERNO, *OURS} == shown


@pytest.mark.parametrize("name", KYVERNO)
def test_kyvernos_flags_have_its_names_and_defaults(name: str) -> None:
    """Giving a flag its default changes nothing."""
    assert read() == read(f"--{name}={KYVERNO[name]}")


def test_flags_become_settings() -> None:
    """Names of the environment as for the other controllers."""
    flags = read("--dryRun", "--confirmDeletionsAbove=50", "--ttlReconciliationInterval=5s", "--clientRateLimitQPS=0")
    found = cleanup_settings(flags, {"KYVERNO_NAMESPACE": "policies", "KYVERNO_POD_NAME": "pod-1"})
    assert ("policies", "pod-1", UTC) == (found.namespace, found.identity, found.zone)
    assert (True, 50, 5.0, 5.0) == (found.is_dry_run, found.max_deletions, found.ttl_seconds, found.qps)


def test_schedules_are_read_in_the_zone_of_the_environment() -> None:
    """An unknown time zone is rejected at the start, not when the first policy is due."""
    assert ZoneInfo("Europe/Berlin") == cleanup_settings(read(), {"TZ": "Europe/Berlin"}).zone
    with pytest.raises(UsageError, match="no time zone `Europe/Atlantis` is known"):
        cleanup_settings(read(), {"TZ": "Europe/Atlantis"})


@pytest.mark.parametrize("flag", ["--ttlReconciliationInterval=0s", "--confirmDeletionsAbove=-1"])
def test_values_that_make_no_sense_are_refused(flag: str) -> None:
    """With the name of the flag."""
    with pytest.raises(UsageError, match=flag.partition("=")[0]):
        cleanup_settings(read(flag), {})
