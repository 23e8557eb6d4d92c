"""The work of `pyverno controller admission`: settings from flags and environment, and the process."""

from __future__ import annotations

import logging
import os
import ssl
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pyverno.cli.args.records import ineffective, packed
from pyverno.cli.style import style_for
from pyverno.cluster.access import SERVICE_ACCOUNT, Access, in_cluster, load_kubeconfig
from pyverno.cluster.egress import SCOPED_TOKEN, EgressSettings
from pyverno.cluster.egressrules import EgressRules
from pyverno.controllers.admission.auditpass import AuditSettings
from pyverno.controllers.admission.controller import AdmissionController, AdmissionSettings
from pyverno.controllers.admission.reports import ReportSettings
from pyverno.controllers.certificates.secrets import CertificateSettings
from pyverno.controllers.certificates.secrettls import SecretTls
from pyverno.controllers.runtime.collectorauthority import collector_authority
from pyverno.controllers.runtime.events import EventSettings
from pyverno.controllers.runtime.metricsport import MetricsPort
from pyverno.controllers.runtime.process import Service, run_process
from pyverno.controllers.runtime.processes import Processes, can_share_ports
from pyverno.controllers.runtime.profiling import ProfilingPort
from pyverno.controllers.state.hosts import HostSettings
from pyverno.controllers.webhooks.configurations import Settings
from pyverno.errors import UsageError
from pyverno.telemetry.logs import AnswerLog, LogSettings, set_up_logging
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.observer import Observer, Observers
from pyverno.telemetry.payloadlog import PayloadLog
from pyverno.webhook.policyreviews import ExceptionSettings
from pyverno.webhook.server import Limits
from pyverno.webhook.tls import Clients

if TYPE_CHECKING:
    from pyverno.cli.controller.flags import AdmissionFlags
    from pyverno.controllers.runtime.peers import Peers
    from pyverno.telemetry.otlp import Collector

__all__ = ["REQUIRED", "access_of", "assembled", "begin_log", "metrics_tls", "run_admission", "settings_of"]

_DAY = 86_400
_MAX_PROCESSES = 64
_COMMAND = (sys.executable, "-P", "-m", "pyverno.cli.controller.process")
"""The command of one of several processes; -P keeps modules of the working directory out of the import path."""
_DEFAULT_QPS = 5.0
_DEFAULT_BURST = 10
REQUIRED = (
    "KYVERNO_NAMESPACE",
    "KYVERNO_SERVICEACCOUNT_NAME",
    "KYVERNO_DEPLOYMENT",
    "KYVERNO_POD_NAME",
    "INIT_CONFIG",
    "METRICS_CONFIG",
)
"""Environment variables that a controller in a cluster requires."""

log = logging.getLogger("pyverno.admission")
_ALGORITHMS = ("RSA", "ECDSA", "ED25519")


def run_admission(flags: AdmissionFlags) -> None:
    """Run until a signal; raises UsageError for unusable flags, HostError when a task fails."""
    begin_log(flags)
    without_effect = ineffective(flags)
    if without_effect:
        log.warning("some flags have no effect", extra={"fields": {"flags": ", ".join(without_effect)}})
    access = access_of(flags, os.environ)
    settings = settings_of(flags, os.environ)
    if flags.server.processes > 1:
        processes = Processes(_COMMAND, {"flags": packed(flags)}, flags.server.processes)
        run_process(processes.run, list(_metrics(flags, access, processes)))
    else:
        metrics = Metrics()
        controller, services = assembled(flags, access, settings, metrics)
        run_process(controller.run, [*_metrics(flags, access, metrics), *services])


def begin_log(flags: AdmissionFlags) -> None:
    """Set up the log."""
    given = flags.logs
    colours = style_for(sys.stderr, remove_color=given.has_no_color).is_coloured
    set_up_logging(LogSettings(given.form, given.verbosity, given.time, colours))


