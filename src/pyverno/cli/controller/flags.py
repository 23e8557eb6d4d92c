"""The flags of `pyverno controller admission`: names, defaults and meanings are Kyverno's where Kyverno has the flag.

This module must never do anything with a value; `admission_run` does.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyverno.cli.args.records import group_of, listed, number, seconds, switch, text

__all__ = ["AdmissionFlags"]

_BLOCKED = "169.254.169.254,169.254.169.253,metadata.google.internal,127.0.0.0/8,::1/128"


@dataclass(frozen=True, slots=True)
class ClusterFlags:
    """How the cluster is reached."""

    kubeconfig: str = text(
        "--kubeconfig", "File with the access to the cluster; without it that of the pod.", metavar="FILE"
    )
    context: str = text("--context", "Context of that file.", metavar="NAME")
    qps: float = number(
        "--clientRateLimitQPS", "Requests a second to the API server; 0 for the default of clients, 5.", default=100.0
    )
    burst: int = number("--clientRateLimitBurst", "Requests at once; 0 for the default of clients, 10.", default=200)
    events_qps: float = number(
        "--eventsRateLimitQPS", "Events a second; 0 for the default of clients, 5.", default=1000.0
    )
    events_burst: int = number(
        "--eventsRateLimitBurst", "Events at once; 0 for the default of clients, 10.", default=2000
    )
    resync: float = seconds(
        "--resyncPeriod", "How often everything is looked at again without a reason; 0 for never.", default="15m"
    )
    lease_retry: float = seconds("--leaderElectionRetryPeriod", "How often a lease is tried.", default="2s")


@dataclass(frozen=True, slots=True)
class ServerFlags:
    """Where requests are taken, and whose."""

    host: str = text("--webhookServerHost", "Address to listen at; all by default.", metavar="ADDRESS")
    port: int = number("--webhookServerPort", "Port to listen at.", default=9443)
    processes: int = number(
        "--webhookProcesses",
        "How many processes share the port; each needs the memory of one and can use a core. Not Kyverno's.",
        default=1,
    )
    server: str = text("--serverIP", "HOST:PORT by which the API server reaches us from outside of the cluster.")
    service_port: int = number("--servicePort", "Port of the service.", default=443)
    shutdown_delay: float = seconds(
        "--shutdownDelay", "How long requests are still taken after SIGTERM, until everybody knows.", default="5s"
    )
    client_ca: str = text(
        "--clientCAFile",
        "Answer only who shows a certificate of this authority (PEM), as the API server can be told to; not Kyverno's.",
        metavar="FILE",
    )
    client_names: tuple[str, ...] = listed(
        "--clientAllowedNames",
        "With --clientCAFile: the names that such a certificate may have; any by default.",
        metavar="NAMES",
    )
    protects_managed: bool = switch(
        "--protectManagedResources",
        "Refuse changes of what Kyverno manages by anybody else.",
        env="FLAG_PROTECT_MANAGED_RESOURCES",
        is_toggle=True,
    )


@dataclass(frozen=True, slots=True)
class WebhookFlags:
    """What the API server is told about us."""

    timeout: int = number("--webhookTimeout", "Seconds that the API server waits.", default=10)
    updates: bool = switch("--autoUpdateWebhooks", "Ask for what policies are about, and nothing else.", default=True)
    excludes_bootstrap: bool = switch(
        "--excludeBootstrapResources", "Never ask about nodes and certificate requests where an error denies."
    )
    forces_ignore: bool = switch(
        "--forceFailurePolicyIgnore",
        "Let requests through when we can not be reached, whatever policies say.",
        env="FLAG_FORCE_FAILURE_POLICY_IGNORE",
        is_toggle=True,
    )
    removes: bool = switch("--removeWebhooks", "Take the webhook configurations away at the end; for development.")


@dataclass(frozen=True, slots=True)
class GenerationFlags:
    """Which policies the API server judges by itself."""

    validating: bool = switch(
        "--generateValidatingAdmissionPolicy",
        "Make ValidatingAdmissionPolicies of the policies that ask for it.",
        default=True,
        env="FLAG_GENERATE_VALIDATING_ADMISSION_POLICY",
        is_toggle=True,
    )
    mutating: bool = switch(
        "--generateMutatingAdmissionPolicy",
        "Need MutatingAdmissionPolicies in the cluster; policies that ask for one get it either way.",
        env="FLAG_GENERATE_MUTATING_ADMISSION_POLICY",
        is_toggle=True,
    )


@dataclass(frozen=True, slots=True)
class ExceptionFlags:
    """Which exceptions are used."""

    enabled: bool = switch("--enablePolicyException", "Use PolicyExceptions.")
    namespace: str = text(
        "--exceptionNamespace", "The only namespace of PolicyExceptions; `*` for any.", metavar="NAME"
    )


@dataclass(frozen=True, slots=True)
class ReportFlags:
    """What is reported of answers, and by whom."""

    of_admission: bool = switch("--admissionReports", "Report on admission requests.", default=True)
    types: tuple[str, ...] = listed(
        "--enableReporting",
        "Kinds of rules that are reported on: validate, mutate, mutateExisting, generate, imageVerify.",
        default="validate,mutate,mutateExisting,generate,imageVerify",
        metavar="KINDS",
    )
    statuses: tuple[str, ...] = listed(
        "--allowedResults",
        "Results that are reported: pass, fail, error, warn, skip.",
        default="pass,fail,error,warn,skip",
        metavar="RESULTS",
    )
    most: int = number(
        "--maxAdmissionReports", "Reports on requests that there may be; beyond that none are made.", default=10_000
    )
    audit_workers: int = number("--maxAuditWorkers", "Requests that Audit policies are asked about at once.", default=8)
    audit_capacity: int = number("--maxAuditCapacity", "Requests that may wait for them.", default=1000)
    account: str = text(
        "--reportsServiceAccountName",
        "User that reports are made with; whether it may read what policies are about stands in their status.",
        metavar="USER",
    )
    background_account: str = text(
        "--backgroundServiceAccountName",
        "User that changes existing objects; policies that need more than it may do are refused.",
        metavar="USER",
    )


@dataclass(frozen=True, slots=True)
class QuestionFlags:
    """What rules may ask of the world."""

    most_bytes: int = number(
        "--maxAPICallResponseLength", "Bytes of a service's answer; 0 for no limit.", default=10_000_000
    )
    timeout: float = seconds("--apiCallTimeout", "How long a service may take; 0 for no limit.", default="30s")
    blocklist: tuple[str, ...] = listed(
        "--httpBlocklist",
        "Hosts, addresses and ranges that rules may not call, with commas between them.",
        default=_BLOCKED,
        env="FLAG_HTTP_BLOCKLIST",
    )
    allowlist: tuple[str, ...] = listed(
        "--httpAllowlist", "URL prefixes that rules may call, and no others.", env="FLAG_HTTP_ALLOWLIST"
    )
    allows_http_in_namespaces: bool = switch(
        "--allowHTTPInNamespacedPolicies",
        "Let expressions of namespaced policies call services.",
        env="FLAG_ENABLE_HTTP_IN_NAMESPACED_POLICIES",
        is_toggle=True,
    )
    most_entries: int = number("--maxGlobalContextEntries", "Entries of the global context; 0 for no limit.", default=0)
    caches_config_maps: bool = switch(
        "--enableConfigMapCaching",
        "Keep ConfigMaps with the label cache.kyverno.io/enabled in memory.",
        default=True,
    )


@dataclass(frozen=True, slots=True)
class CertificateFlags:
    """The certificates of the webhook."""

    ca_secret: str = text(
        "--caSecretName", "Secret of the certificate authority; named after the service by default.", metavar="NAME"
    )
    tls_secret: str = text(
        "--tlsSecretName", "Secret of the server's certificate; named after the service by default.", metavar="NAME"
    )
    renew_before: float = seconds("--renewBefore", "How long before its end a certificate is renewed.", default="360h")
    algorithm: str = text("--tlsKeyAlgorithm", "ECDSA, RSA or Ed25519.", default="ECDSA", metavar="NAME")
    others_manage: bool = switch("--disableCertManagerController", "Leave the certificates to somebody else.")


@dataclass(frozen=True, slots=True)
class EventFlags:
    """Events about policies and requests."""

    most_queued: int = number(
        "--maxQueuedEvents", "How many events may wait to be written; 0 for no events.", default=1000
    )
    omitted: tuple[str, ...] = listed(
        "--omitEvents", "Reasons of events that are left out, with commas.", metavar="REASONS"
    )


@dataclass(frozen=True, slots=True)
class LogFlags:
    """What the log tells and how."""

    form: str = text(
        "--loggingFormat", "Form of log lines: text or json.", default="text", metavar="FORM", choices=("text", "json")
    )
    time: str = text(
        "--loggingtsFormat",
        "How moments are written: default, iso8601, rfc3339, millis, nanos, epoch or rfc3339nano.",
        default="default",
        metavar="FORM",
        choices=("default", "iso8601", "rfc3339", "millis", "nanos", "epoch", "rfc3339nano"),
    )
    has_no_color: bool = switch("--disableLogColor", "No colours; there are none but on a terminal, without NO_COLOR.")
    verbosity: int = number("--v", "Verbosity: 0 for warnings, 2 for denials, 4 for every request.", default=2)
    dumps_payload: bool = switch(
        "--dumpPayload", "Log whole requests and answers; what stands in Secrets is taken out."
    )
    dumps_patches: bool = switch(
        "--dumpPatches",
        "Log the patches of answers; what is written into Secrets is taken out.",
        env="FLAG_DUMP_PATCHES",
        is_toggle=True,
    )


@dataclass(frozen=True, slots=True)
class MetricFlags:
    """Where metrics are."""

    host: str = text("--metricsHost", "Address of the metrics.", metavar="ADDRESS")
    port: int = number("--metricsPort", "Port of the metrics.", default=8000)
    disabled: bool = switch("--disableMetrics", "Serve no metrics.")
    otel: str = text(
        "--otelConfig",
        "How metrics are told: prometheus, or grpc to a collector (needs the extra `otel`).",
        default="prometheus",
        metavar="FORM",
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
        "With --otelConfig=grpc: Secret with the authority of the collector (ca.pem); without it there is no TLS.",
        metavar="NAME",
    )
    exemplars: str = text(
        "--exemplarFilter",
        "Which measurements become examples: always-off, trace-based or always-on.",
        default="trace-based",
        metavar="NAME",
        has_effect=False,
    )
    ca_secret: str = text(
        "--metricsCASecretName", "Secret of the certificate authority of the metrics.", metavar="NAME"
    )
    tls_secret: str = text(
        "--metricsTLSSecretName",
        "Secret of the certificate of the metrics; with it they are served by HTTPS.",
        metavar="NAME",
    )
    algorithm: str = text("--metricsKeyAlgorithm", "ECDSA, RSA or Ed25519.", default="ECDSA", metavar="NAME")
    renew_before: float = seconds(
        "--metricsRenewBefore", "How long before its end a certificate of the metrics is renewed.", default="360h"
    )
    server: str = text(
        "--metricsServerIP", "Address that the certificate of the metrics is for as well.", metavar="ADDRESS"
    )


@dataclass(frozen=True, slots=True)
class TracingFlags:
    """Whether and where traces go."""

    enabled: bool = switch(
        "--enableTracing", "Send a trace of every request to a collector of OpenTelemetry (needs the extra `otel`)."
    )
    address: str = text("--tracingAddress", "Host of the collector; this machine by default.", metavar="HOST")
    port: int = number("--tracingPort", "Port of the collector.", default=4317)
    secret: str = text(
        "--tracingCreds",
        "Secret with the authority of the collector (ca.pem); without it there is no TLS.",
        metavar="NAME",
    )


@dataclass(frozen=True, slots=True)
class ProfilingFlags:
    """Whether and where profiles are made."""

    enabled: bool = switch("--profile", "Serve profiles over HTTP, for those who look for what costs time or memory.")
    port: int = number("--profilePort", "Port of the profiles.", default=6060)
    address: str = text("--profileAddress", "Address of the profiles; this machine only by default.", metavar="ADDRESS")


@dataclass(frozen=True, slots=True)
class ImageFlags:
    """How images would be verified: that is not there yet, and a rule that asks for it is an error."""

    insecure: bool = switch("--allowInsecureRegistry", "Ask registries without TLS.", has_effect=False)
    pull_secrets: str = text(
        "--imagePullSecrets", "Secrets with the access to registries.", metavar="NAMES", has_effect=False
    )
    helpers: str = text(
        "--registryCredentialHelpers", "Providers of credentials for registries.", metavar="NAMES", has_effect=False
    )
    caches: bool = switch("--imageVerifyCacheEnabled", "Remember verified images.", default=True, has_effect=False)
    most_cached: int = number("--imageVerifyCacheMaxSize", "How many.", default=1000, has_effect=False)
    cached_for: float = seconds("--imageVerifyCacheTTLDuration", "For how long.", default="60m", has_effect=False)
    has_tuf: bool = switch("--enableTuf", "Trust a sigstore of one's own.", has_effect=False)
    tuf_mirror: str = text("--tufMirror", "Its address.", metavar="URL", has_effect=False)
    tuf_root: str = text("--tufRoot", "Where its root is.", metavar="FILE", has_effect=False)
    tuf_root_raw: str = text("--tufRootRaw", "Its root itself.", metavar="JSON", has_effect=False)
    logs_cosign: bool = switch("--enableCosignLogging", "Log what the library for signatures says.", has_effect=False)


@dataclass(frozen=True, slots=True)
class IgnoredFlags:
    """Flags that have nothing to act on here."""

    loads_late: bool = switch(
        "--enableDeferredLoading",
        "Load what rules ask for when it is used, which is always done.",
        default=True,
        env="FLAG_ENABLE_DEFERRED_LOADING",
        is_toggle=True,
        has_effect=False,
    )

    memory_limit: bool = switch(
        "--autoMemLimitEnabled", "Derive Go's memory limit from the container's.", default=True, has_effect=False
    )
    memory_ratio: float = number("--autoMemLimitRatio", "The part of it.", default=0.9, has_effect=False)
    runtime_metrics: str = text(
        "--controllerRuntimeMetricsAddress", "Address of metrics of a Go library.", metavar="ADDRESS", has_effect=False
    )
    definitions: bool = switch(
        "--crdWatcher", "Watch definitions of custom resources, which is always done.", has_effect=False
    )
    registration_timeout: float = seconds(
        "--webhookRegistrationTimeout", "How long webhooks may take to be registered.", default="120s", has_effect=False
    )
    cleanup_host: str = text(
        "--cleanupServerHost", "Address of the cleanup controller.", metavar="ADDRESS", has_effect=False
    )
    cleanup_port: int = number("--cleanupServerPort", "Port of the cleanup controller.", default=9443, has_effect=False)


@dataclass(frozen=True, slots=True)
class AdmissionFlags:
    """All flags of the admission controller, in the groups of its help.

    >>> AdmissionFlags().server.port
    9443
    """

    cluster: ClusterFlags = group_of("Cluster", ClusterFlags)
    server: ServerFlags = group_of("Server", ServerFlags)
    webhooks: WebhookFlags = group_of("Webhooks", WebhookFlags)
    generation: GenerationFlags = group_of("Admission policies", GenerationFlags)
    exceptions: ExceptionFlags = group_of("Exceptions", ExceptionFlags)
    reports: ReportFlags = group_of("Reports and accounts", ReportFlags)
    questions: QuestionFlags = group_of("What rules ask", QuestionFlags)
    certificates: CertificateFlags = group_of("Certificates", CertificateFlags)
    events: EventFlags = group_of("Events", EventFlags)
    logs: LogFlags = group_of("Logs", LogFlags)
    metrics: MetricFlags = group_of("Metrics", MetricFlags)
    tracing: TracingFlags = group_of("Tracing", TracingFlags)
    profiling: ProfilingFlags = group_of("Profiling", ProfilingFlags)
    images: ImageFlags = group_of("Images", ImageFlags)
    ignored: IgnoredFlags = group_of("Without effect", IgnoredFlags)
