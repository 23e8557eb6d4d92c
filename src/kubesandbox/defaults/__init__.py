"""What the API server fills in where an object of a built-in kind has no value, for defaults that no schema holds.

One function per type, as in Kubernetes (`SetDefaults_*`), in one file per family; `walk` finds the types inside an
object. Defaults are idempotent. This package must never fill in what depends on other objects or on an older version of
the object (see `preparation`).
"""
