"""Tests of the background controller."""
