"""Notifications: changes of results, sent to chats, mail servers, logs, alerts, buckets and issue trackers.

A change is queued in the transaction that records it, so that neither a restart nor a target that is down loses it.
This room must never write a secret, or an address that holds one, into an error, a log or an answer.
"""

from __future__ import annotations
