{{/* What dq-board's user may do at the server: to look, and what each verb that is allowed needs. */}}
{{- define "dq.boardRights" -}}
{{- $verbs := dict
  "add" "+dq.add"
  "kick" "+dq.kick +dq.kickjob"
  "del" "+dq.del"
  "release" "+dq.release"
  "pause" "+dq.pause +dq.resume"
  "purge" "+dq.purge"
  "schedule" "+dq.add"
  "alter" "+dq.alter" -}}
~* +hello +scan +info +dq.info +dq.get +dq.peek +dq.scan +dq.forecast +dq.groups +dq.deps +dq.next
{{- if .Values.board.writable -}}
{{- range .Values.board.allow | default (keys $verbs | sortAlpha) }} {{ index $verbs . }}{{ end -}}
{{- end -}}
{{- end -}}
