"""Values of the chart that become flags, and values of Kyverno's chart that have no equal meaning."""

from __future__ import annotations

from typing import Final

__all__ = ["FEATURES", "HINTS"]

FEATURES: Final = {
    "admissionReports.enabled": "--admissionReports",
    "aggregateReports.enabled": "--aggregateReports",
    "policyReports.enabled": "--policyReports",
    "validatingAdmissionPolicyReports.enabled": "--validatingAdmissionPolicyReports",
    "mutatingAdmissionPolicyReports.enabled": "--mutatingAdmissionPolicyReports",
    "autoUpdateWebhooks.enabled": "--autoUpdateWebhooks",
    "excludeBootstrapResources.enabled": "--excludeBootstrapResources",
    "backgroundScan.enabled": "--backgroundScan",
    "backgroundScan.backgroundScanWorkers": "--backgroundScanWorkers",
    "backgroundScan.backgroundScanInterval": "--backgroundScanInterval",
    "backgroundScan.skipResourceFilters": "--skipResourceFilters",
    "configMapCaching.enabled": "--enableConfigMapCaching",
    "dumpPayload.enabled": "--dumpPayload",
    "dumpPatches.enabled": "--dumpPatches",
    "forceFailurePolicyIgnore.enabled": "--forceFailurePolicyIgnore",
    "generateValidatingAdmissionPolicy.enabled": "--generateValidatingAdmissionPolicy",
    "generateMutatingAdmissionPolicy.enabled": "--generateMutatingAdmissionPolicy",
    "globalContext.maxApiCallResponseLength": "--maxAPICallResponseLength",
    "logging.format": "--loggingFormat",
    "logging.verbosity": "--v",
    "omitEvents.eventTypes": "--omitEvents",
    "policyExceptions.enabled": "--enablePolicyException",
    "policyExceptions.namespace": "--exceptionNamespace",
    "protectManagedResources.enabled": "--protectManagedResources",
    "registryClient.allowInsecure": "--allowInsecureRegistry",
    "registryClient.credentialHelpers": "--registryCredentialHelpers",
    "ttlController.reconciliationInterval": "--ttlReconciliationInterval",
}
"""Paths below `features`, in Kyverno's names, with the flag of the controllers that have it."""

_ONE_IMAGE: Final = "all controllers run from one image: set image.registry, image.repository and image.tag"

HINTS: Final = {
    "fullnameOverride": "names of objects are fixed (kyverno-...), because leases and roles name them",
    "nameOverride": "names of objects are fixed (kyverno-...), because leases and roles name them",
    "upgrade": "there is no version 2 to upgrade from: remove the value",
    "imagePullSecrets": "this chart creates no Secrets: list existing ones in existingImagePullSecrets",
    "admissionController.container.image": _ONE_IMAGE,
    "admissionController.initContainer": "there is no init container: remove the value",
    "admissionController.createSelfSignedCert": "the controller makes its certificates; or set certManager.enabled",
    "admissionController.apiPriorityAndFairness": "create FlowSchemas beside the chart",
    "admissionController.autoscaling": "create a HorizontalPodAutoscaler beside the chart",
    "backgroundController.image": _ONE_IMAGE,
    "reportsController.image": _ONE_IMAGE,
    "reportsController.apiPriorityAndFairness": "create FlowSchemas beside the chart",
    "cleanupController.image": _ONE_IMAGE,
    "cleanupController.webhookServer": "the admission controller serves the webhooks of cleanup policies",
    "webhooksCleanup.image": _ONE_IMAGE,
    "webhooksCleanup.enable": "no chart has this key: set webhooksCleanup.enabled",
    "networkPolicy.enabled": "set networkPolicy.enabled of each controller, such as admissionController",
    "crds.migration": "run `pyverno migrate` when a definition drops a stored version; the chart has no such hook",
    "crds.reportsServer": "a reports server is not supported: remove the value",
    "reportsServer": "a reports server is not supported: remove the value",
    "openreports.enabled": "set reportsController.extraArgs.openreportsEnabled to true",
    "openreports.installCrds": "the definitions are part of crds: remove the value",
    "features.tuf": "TUF is not supported: give the trusted root with --trustedRoot in extraArgs",
    "features.deferredLoading": "context is always loaded when it is used: remove the value",
    "features.controllerRuntimeMetrics": "this controller has no such metrics: remove the value",
    "features.reporting": "set admissionController.extraArgs.enableReporting, for example to validate,imageVerify",
    "global.crdWatcher": "definitions are always watched: remove the value",
    "test": "the chart has no test pods: `helm install --wait` waits until admission works",
}
"""Keys of Kyverno's chart that are refused, with what to do instead."""
