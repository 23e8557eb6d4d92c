"""Policy documents exactly as their authors wrote them: typed, immutable, located in their files.

`kinds` is the one registry of kinds and versions, `decode` turns documents into values, and every other module is a
noun of a policy. Nothing here is compiled, expanded or evaluated, and nothing here changes a document.
"""
