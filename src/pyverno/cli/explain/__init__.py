"""`pyverno explain`: the reasons of each rule's result for a resource, and the smallest change that would turn it."""
