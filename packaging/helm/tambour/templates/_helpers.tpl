{{- define "tambour.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tambour.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tambour.labels" -}}
{{ include "tambour.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "tambour.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* Template of the pods, the same with a volume and with PostgreSQL. */ -}}
{{- define "tambour.pod" -}}
metadata:
  labels:
    {{- include "tambour.selector" . | nindent 4 }}
  annotations:
    checksum/config: {{ .Values.config | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: tambour
      image: {{ include "tambour.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
        {{- if .Values.config }}
        - --config=/config/tambour.toml
        {{- end }}
      ports:
        - {name: http, containerPort: 8787}
      env:
        - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: TAMBOUR_LISTEN, value: "0.0.0.0:8787"}
        - {name: TAMBOUR_DATA, value: /data}
        - name: TAMBOUR_API_KEY
          valueFrom:
            secretKeyRef:
              name: {{ required "apiKey.secret names the secret with the admin key" .Values.apiKey.secret | quote }}
              key: {{ .Values.apiKey.key | quote }}
        {{- if .Values.postgres.url }}
        - {name: TAMBOUR_DATABASE, value: {{ .Values.postgres.url | quote }}}
        - {name: TAMBOUR_CLUSTER_ADDRESS, value: "http://$(POD_IP):8787"}
        {{- if .Values.postgres.secret }}
        - {name: TAMBOUR_CLUSTER_PASSWORD_FILE, value: {{ printf "/secrets/%s" .Values.postgres.key | quote }}}
        {{- end }}
        {{- end }}
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .Values.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      # A start migrates tables first, which may take a while.
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        failureThreshold: 150
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        timeoutSeconds: 5
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: tmp, mountPath: /tmp}
        {{- if .Values.config }}
        - {name: config, mountPath: /config, readOnly: true}
        {{- end }}
        {{- if .Values.postgres.secret }}
        - {name: database, mountPath: /secrets, readOnly: true}
        {{- end }}
  volumes:
    - {name: tmp, emptyDir: {}}
    {{- if .Values.postgres.url }}
    - {name: data, emptyDir: {}}
    {{- else }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ .Values.persistence.existingClaim | default (include "tambour.name" .) | quote }}
    {{- end }}
    {{- if .Values.config }}
    - {name: config, configMap: {name: {{ include "tambour.name" . }}}}
    {{- end }}
    {{- if .Values.postgres.secret }}
    - {name: database, secret: {secretName: {{ .Values.postgres.secret | quote }}}}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
