"""What every controller process runs on: tasks, processes and peers, events, outbox, health, metrics port."""

from __future__ import annotations
