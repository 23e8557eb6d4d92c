"""Validation of objects of built-in kinds, with the API server's texts.

One module per family; `judge` finds the checks of a kind and adds what its schema requires. Objects are judged after
decoding and defaulting. This package must never change an object nor look at another one.
"""
