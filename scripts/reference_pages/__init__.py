"""The pages of docs/reference, each made from the code that it describes.

A page is a function without arguments that returns Markdown. A page must never state what the code does not: where an
example is shown, its result is computed while the page is made.
"""
