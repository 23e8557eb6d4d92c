"""Generators: policies, resources and expressions that depend on nothing but a seed."""
