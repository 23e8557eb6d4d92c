"""The admission webhook: AdmissionReview in, AdmissionReview out, over HTTPS.

It only translates: every verdict comes from the engine. It must never write to the cluster while a request is open, and
never treat an error as "no policy matched".
"""
