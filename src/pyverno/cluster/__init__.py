"""Client of a Kubernetes cluster: access, requests, watches kept as caches, leases, and the `ClusterHost`.

This package does all I/O with an API server. It must never evaluate a policy, and must send a credential only to the
API server that it belongs to.
"""
