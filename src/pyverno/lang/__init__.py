"""Expression languages: JMESPath (Kyverno's dialect), CEL, patterns and templates.

They know values and expressions. They must never know policies, rules, files or the network: what an expression
asks of the world goes through the `Runtime` that its caller hands in.
"""
