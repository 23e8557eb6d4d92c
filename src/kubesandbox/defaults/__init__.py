"""Defaults of built-in kinds that the API server fills in and no schema holds.

One function per type, as in Kubernetes (`SetDefaults_*`), in one file per family; `walk` finds the types inside an
object. Defaults are idempotent. This package must never fill in values that depend on other objects or on the object's
previous state (see `preparation`).
"""
