"""Tests of pyverno.kube."""
