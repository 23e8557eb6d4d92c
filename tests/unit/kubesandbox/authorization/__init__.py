"""Tests of kubesandbox.authorization."""
