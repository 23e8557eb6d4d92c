"""Groups of flags that several controllers have: cluster, exceptions, calls, events, logs, metrics and traces."""

from __future__ import annotations

from dataclasses import dataclass

from pyverno.cli.args.records import listed, number, seconds, switch, text

__all__ = [
    "CallFlags",
    "ClusterFlags",
    "EventFlags",
    "ExceptionFlags",
    "HealthFlags",
    "LogFlags",
    "MetricFlags",
    "ProfilingFlags",
    "ReportedResultFlags",
    "RightsFlags",
    "TracingFlags",
    "UnusedCleanupFlags",
    "UnusedFlags",
    "UnusedSigstoreFlags",
]

_BLOCKED = "169.254.169.254,169.254.169.253,metadata.google.internal,127.0.0.0/8,::1/128"


@dataclass(frozen=True, slots=True)
class ClusterFlags:
    """Access to the cluster and its rates."""

    kubeconfig: str = text(
        "--kubeconfig", "Kubeconfig file; by default the service account of the pod.", metavar="FILE"
    )
    context: str = text("--context", "Context of the kubeconfig.", metavar="NAME")
    qps: float = number(
        "--clientRateLimitQPS",
        "Requests per second to the API server; 0 means 5, the default of clients.",
        default=100.0,
    )
    burst: int = number(
        "--clientRateLimitBurst",
        "Burst of requests to the API server; 0 means 10, the default of clients.",
        default=200,
    )
    events_qps: float = number(
        "--eventsRateLimitQPS", "Events per second; 0 means 5, the default of clients.", default=1000.0
    )
    events_burst: int = number(
        "--eventsRateLimitBurst", "Burst of events; 0 means 10, the default of clients.", default=2000
    )
    resync: float = seconds("--resyncPeriod", "Interval of the full resync of all objects; 0 for none.", default="15m")
    lease_retry: float = seconds(
        "--leaderElectionRetryPeriod", "Interval between attempts to take or renew a lease.", default="2s"
    )


@dataclass(frozen=True, slots=True)
class ExceptionFlags:
    """PolicyExceptions."""

    enabled: bool = switch("--enablePolicyException", "Apply PolicyExceptions.")
    namespace: str = text("--exceptionNamespace", "The namespace of PolicyExceptions; `*` for any.", metavar="NAME")


@dataclass(frozen=True, slots=True)
class RightsFlags:
    """Permissions of policies."""

    of_namespaces: str = text(
        "--namespacedPolicyRights",
        "Whose permissions namespaced policies act with: author or controller (as Kyverno). Not a flag of Kyverno.",
        default="author",
        metavar="WHOSE",
        choices=("author", "controller"),
    )


@dataclass(frozen=True, slots=True)
class CallFlags:
    """Limits of calls that rules make."""

    max_bytes: int = number(
        "--maxAPICallResponseLength",
        "Largest response of an API or service call in bytes; 0 for no limit.",
        default=2_000_000,
    )
    timeout: float = seconds("--apiCallTimeout", "Timeout of a service call; 0 for no limit.", default="30s")
    blocklist: tuple[str, ...] = listed(
        "--httpBlocklist",
        "Hosts, addresses and CIDR ranges that rules may not call.",
        default=_BLOCKED,
        env="FLAG_HTTP_BLOCKLIST",
    )
    allowlist: tuple[str, ...] = listed(
        "--httpAllowlist", "URL prefixes that rules may call; empty for all.", env="FLAG_HTTP_ALLOWLIST"
    )
    allows_http_in_namespaces: bool = switch(
        "--allowHTTPInNamespacedPolicies",
        "Allow CEL expressions of namespaced policies to call services.",
        env="FLAG_ENABLE_HTTP_IN_NAMESPACED_POLICIES",
        is_toggle=True,
    )
    max_entries: int = number(
        "--maxGlobalContextEntries", "Limit of global context entries; 0 for no limit.", default=0
    )
    caches_config_maps: bool = switch(
        "--enableConfigMapCaching",
        "Cache ConfigMaps with the label cache.kyverno.io/enabled.",
        default=True,
    )


@dataclass(frozen=True, slots=True)
class ReportedResultFlags:
    """The results that become reports."""

    types: tuple[str, ...] = listed(
        "--enableReporting",
        "Kinds of rules in reports: validate, mutate, mutateExisting, generate, imageVerify.",
        default="validate,mutate,mutateExisting,generate,imageVerify",
        metavar="KINDS",
    )
    statuses: tuple[str, ...] = listed(
        "--allowedResults",
        "Results in reports: pass, fail, error, warn, skip.",
        default="pass,fail,error,warn,skip",
        metavar="RESULTS",
    )


@dataclass(frozen=True, slots=True)
class HealthFlags:
    """Probes."""

    host: str = text(
        "--healthHost",
        "Address of the probes /health/liveness and /health/readiness; all by default. Not a flag of Kyverno.",
        metavar="ADDRESS",
    )
    port: int = number("--healthPort", "Port of the probes; 0 for none. Not a flag of Kyverno.", default=9080)


@dataclass(frozen=True, slots=True)
class EventFlags:
    """Events about policies and requests."""

    max_queued: int = number("--maxQueuedEvents", "Capacity of the event queue; 0 for no events.", default=1000)
    omitted: tuple[str, ...] = listed("--omitEvents", "Reasons of events to omit.", metavar="REASONS")


