"""The shape of objects: built-in kinds by Kubernetes' own definitions, custom ones by their CRDs.

`ObjectSchemas` (in `schemas`) reads bodies (`decode`), fills in defaults (`default`), finds what is wrong (`validate`)
and sets what the API server sets (`normalize`). This package must never store an object nor ask an admission plugin.
"""
