"""The background controller: UpdateRequests as durable work, and the policies that generate or change other objects.

`requests.py` works on UpdateRequests, `handlers.py` is the table of what each type of request means. The rules
themselves are evaluated by the engine, and their effects are performed by `controllers.applier`.
"""
