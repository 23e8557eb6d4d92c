"""Permissions that namespaced policies act with: what a policy does, and whether its author may do it."""
