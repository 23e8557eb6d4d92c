"""Kubernetes' RBAC over the roles and bindings in the store, and the roles that every cluster has.

It checks accesses and grants nothing by itself. It must never establish an identity (see `authentication`).
"""
