"""One test per invariant and advisory of the security register: bad input, and a harmless twin that must still pass.

`README.md` lists which row is tested where, and which rows wait for a part of the product that does not exist yet.
"""
