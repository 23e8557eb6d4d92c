"""The tables of the store.

A *series* is what many results have in common (cluster, source, category, policy, rule, severity, status, namespace,
kind) with the number of open results: facets and counts read series and never touch results. Texts that repeat
(messages, properties) and objects are kept once.
"""

from __future__ import annotations

from typing import Final

from pyverno.ui.store.opening import prepare

__all__ = ["SERIES_COLUMNS", "VERSION", "create_tables"]

VERSION: Final = 1
"""Goes up with every change of the tables."""

SERIES_COLUMNS: Final = ("cluster", "source", "category", "policy", "rule", "severity", "status", "namespace", "kind")

_TABLES: Final = """
CREATE TABLE series (
  id INTEGER PRIMARY KEY,
  cluster TEXT NOT NULL, source TEXT NOT NULL, category TEXT NOT NULL, policy TEXT NOT NULL, rule TEXT NOT NULL,
  severity TEXT NOT NULL, status TEXT NOT NULL, namespace TEXT NOT NULL, kind TEXT NOT NULL,
  rank INTEGER NOT NULL,          -- order of statuses, then severities: 0 is the worst
  open INTEGER NOT NULL DEFAULT 0,
  UNIQUE (cluster, source, category, policy, rule, severity, status, namespace, kind)
);
CREATE INDEX series_order ON series (rank, policy, rule, namespace, kind, id);
CREATE TABLE objects (
  id INTEGER PRIMARY KEY,
  cluster TEXT NOT NULL, api_version TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  fail INTEGER NOT NULL DEFAULT 0, error INTEGER NOT NULL DEFAULT 0, warn INTEGER NOT NULL DEFAULT 0,
  skip INTEGER NOT NULL DEFAULT 0, pass INTEGER NOT NULL DEFAULT 0,  -- open results by status
  UNIQUE (cluster, kind, namespace, name, api_version)
);
CREATE INDEX objects_order ON objects (fail DESC, error DESC, warn DESC, namespace, kind, name, id);
CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE results (
  id INTEGER PRIMARY KEY,
  identity BLOB NOT NULL UNIQUE,  -- hash of everything that stays the same while a result lasts
  series INTEGER NOT NULL, object INTEGER NOT NULL, message INTEGER NOT NULL, properties INTEGER NOT NULL,
  report INTEGER NOT NULL,
  first_seen INTEGER NOT NULL,    -- seconds since 1970, as all times
  changed INTEGER NOT NULL,       -- when status or text last changed
  resolved INTEGER                -- NULL while the result is in a report
);
CREATE INDEX results_series ON results (series, resolved, object, id);
CREATE INDEX results_object ON results (object, resolved);
CREATE INDEX results_message ON results (message);
CREATE INDEX results_properties ON results (properties);
CREATE INDEX results_changed ON results (changed, id);
CREATE INDEX results_first_seen ON results (first_seen, id);
CREATE INDEX results_resolved ON results (resolved) WHERE resolved IS NOT NULL;
CREATE INDEX results_report ON results (report, resolved);
CREATE TABLE reports (
  id INTEGER PRIMARY KEY,
  cluster TEXT NOT NULL, name TEXT NOT NULL, digest BLOB NOT NULL, labels TEXT NOT NULL,
  UNIQUE (cluster, name)
);
CREATE TABLE changes (           -- transitions of results: the history of single results
  id INTEGER PRIMARY KEY, at INTEGER NOT NULL, result INTEGER NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL
);
CREATE INDEX changes_result ON changes (result, at);
CREATE INDEX changes_at ON changes (at);
CREATE TABLE days (              -- counts at the end of each day: the history of everything
  day INTEGER NOT NULL, cluster TEXT NOT NULL, namespace TEXT NOT NULL, policy TEXT NOT NULL, source TEXT NOT NULL,
  severity TEXT NOT NULL, status TEXT NOT NULL, open INTEGER NOT NULL,
  PRIMARY KEY (day, cluster, namespace, policy, source, severity, status)
) WITHOUT ROWID;
"""


def create_tables(location: str) -> None:
    """Make the tables where there are none; raises UsageError for a file or database that holds anything else."""
    prepare(location, _TABLES, VERSION)
