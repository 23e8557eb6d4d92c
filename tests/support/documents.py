"""Small policies and resources that the tests of the command line share."""

LATEST = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: no-latest
  annotations:
    policies.kyverno.io/severity: high
    policies.kyverno.io/category: Images
    pod-policies.kyverno.io/autogen-controllers: none
spec:
  rules:
  - name: tag
    match:
      any:
      - resources:
          kinds: [Pod]
    validate:
      failureAction: Enforce
      message: no latest
      pattern:
        spec:
          containers:
          - image: "!*:latest"
"""

AUDITED = LATEST.replace("Enforce", "Audit").replace("no-latest", "audited")

LABEL = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: add-label
  annotations:
    pod-policies.kyverno.io/autogen-controllers: none
spec:
  rules:
  - name: team
    match:
      any:
      - resources:
          kinds: [Pod]
    context:
    - name: dictionary
      configMap: {name: dictionary, namespace: default}
    mutate:
      patchStrategicMerge:
        metadata:
          labels:
            team: "{{ dictionary.data.team }}"
"""

GENERATE = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: quota
spec:
  rules:
  - name: default-quota
    match:
      any:
      - resources:
          kinds: [Namespace]
    generate:
      apiVersion: v1
      kind: ConfigMap
      name: settings
      namespace: "{{ request.object.metadata.name }}"
      data:
        data:
          a: b
"""

NAMESPACED = LATEST.replace("kind: ClusterPolicy", "kind: Policy").replace(
    "name: no-latest", "name: no-latest\n  namespace: shop"
)

CLEANUP = """\
apiVersion: kyverno.io/v2
kind: ClusterCleanupPolicy
metadata:
  name: old-pods
spec:
  schedule: "0 0 * * *"
  match:
    any:
    - resources:
        kinds: [Pod]
        names: [good]
"""

EXCEPTION = """\
apiVersion: kyverno.io/v2
kind: PolicyException
metadata:
  name: allow-bad
  namespace: shop
spec:
  exceptions:
  - policyName: no-latest
    ruleNames: [tag]
  match:
    any:
    - resources:
        kinds: [Pod]
        names: [bad]
"""

CEL = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata:
  name: later
spec:
  validations:
  - expression: "true"
"""

INVALID = LATEST.replace("name: no-latest", "name: broken").replace(
    'pattern:\n        spec:\n          containers:\n          - image: "!*:latest"',
    'pattern: {spec: {a: "x"}}\n      deny: {}',
)


def pod(name: str, image: str = "nginx:1.2", namespace: str = "shop") -> str:
    """A Pod manifest."""
    return f"""\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: {namespace}
spec:
  containers:
  - name: main
    image: {image}
"""


GOOD = pod("good")
BAD = pod("bad", "nginx:latest")
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n"
