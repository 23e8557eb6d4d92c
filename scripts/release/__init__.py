"""All files of a release, made from a clone: packages, charts, manifests, taps, checksums and provenance.

Nothing is published here: the folder that is left is what people upload.
"""
