"""Tests of pyverno.webhook."""
