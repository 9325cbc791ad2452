{{- define "dq.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* Of the release; names of its parts are this and a word of at most seven letters. */}}
{{- define "dq.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "dq.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "dq.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* (dict "root" $ "part" "server"): what a part's pods are found by. A later version may not change these. */}}
{{- define "dq.selector" -}}
app.kubernetes.io/name: {{ include "dq.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "dq.labels" -}}
{{ include "dq.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{/* (dict "root" $ "part" "server"): the image of a part, by the values of that name. */}}
{{- define "dq.image" -}}
{{- $image := (index .root.Values .part).image -}}
{{- $missing := printf "%s.image.repository: build an image by DQ's containers/, push it to your registry, and name it here" .part -}}
{{- printf "%s:%s" (required $missing $image.repository) ($image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}

{{- define "dq.secret" -}}
{{- .Values.auth.existingSecret | default (include "dq.fullname" .) -}}
{{- end -}}

{{/* What no container of the chart may do. */}}
{{- define "dq.confined" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: { drop: [ALL] }
{{- end -}}

{{/* (dict "root" $ "part" "server"): where pods of a part may run, and what else their values say. */}}
{{- define "dq.placement" -}}
{{- $part := index .root.Values .part -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
