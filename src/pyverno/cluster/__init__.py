"""Client of a Kubernetes cluster: access, requests, watches kept as caches, leases, and the `ClusterHost`.

All I/O with an API server is here. This package must never judge, and never send a credential anywhere but to the API
server that it belongs to.
"""
