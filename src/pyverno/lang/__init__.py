"""Expression languages: JMESPath (Kyverno's dialect), CEL, patterns and templates.

They know values and expressions. They must never know policies, rules, files or the network: clock,
randomness and name look-ups come from the `Runtime` that the caller passes in.
"""
