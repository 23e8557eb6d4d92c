"""The images that the corpus names, in an in-process registry: signed again, with keys and authorities of ours."""
