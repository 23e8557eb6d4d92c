"""Kubernetes as values: resources, kinds, quantities, durations, selectors, documents, patches.

Everything here is a value or a pure function over plain JSON values. It must never know a policy, a file system or a
network, and never log.
"""
