"""The admission webhook: AdmissionReview in, AdmissionReview out, over HTTPS.

It translates and nothing else: every verdict is the engine's. It must never write to the cluster while it answers, and
never let an error look like "no policy matched".
"""
