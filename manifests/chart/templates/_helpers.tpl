{{- define "task-operator.labels" -}}
app.kubernetes.io/name: task-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "task-operator.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "task-operator.isSelfSigned" -}}
{{- if and .Values.webhooks.enabled (eq .Values.webhooks.certificate "self-signed") }}yes{{ end -}}
{{- end }}

{{- /* A generated object, in this namespace and with the labels of the release. */ -}}
{{- define "task-operator.object" -}}
{{- $object := .object -}}
{{- $labels := include "task-operator.labels" .root | fromYaml -}}
{{- $_ := set $object.metadata "labels" (merge $labels ($object.metadata.labels | default dict)) -}}
{{- if $object.metadata.namespace -}}
{{- if eq $object.metadata.namespace "task-system" -}}
{{- $_ := set $object.metadata "namespace" .root.Release.Namespace -}}
{{- end -}}
{{- end -}}
{{- range $subject := ($object.subjects | default list) -}}
{{- $_ := set $subject "namespace" $.root.Release.Namespace -}}
{{- end -}}
{{- toYaml $object -}}
{{- end }}

{{- /* Leads the webhooks of a generated object to the Service of the release, with its certificate. */ -}}
{{- define "task-operator.inject" -}}
{{- if eq .root.Values.webhooks.certificate "cert-manager" -}}
{{- $from := printf "%s/task-operator-cert" .root.Release.Namespace -}}
{{- $_ := set .object.metadata "annotations" (dict "cert-manager.io/inject-ca-from" $from) -}}
{{- else -}}
{{- $_ := unset .object.metadata "annotations" -}}
{{- end -}}
{{- end }}