def assembled(
    flags: AdmissionFlags,
    access: Access,
    settings: AdmissionSettings,
    metrics: Metrics,
    peers: Peers | None = None,
) -> tuple[AdmissionController, list[Service]]:
    """Return a controller and what is served beside it, except metrics; `peers` are the other processes."""
    given = flags.logs
    observers: list[Observer] = [metrics, AnswerLog()]
    if given.dumps_payload or given.dumps_patches:
        observers.append(PayloadLog(payloads=given.dumps_payload, patches=given.dumps_patches))
    services: list[Service] = list(_profiling(flags, 1 if peers is None else peers.number))
    if flags.tracing.enabled:
        from pyverno.telemetry.otlp import Tracing  # an extra of this package, and half a second to load

        tracing = Tracing("kyverno-admission-controller", _traces_collector(flags, access))
        observers.append(tracing.observer)
        services.append(tracing)
    return AdmissionController(access, settings, Observers(*observers), metrics, peers), services


def _metrics(flags: AdmissionFlags, access: Access, metrics: Metrics | Processes) -> Iterator[Service]:
    given = flags.metrics
    if given.disabled:
        return
    if given.otel == "grpc":
        from pyverno.telemetry.otlp import Collector, MetricsPush  # as for traces

        authority = collector_authority(access, given.collector_secret, _namespace(os.environ))
        yield MetricsPush(metrics, Collector(_endpoint(given.collector, given.port), authority))
    else:
        yield MetricsPort(metrics.scrape, given.host, given.port, metrics_tls(flags, access, os.environ))


def _traces_collector(flags: AdmissionFlags, access: Access) -> Collector:
    from pyverno.telemetry.otlp import Collector  # as for traces

    given = flags.tracing
    authority = collector_authority(access, given.secret, _namespace(os.environ))
    return Collector(_endpoint(given.address or "localhost", given.port), authority)


def _endpoint(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _namespace(environment: Mapping[str, str]) -> str:
    return environment.get("KYVERNO_NAMESPACE") or "kyverno"


def metrics_tls(flags: AdmissionFlags, access: Access, environment: Mapping[str, str]) -> SecretTls | None:
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
        namespace=_namespace(environment),
        ca_secret=given.ca_secret,
        tls_secret=given.tls_secret,
        algorithm=_algorithm("--metricsKeyAlgorithm", given.algorithm),
        renew_before_days=given.renew_before / _DAY,
        server=given.server,
    )
    return SecretTls(access, settings)


def _profiling(flags: AdmissionFlags, number: int) -> Iterator[Service]:
    given = flags.profiling
    if given.enabled:
        yield ProfilingPort(given.address, given.port + number - 1)


def settings_of(flags: AdmissionFlags, environment: Mapping[str, str]) -> AdmissionSettings:
    """Return the settings of a controller; raises UsageError for an invalid value."""
    namespace = _namespace(environment)
    service = environment.get("KYVERNO_SVC") or "kyverno-svc"
    server, cluster = flags.server, flags.cluster
    _check_processes(server.processes, server.port)
    return AdmissionSettings(
        namespace=namespace,
        service=service,
        config_map=environment.get("INIT_CONFIG") or "kyverno",
        metrics_config_map=environment.get("METRICS_CONFIG") or "kyverno-metrics",
        address=server.host,
        port=server.port,
        server=server.server,
        service_port=server.service_port,
        identity=environment.get("KYVERNO_POD_NAME") or f"{os.uname().nodename}-{os.getpid()}",
        exceptions=ExceptionSettings(flags.exceptions.enabled, flags.exceptions.namespace),
        reports_account=flags.reports.account,
        background_account=flags.reports.background_account,
        audit=AuditSettings(flags.reports.audit_workers, flags.reports.audit_capacity),
        reports=ReportSettings(
            flags.reports.of_admission,
            _known(flags.reports.types, ReportSettings().types, "--enableReporting"),
            _known(flags.reports.statuses, ReportSettings().statuses, "--allowedResults"),
            flags.reports.most,
        ),
        webhooks=Settings(
            timeout=flags.webhooks.timeout,
            forces_ignore=flags.webhooks.forces_ignore,
            excludes_bootstrap=flags.webhooks.excludes_bootstrap,
            reports_admission=flags.reports.of_admission,
            updates=flags.webhooks.updates,
        ),
        certificates=_certificates(flags, service, namespace),
        protects_managed=server.protects_managed,
        clients=_clients(flags),
        limits=Limits(linger_seconds=server.shutdown_delay),
        lease_retry=cluster.lease_retry,
        qps=cluster.qps or _DEFAULT_QPS,
        burst=cluster.burst or _DEFAULT_BURST,
        events_qps=cluster.events_qps or _DEFAULT_QPS,
        events_burst=cluster.events_burst or _DEFAULT_BURST,
        resync_seconds=cluster.resync,
        removes_webhooks=flags.webhooks.removes,
        deployment=environment.get("KYVERNO_DEPLOYMENT") or "",
        hosts=_hosts(flags, environment),
        generates_validating=flags.generation.validating,
        generates_mutating=flags.generation.mutating,
        events=EventSettings(flags.events.max_queued, flags.events.omitted),
    )


