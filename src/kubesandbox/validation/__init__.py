"""What the API server refuses about objects of built-in kinds, in its words.

One module per family; `judge` finds the checks of a kind and adds what its schema requires. Objects are judged after
decoding and defaulting. This package must never change an object nor look at another one.
"""
