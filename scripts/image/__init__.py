"""The container image, built without a container engine from Debian packages and the locked wheels.

Two layers (Debian's interpreter and libraries; the application), no shell, no package manager, everything owned by
root and read-only for the user 65532. The same inputs give the same digest.
"""
