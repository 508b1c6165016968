/** The environment variables that configure traces, besides the setting `trace.otlp`. OpenTelemetry defines them. */

export const traceVariables = {
  OTEL_TRACES_EXPORTER: "otlp: send traces, also without trace.otlp; any other value: send none",
  OTEL_SDK_DISABLED: "true: send no traces",
  OTEL_EXPORTER_OTLP_ENDPOINT: "base URL of the collector, to which v1/traces is added; default http://localhost:4318",
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "whole URL of the collector for traces",
  OTEL_EXPORTER_OTLP_HEADERS: "headers of the requests, as in api-key=SECRET,other=VALUE; commands do not inherit it",
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: "the same for traces only",
  OTEL_EXPORTER_OTLP_TIMEOUT:
    "maximum time of a request in milliseconds, at most 2000; _TRACES_TIMEOUT for traces only",
  OTEL_EXPORTER_OTLP_PROTOCOL:
    "grpc: no traces are sent, with a message; else JSON over HTTP; _TRACES_PROTOCOL for traces only",
  OTEL_SERVICE_NAME: "service.name of the spans; default baton",
  OTEL_RESOURCE_ATTRIBUTES: "further attributes of all spans, as in deployment.environment=test,team=db",
  TRACEPARENT: "the span around this call, as W3C Trace Context has it; an invalid one is ignored",
  TRACESTATE: "passed on together with a valid TRACEPARENT",
} as const;

/** Variables with credentials. If baton uses them, a command inherits them only with --pass-auth. */
export const traceSecrets = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"] as const;
