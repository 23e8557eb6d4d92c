"""Admission of authorized requests: plugins, policies and webhooks, in Kubernetes' order.

One file per plugin; `chain` puts them in order. They may change the object, or refuse the request with the API server's
texts. Nothing here may write to the store or know a kind of Kyverno's.
"""
