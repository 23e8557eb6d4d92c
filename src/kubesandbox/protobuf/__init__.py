"""Kubernetes' protobuf: what kubectl (since 1.32) and Helm send instead of JSON, read into the JSON of the same object.

Only requests are read; answers are always JSON, which every client takes. Nothing that was sent is dropped silently: a
field number that is not in the table is an error. No module here may guess at a message.
"""

from kubesandbox.protobuf.decode import MEDIA_TYPE, decode

__all__ = ["MEDIA_TYPE", "decode"]