@dataclass(frozen=True, slots=True)
class LogFlags:
    """The log."""

    form: str = text(
        "--loggingFormat",
        "Format of log lines: text or json.",
        default="text",
        metavar="FORMAT",
        choices=("text", "json"),
    )
    time: str = text(
        "--loggingtsFormat",
        "Format of timestamps: default, iso8601, rfc3339, millis, nanos, epoch or rfc3339nano.",
        default="default",
        metavar="FORMAT",
        choices=("default", "iso8601", "rfc3339", "millis", "nanos", "epoch", "rfc3339nano"),
    )
    has_no_color: bool = switch(
        "--disableLogColor", "Never use colours; by default only on a terminal without NO_COLOR."
    )
    verbosity: int = number("--v", "Verbosity: 0 for warnings, 2 for denials, 4 for every request.", default=2)


@dataclass(frozen=True, slots=True)
class MetricFlags:
    """Metrics."""

    host: str = text("--metricsHost", "Address of the metrics endpoint; all addresses by default.", metavar="ADDRESS")
    port: int = number("--metricsPort", "Port of the metrics endpoint.", default=8000)
    disabled: bool = switch("--disableMetrics", "Disable metrics.")
    otel: str = text(
        "--otelConfig",
        "Metrics exporter: prometheus, or grpc to a collector (needs the extra `otel`).",
        default="prometheus",
        metavar="FORMAT",
        choices=("prometheus", "grpc"),
    )
    collector: str = text(
        "--otelCollector",
        "With --otelConfig=grpc: host of the collector; its port is --metricsPort.",
        default="opentelemetrycollector.kyverno.svc.cluster.local",
        metavar="HOST",
    )
    collector_secret: str = text(
        "--transportCreds",
        "With --otelConfig=grpc: Secret with the CA of the collector (ca.pem); without it TLS is off.",
        metavar="NAME",
    )
    exemplars: str = text(
        "--exemplarFilter",
        "Filter of exemplars: always-off, trace-based or always-on.",
        default="trace-based",
        metavar="NAME",
        has_effect=False,
    )
    ca_secret: str = text(
        "--metricsCASecretName", "Secret with the certificate authority of the metrics endpoint.", metavar="NAME"
    )
    tls_secret: str = text(
        "--metricsTLSSecretName",
        "Secret with the certificate of the metrics endpoint; enables HTTPS.",
        metavar="NAME",
    )
    algorithm: str = text(
        "--metricsKeyAlgorithm", "Key algorithm: ECDSA, RSA or Ed25519.", default="ECDSA", metavar="NAME"
    )
    renew_before: float = seconds(
        "--metricsRenewBefore", "Time before expiry at which this certificate is renewed.", default="360h"
    )
    server: str = text("--metricsServerIP", "Additional address in this certificate.", metavar="ADDRESS")


@dataclass(frozen=True, slots=True)
class TracingFlags:
    """Traces."""

    enabled: bool = switch("--enableTracing", "Send traces to an OpenTelemetry collector (needs the extra `otel`).")
    address: str = text("--tracingAddress", "Host of the collector; localhost by default.", metavar="HOST")
    port: int = number("--tracingPort", "Port of the collector.", default=4317)
    secret: str = text(
        "--tracingCreds",
        "Secret with the CA of the collector (ca.pem); without it TLS is off.",
        metavar="NAME",
    )


@dataclass(frozen=True, slots=True)
class ProfilingFlags:
    """Profiling."""

    enabled: bool = switch("--profile", "Serve CPU and memory profiles over HTTP.")
    port: int = number("--profilePort", "Port of the profiling endpoint.", default=6060)
    address: str = text(
        "--profileAddress", "Address of the profiling endpoint; localhost by default.", metavar="ADDRESS"
    )


@dataclass(frozen=True, slots=True)
class UnusedFlags:
    """Flags of all of Kyverno's controllers without a counterpart."""

    loads_late: bool = switch(
        "--enableDeferredLoading",
        "Load context entries when they are used, which is always done.",
        default=True,
        env="FLAG_ENABLE_DEFERRED_LOADING",
        is_toggle=True,
        has_effect=False,
    )
    memory_limit: bool = switch(
        "--autoMemLimitEnabled", "Set Go's memory limit from the container's.", default=True, has_effect=False
    )
    memory_ratio: float = number("--autoMemLimitRatio", "Ratio of this limit.", default=0.9, has_effect=False)
    definitions: bool = switch(
        "--crdWatcher", "Watch CustomResourceDefinitions, which is always done.", has_effect=False
    )


@dataclass(frozen=True, slots=True)
class UnusedCleanupFlags(UnusedFlags):
    """The same, with the address of the cleanup controller."""

    cleanup_host: str = text(
        "--cleanupServerHost", "Address of the cleanup controller.", metavar="ADDRESS", has_effect=False
    )
    cleanup_port: int = number("--cleanupServerPort", "Port of the cleanup controller.", default=9443, has_effect=False)


@dataclass(frozen=True, slots=True)
class UnusedSigstoreFlags(UnusedCleanupFlags):
    """The same, with the log of cosign."""

    logs_cosign: bool = switch("--enableCosignLogging", "Enable the log of cosign.", has_effect=False)
