"""Tests of pyverno.lang.jmespath."""
