"""Tests of pyverno.lang.jmespath.functions."""
