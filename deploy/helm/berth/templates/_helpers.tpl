{{- define "berth.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "berth.selector" -}}
app.kubernetes.io/name: berth-server
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "berth.labels" -}}
{{ include "berth.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "berth.publicUrl" -}}
{{- if .Values.publicUrl }}
{{- .Values.publicUrl }}
{{- else if and .Values.ingress.enabled .Values.ingress.tlsSecretName }}
{{- printf "https://%s" .Values.ingress.host }}
{{- end }}
{{- end }}

{{- define "berth.copiesSeccompProfile" -}}
{{- if eq .Values.machines.seccompProfile "berth" }}true{{ end }}
{{- end }}

{{- /* Another content has another name, so that machines of before keep theirs. */}}
{{- define "berth.machineSeccompProfile" -}}
{{- if eq .Values.machines.seccompProfile "berth" }}
{{- printf "berth/machine-%s.json" (.Files.Get "files/seccomp-machine.json" | sha256sum | trunc 12) }}
{{- else }}
{{- .Values.machines.seccompProfile }}
{{- end }}
{{- end }}
