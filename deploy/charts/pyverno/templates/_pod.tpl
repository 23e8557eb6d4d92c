{{/* Port of a part: dict root, part, name. Parts that share a network have different ports. */}}
{{- define "pyverno.port" -}}
{{- $facts := include "pyverno.facts" .root | fromJson -}}
{{- $values := index .root.Values (printf "%sController" .part) -}}
{{- $offset := 0 -}}
{{- if or (eq .root.Values.mode "single") $values.hostNetwork -}}
{{- range $index, $each := include "pyverno.parts" .root | fromJsonArray -}}{{ if eq $each $.part }}{{ $offset = $index }}{{ end }}{{- end -}}
{{- end -}}
{{- add (index (index $facts.controllers .part).ports .name | int) (ternary 0 $offset (eq .name "https")) -}}
{{- end -}}

{{/* Name of the metrics port of a part. */}}
{{- define "pyverno.metricsPort" -}}
{{- if or (eq .part "admission") (eq .root.Values.mode "split") }}metrics{{ else }}{{ printf "metrics-%s" .part | trunc 15 }}{{ end -}}
{{- end -}}

{{/* Arguments of a part as a JSON list: dict root, part, fact, values. */}}
{{- define "pyverno.arguments" -}}
{{- $root := .root -}}
{{- $arguments := list "controller" .part -}}
{{- range $path, $flag := .fact.features -}}
{{- $json := include "pyverno.at" (dict "values" $root.Values.features "path" $path) -}}
{{- if ne $json "null" -}}
{{- $value := printf "[%s]" $json | fromJsonArray | first -}}
{{- $text := ternary (join "," (ternary $value list (kindIs "slice" $value))) ($value | toString) (kindIs "slice" $value) -}}
{{- $arguments = append $arguments (printf "%s=%s" $flag $text) -}}
{{- end -}}
{{- end -}}
{{- $metrics := include "pyverno.port" (dict "root" $root "part" .part "name" "metrics") -}}
{{- if ne $metrics "8000" }}{{ $arguments = append $arguments (printf "--metricsPort=%s" $metrics) }}{{ end -}}
{{- if hasKey .fact.ports "health" -}}
{{- $health := include "pyverno.port" (dict "root" $root "part" .part "name" "health") -}}
{{- if ne $health "9080" }}{{ $arguments = append $arguments (printf "--healthPort=%s" $health) }}{{ end -}}
{{- end -}}
{{- with $root.Values.global.resyncPeriod }}{{ $arguments = append $arguments (printf "--resyncPeriod=%s" .) }}{{ end -}}
{{- $secrets := include "pyverno.pullSecrets" $root | fromJsonArray -}}
{{- if and $secrets (ne .part "cleanup") }}{{ $arguments = append $arguments (printf "--imagePullSecrets=%s" (join "," $secrets)) }}{{ end -}}
{{- if eq .part "admission" -}}
{{- range list "background" "cleanup" "reports" -}}
{{- $account := include "pyverno.account" (dict "root" $root "part" .) -}}
{{- $arguments = append $arguments (printf "--%sServiceAccountName=system:serviceaccount:%s:%s" . (include "pyverno.namespace" $root) $account) -}}
{{- end -}}
{{- range $key := list "tlsKeyAlgorithm" "caSecretName" "tlsSecretName" "webhookProcesses" -}}
{{- with index $.values $key }}{{ $arguments = append $arguments (printf "--%s=%v" $key .) }}{{ end -}}
{{- end -}}
{{- if $root.Values.certManager.enabled }}{{ $arguments = append $arguments "--disableCertManagerController=true" }}{{ end -}}
{{- end -}}
{{- $container := .values.container | default dict -}}
{{- range $key, $value := merge (dict) ($container.extraArgs | default dict) .values.extraArgs -}}
{{- if not (kindIs "invalid" $value) }}{{ $arguments = append $arguments (printf "--%s=%v" $key $value) }}{{ end -}}
{{- end -}}
{{- toJson $arguments -}}
{{- end -}}

{{/* Probe on a number, because several parts may share a pod: dict root, part, probe. */}}
{{- define "pyverno.probe" -}}
{{- $name := .probe.httpGet.port -}}
{{- $probe := deepCopy .probe -}}
{{- $_ := set $probe.httpGet "port" (include "pyverno.port" (dict "root" .root "part" .part "name" $name) | int) -}}
{{- toYaml $probe -}}
{{- end -}}

{{/* Container of a part: dict root, part, fact, values, account. */}}
{{- define "pyverno.container" -}}
{{- $container := .values.container | default .values -}}
- name: {{ ternary "kyverno" .part (eq .part "admission") }}
  image: {{ include "pyverno.image" .root | quote }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args: {{- include "pyverno.arguments" . | fromJsonArray | toYaml | nindent 4 }}
  env:
    {{- range .fact.container.env }}
    {{- $env := deepCopy . }}
    {{- if has .name (list "KYVERNO_SERVICEACCOUNT_NAME" "KYVERNO_DEPLOYMENT") }}{{ $_ := set $env "value" $.account }}{{ end }}
    {{- list $env | toYaml | nindent 4 }}
    {{- end }}
    {{- with .root.Values.global.caCertificates.data }}
    - name: SSL_CERT_FILE
      value: /etc/pyverno/ca-certificates.crt
    {{- end }}
    {{- with concat .root.Values.global.extraEnvVars $container.extraEnvVars }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    {{- if eq .part "admission" }}
    - name: https
      containerPort: {{ include "pyverno.port" (dict "root" .root "part" .part "name" "https") }}
      protocol: TCP
    {{- end }}
    - name: {{ include "pyverno.metricsPort" . }}
      containerPort: {{ include "pyverno.port" (dict "root" .root "part" .part "name" "metrics") }}
      protocol: TCP
  {{- range $name, $probe := .fact.probes }}
  {{ $name }}: {{- include "pyverno.probe" (dict "root" $.root "part" $.part "probe" $probe) | nindent 4 }}
  {{- end }}
  {{- with $container.lifecycle }}
  lifecycle: {{- toYaml . | nindent 4 }}
  {{- end }}
  resources: {{- $container.resources | default .fact.container.resources | toYaml | nindent 4 }}
  volumeMounts:
    {{- toYaml .fact.container.volumeMounts | nindent 4 }}
    {{- if .root.Values.global.caCertificates.data }}
    - name: ca-certificates
      mountPath: /etc/pyverno
      readOnly: true
    {{- end }}
  securityContext:
    {{- $security := deepCopy .fact.container.securityContext }}
    {{- if eq .root.Values.platform "openshift" }}{{ $security = omit $security "runAsUser" "runAsGroup" }}{{ end }}
    {{- toYaml $security | nindent 4 }}
{{- end -}}
