"""Tests of pyverno.cluster."""
