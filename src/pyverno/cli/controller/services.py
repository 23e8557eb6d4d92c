"""Services of every controller process, by its flags: access to the cluster, log, metrics, traces, profiles, hosts."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypedDict

from pyverno.cli.args.records import ineffective
from pyverno.cli.controller.groups import (
    CallFlags,
    ClusterFlags,
    EventFlags,
    LogFlags,
    MetricFlags,
    ProfilingFlags,
    RightsFlags,
    TracingFlags,
)
from pyverno.cli.controller.imageflags import ImageFlags, registry_flags
from pyverno.cli.style import style_for
from pyverno.cli.terminal import STDERR
from pyverno.cluster.access import SERVICE_ACCOUNT, Access, in_cluster, load_kubeconfig
from pyverno.cluster.egress import SCOPED_TOKEN, EgressSettings
from pyverno.cluster.egressrules import EgressRules
from pyverno.controllers.certificates.secrets import CertificateSettings
from pyverno.controllers.certificates.secrettls import SecretTls
from pyverno.controllers.runtime.collectorauthority import collector_authority
from pyverno.controllers.runtime.events import EventSettings
from pyverno.controllers.runtime.metricsport import MetricsPort
from pyverno.controllers.runtime.process import Service
from pyverno.controllers.runtime.processgroup.processes import Processes
from pyverno.controllers.runtime.profiling import ProfilingPort
from pyverno.controllers.state.hosts import HostSettings
from pyverno.controllers.state.settings import PolicyRights
from pyverno.errors import UsageError
from pyverno.telemetry.logs import LogSettings, set_up_logging
from pyverno.telemetry.metrics import Metrics
from pyverno.value import replace

if TYPE_CHECKING:
    from pyverno.telemetry.otlp import Collector, Tracing

# trust rows: environment

__all__ = [
    "DAY_SECONDS",
    "REQUIRED",
    "ProcessFlags",
    "SharedValues",
    "access_of",
    "begin_log",
    "begin_process",
    "key_algorithm",
    "metrics_services",
    "metrics_tls",
    "namespace_of",
    "profiling_services",
    "read_words",
    "shared_values",
    "tracing_services",
]

DAY_SECONDS = 86_400
_DEFAULT_QPS = 5.0
_DEFAULT_BURST = 10
"""The limits of clients where a flag is 0."""

_ALGORITHMS = ("RSA", "ECDSA", "ED25519")
REQUIRED = (
    "KYVERNO_NAMESPACE",
    "KYVERNO_SERVICEACCOUNT_NAME",
    "KYVERNO_DEPLOYMENT",
    "KYVERNO_POD_NAME",
    "INIT_CONFIG",
    "METRICS_CONFIG",
)
"""Environment variables that a controller in a cluster requires."""


class ProcessFlags(Protocol):
    """The groups of flags that every controller has."""

    @property
    def cluster(self) -> ClusterFlags:
        """Access to the cluster and its rates."""
        ...

    @property
    def calls(self) -> CallFlags:
        """Limits of calls that rules make."""
        ...

    @property
    def rights(self) -> RightsFlags:
        """Permissions of policies."""
        ...

    @property
    def events(self) -> EventFlags:
        """Events about policies and requests."""
        ...

    @property
    def logs(self) -> LogFlags:
        """The log."""
        ...

    @property
    def metrics(self) -> MetricFlags:
        """Metrics."""
        ...

    @property
    def tracing(self) -> TracingFlags:
        """Traces."""
        ...

    @property
    def profiling(self) -> ProfilingFlags:
        """Profiling."""
        ...


class SharedValues(TypedDict):
    """The fields of `ControllerSettings` that flags and environment set in the same way for every controller."""

    namespace: str
    config_map: str
    metrics_config_map: str
    identity: str
    lease_retry: float
    qps: float
    burst: int
    events_qps: float
    events_burst: int
    resync_seconds: float
    events: EventSettings
    hosts: HostSettings
    rights: PolicyRights


def begin_log(flags: ProcessFlags) -> None:
    """Set up the log."""
    given = flags.logs
    colours = style_for(STDERR, remove_color=given.has_no_color).is_coloured
    set_up_logging(LogSettings(given.form, given.verbosity, given.time, colours))


def begin_process(flags: ProcessFlags, part: str) -> Access:
    """Set up the log, warn of flags without effect and return the access; raises UsageError without access."""
    begin_log(flags)
    without_effect = ineffective(flags)
    if without_effect:
        log = logging.getLogger(f"pyverno.{part}")
        log.warning("some flags have no effect", extra={"fields": {"flags": ", ".join(without_effect)}})
    return access_of(flags, os.environ)


def shared_values(
    flags: ProcessFlags, environment: Mapping[str, str], images: ImageFlags | None = None
) -> SharedValues:
    """Return the settings that are the same for every controller; raises UsageError for an invalid value."""
    cluster = flags.cluster
    return SharedValues(
        namespace=namespace_of(environment),
        config_map=environment.get("INIT_CONFIG") or "kyverno",
        metrics_config_map=environment.get("METRICS_CONFIG") or "kyverno-metrics",
        identity=_identity_of(environment),
        lease_retry=cluster.lease_retry,
        qps=cluster.qps or _DEFAULT_QPS,
        burst=cluster.burst or _DEFAULT_BURST,
        events_qps=cluster.events_qps or _DEFAULT_QPS,
        events_burst=cluster.events_burst or _DEFAULT_BURST,
        resync_seconds=cluster.resync,
        events=EventSettings(flags.events.max_queued, flags.events.omitted),
        hosts=_host_settings(flags, environment, images),
        rights=PolicyRights(flags.rights.of_namespaces),
    )


def metrics_services(flags: ProcessFlags, access: Access, metrics: Metrics | Processes) -> Iterator[Service]:
    """Yield what serves or sends the metrics."""
    given = flags.metrics
    if given.disabled:
        return
    if given.otel == "grpc":
        from pyverno.telemetry.otlp import Collector, MetricsPush  # as for traces

        authority = collector_authority(access, given.collector_secret, namespace_of(os.environ))
        yield MetricsPush(metrics, Collector(_endpoint(given.collector, given.port), authority))
    else:
        yield MetricsPort(metrics.scrape, given.host, given.port, metrics_tls(flags, access, os.environ))


def _traces_collector(flags: ProcessFlags, access: Access) -> Collector:
    """Return the collector of traces."""
    from pyverno.telemetry.otlp import Collector  # as for traces

    given = flags.tracing
    authority = collector_authority(access, given.secret, namespace_of(os.environ))
    return Collector(_endpoint(given.address or "localhost", given.port), authority)


def _endpoint(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def namespace_of(environment: Mapping[str, str]) -> str:
    """Return the namespace of the controllers."""
    return environment.get("KYVERNO_NAMESPACE") or "kyverno"


def metrics_tls(flags: ProcessFlags, access: Access, environment: Mapping[str, str]) -> SecretTls | None:
    """Return the certificates of the metrics endpoint, None for HTTP; raises UsageError if one Secret is missing."""
    given = flags.metrics
    if not given.tls_secret:
        return None
    if not given.ca_secret:
        raise UsageError("--metricsTLSSecretName needs --metricsCASecretName")
    service = environment.get("KYVERNO_SVC") or "kyverno-svc"
    settings = CertificateSettings(
        service=service,
        more_services=(f"{service}-metrics",),
        namespace=namespace_of(environment),
        ca_secret=given.ca_secret,
        tls_secret=given.tls_secret,
        algorithm=key_algorithm("--metricsKeyAlgorithm", given.algorithm),
        renew_before_days=given.renew_before / DAY_SECONDS,
        server=given.server,
    )
    return SecretTls(access, settings)


def profiling_services(flags: ProcessFlags, number: int) -> Iterator[Service]:
    """Yield the server of profiles for the process with this number, from 1."""
    given = flags.profiling
    if given.enabled:
        yield ProfilingPort(given.address, given.port + number - 1)


def access_of(flags: ProcessFlags, environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Access:
    """Return the access to the cluster; in a pod, the required environment variables are checked first.

    Raises UsageError without access, and with the names of all missing variables.
    """
    given = flags.cluster
    if given.kubeconfig or given.context or environment.get("KUBECONFIG"):
        return load_kubeconfig(given.kubeconfig, given.context, environment)
    access = in_cluster(folder, environment)
    missing = [name for name in REQUIRED if not environment.get(name)]
    if missing:
        raise UsageError(f"required environment variables are not set: {', '.join(missing)}")
    return access


def key_algorithm(name: str, given: str) -> str:
    """Return the key algorithm of a flag; raises UsageError for an unknown one."""
    if given.upper() not in _ALGORITHMS:
        raise UsageError(f'invalid argument "{given}" for "{name}" flag: expected RSA, ECDSA or Ed25519')
    return given


def _host_settings(
    flags: ProcessFlags, environment: Mapping[str, str], images: ImageFlags | None = None
) -> HostSettings:
    """Return the limits of reads from services, registries and the global context."""
    given = flags.calls
    return HostSettings(
        egress=EgressSettings(
            rules=EgressRules.read(given.blocklist, given.allowlist),
            max_bytes=given.max_bytes,
            seconds=given.timeout,
            token_file=Path(environment.get("KYVERNO_SCOPED_TOKEN_PATH") or SCOPED_TOKEN),
        ),
        registries=replace(
            registry_flags(images or ImageFlags(), namespace_of(environment)),
            lends=flags.rights.of_namespaces == PolicyRights.CONTROLLER.value,
        ),
        allows_http_in_namespaces=given.allows_http_in_namespaces,
        max_entries=given.max_entries,
        caches_config_maps=given.caches_config_maps,
    )


def read_words(given: tuple[str, ...], known: frozenset[str], flag: str) -> frozenset[str]:
    """Return the words of a flag; raises UsageError for an unknown one."""
    unknown = next((each for each in given if each not in known), None)
    if unknown is not None:
        raise UsageError(f'invalid argument "{unknown}" for "{flag}" flag: expected {", ".join(sorted(known))}')
    return frozenset(given)


def _identity_of(environment: Mapping[str, str]) -> str:
    """Return the name of this replica among the others."""
    return environment.get("KYVERNO_POD_NAME") or f"{os.uname().nodename}-{os.getpid()}"


def tracing_services(flags: ProcessFlags, access: Access, name: str) -> Iterator[Tracing]:
    """Yield the exporter of traces for a service of this name, if tracing is on."""
    if flags.tracing.enabled:
        from pyverno.telemetry.otlp import Tracing  # an extra of this package, and half a second to load

        yield Tracing(name, _traces_collector(flags, access))
