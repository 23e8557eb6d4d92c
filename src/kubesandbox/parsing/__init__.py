"""Requests of clients as values: URLs with their parameters, options of reads and writes, and bodies.

It needs no server; `http` serves the requests that are read here.
"""