def _check_processes(count: int, port: int) -> None:
    """Raise UsageError for a number of processes that cannot be run."""
    if not 1 <= count <= _MAX_PROCESSES:
        expected = f"1 to {_MAX_PROCESSES}"
        raise UsageError(f'invalid argument "{count}" for "--webhookProcesses" flag: expected {expected}')
    if count > 1 and not port:
        raise UsageError("--webhookProcesses needs a fixed --webhookServerPort")
    if count > 1 and not can_share_ports():
        raise UsageError("--webhookProcesses needs a system on which processes can share a port")


def access_of(flags: AdmissionFlags, environment: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Access:
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


def _clients(flags: AdmissionFlags) -> Clients:
    given = flags.server
    if not given.client_ca:
        if given.client_names:
            raise UsageError("--clientAllowedNames needs --clientCAFile")
        return Clients()
    try:
        authority = Path(given.client_ca).read_bytes()
        ssl.create_default_context(cadata=authority.decode("ascii"))
    except (OSError, UnicodeDecodeError, ssl.SSLError) as error:
        raise UsageError(f"`{given.client_ca}` of --clientCAFile cannot be used: {error}") from None
    return Clients(authority, given.client_names)


def _certificates(flags: AdmissionFlags, service: str, namespace: str) -> CertificateSettings:
    given = flags.certificates
    return CertificateSettings(
        service=service,
        namespace=namespace,
        ca_secret=given.ca_secret,
        tls_secret=given.tls_secret,
        algorithm=_algorithm("--tlsKeyAlgorithm", given.algorithm),
        renew_before_days=given.renew_before / _DAY,
        server=flags.server.server,
        manages=not given.others_manage,
    )


def _algorithm(name: str, given: str) -> str:
    if given.upper() not in _ALGORITHMS:
        raise UsageError(f'invalid argument "{given}" for "{name}" flag: expected RSA, ECDSA or Ed25519')
    return given


def _hosts(flags: AdmissionFlags, environment: Mapping[str, str]) -> HostSettings:
    given = flags.calls
    return HostSettings(
        egress=EgressSettings(
            rules=EgressRules.read(given.blocklist, given.allowlist),
            max_bytes=given.max_bytes,
            seconds=given.timeout,
            token_file=Path(environment.get("KYVERNO_SCOPED_TOKEN_PATH") or SCOPED_TOKEN),
        ),
        allows_http_in_namespaces=given.allows_http_in_namespaces,
        max_entries=given.max_entries,
        caches_config_maps=given.caches_config_maps,
    )


def _known(given: tuple[str, ...], known: frozenset[str], flag: str) -> frozenset[str]:
    """Return the words of a flag; raises UsageError for an unknown one."""
    unknown = next((each for each in given if each not in known), None)
    if unknown is not None:
        raise UsageError(f'invalid argument "{unknown}" for "{flag}" flag: expected {", ".join(sorted(known))}')
    return frozenset(given)
