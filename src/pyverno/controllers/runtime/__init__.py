"""The runtime of every controller process: reconcile loop, tasks, processes and peers, events, outbox, ports."""

from __future__ import annotations
