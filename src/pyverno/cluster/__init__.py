"""A Kubernetes cluster from outside: who we are there, requests, watches kept as caches, leases, and a Host made of it.

All I/O with an API server is here. This package must never judge, and never send a credential anywhere but to the API
server that it belongs to.
"""
