{{- define "pyverno.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{- define "pyverno.image" -}}
{{- $registry := .Values.image.registry | default .Values.global.image.registry -}}
{{- if $registry }}{{ $registry }}/{{ end }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion -}}
{{- end -}}

{{/* Facts of the controllers, made from `pyverno install`. */}}
{{- define "pyverno.facts" -}}
{{- .Files.Get "files/controllers.json" | replace "@NAMESPACE@" (include "pyverno.namespace" .) -}}
{{- end -}}

{{/* Parts that are installed, as a JSON list; the order gives each its ports when they share a network. */}}
{{- define "pyverno.parts" -}}
{{- $parts := list "admission" -}}
{{- range list "background" "reports" "cleanup" -}}
{{- if (index $.Values (printf "%sController" .)).enabled }}{{ $parts = append $parts . }}{{ end -}}
{{- end -}}
{{- toJson $parts -}}
{{- end -}}

{{/* Account of a part: dict root, part. */}}
{{- define "pyverno.account" -}}
kyverno-{{ ternary "admission" .part (eq .root.Values.mode "single") }}-controller
{{- end -}}

{{/* Names of the pull secrets as a JSON list; values give each as a name or as {name: ...}. */}}
{{- define "pyverno.pullSecrets" -}}
{{- $names := list -}}
{{- range .Values.existingImagePullSecrets -}}
{{- if kindIs "string" . }}{{ $names = append $names . }}{{ else }}{{ $names = append $names .name }}{{ end -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* The pull secrets as a pod refers to them; empty without any. */}}
{{- define "pyverno.pullSecretReferences" -}}
{{- range include "pyverno.pullSecrets" . | fromJsonArray }}
- name: {{ . }}
{{- end -}}
{{- end -}}

{{/* Labels of an object: dict root, labels. */}}
{{- define "pyverno.labels" -}}
{{- $labels := merge (dict) .labels .root.Values.customLabels -}}
{{- $_ := set $labels "app.kubernetes.io/instance" .root.Release.Name -}}
{{- $_ := set $labels "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version) -}}
{{- toYaml $labels -}}
{{- end -}}

{{/* The value at a dotted path as JSON, "null" without one: dict values, path. */}}
{{- define "pyverno.at" -}}
{{- $found := .values -}}
{{- range splitList "." .path -}}
{{- if kindIs "map" $found }}{{ $found = get $found . }}{{ if kindIs "string" $found }}{{ if eq $found "" }}{{ $found = "" }}{{ end }}{{ end }}{{ else }}{{ $found = "" }}{{ end -}}
{{- end -}}
{{- if or (kindIs "invalid" $found) (and (kindIs "string" $found) (eq $found "")) }}null{{ else }}{{ toJson $found }}{{ end -}}
{{- end -}}

{{/* Refuses values of Kyverno's chart that have no equal meaning, with what to do instead. */}}
{{- define "pyverno.validate" -}}
{{- range $path, $hint := .Files.Get "files/hints.json" | fromJson -}}
{{- $found := include "pyverno.at" (dict "values" $.Values "path" $path) -}}
{{- if not (has $found (list "null" "{}" "[]" "false")) -}}
{{- fail (printf "value %s: %s" $path $hint) -}}
{{- end -}}
{{- end -}}
{{- range list "admission" "background" "reports" "cleanup" -}}
{{- $replicas := (index $.Values (printf "%sController" .)).replicas -}}
{{- if and (not (kindIs "invalid" $replicas)) (lt (int $replicas) 1) -}}
{{- fail (printf "value %sController.replicas: at least 1; to stop a controller use `kubectl scale`" .) -}}
{{- end -}}
{{- end -}}
{{- if has (include "pyverno.namespace" .) (list "kube-system" "kube-public" "kube-node-lease") -}}
{{- fail (printf "namespace %s: the controllers need one of their own" (include "pyverno.namespace" .)) -}}
{{- end -}}
{{- end -}}

{{/* The peers of a NetworkPolicy that are API servers, as a JSON list; empty when none is known. */}}
{{- define "pyverno.apiServers" -}}
{{- $policy := .Values.admissionController.networkPolicy -}}
{{- $peers := $policy.ingressFrom | default list -}}
{{- range $policy.apiServerCIDRs }}{{ $peers = append $peers (dict "ipBlock" (dict "cidr" .)) }}{{ end -}}
{{- if $policy.lookup -}}
{{- $slice := lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "kubernetes" -}}
{{- range $endpoint := $slice.endpoints | default list -}}
{{- range $endpoint.addresses -}}
{{- $cidr := printf "%s/%s" . (ternary "128" "32" (contains ":" .)) -}}
{{- $peers = append $peers (dict "ipBlock" (dict "cidr" $cidr)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $peers | uniq | toJson -}}
{{- end -}}
