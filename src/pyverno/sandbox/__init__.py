"""A Kubernetes API server in one process, for real kubectl, Helm and controllers, without a cluster.

It knows Kubernetes, not Kyverno: policies of Kyverno's kinds reach it as admission webhooks only, like a cluster's.
What is Kubernetes' own (matchConditions, ValidatingAdmissionPolicy, MutatingAdmissionPolicy, Pod Security admission) it
judges in process with the one engine. It must never be used to keep anything that matters: one process, no quorum.
"""
