/** Reads from OpenTelemetry's variables where traces go. Pure. */
import type { traceVariables } from "../config/trace_settings.ts";

export interface OtlpSettings {
  readonly url: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Attributes of the process. */
  readonly resource: ReadonlyMap<string, string>;
  /** Maximum time of a request, in milliseconds. */
  readonly timeoutMs: number;
}

export type TraceVariables = Readonly<Record<string, string | undefined>>;

const timeoutMsMax = 2000;

/** Returns a sentence without values, which may be secrets, if the variables cannot be used. */
export function readOtlpSettings(env: TraceVariables, own: ReadonlyMap<string, string>): OtlpSettings | string {
  const forTraces = (name: string) =>
    env[`OTEL_EXPORTER_OTLP_TRACES_${name}`] || env[`OTEL_EXPORTER_OTLP_${name}`] || undefined;
  if (forTraces("PROTOCOL") === "grpc") {
    return "baton sends traces as JSON over HTTP, and OTEL_EXPORTER_OTLP_PROTOCOL is grpc; expected http/json";
  }
  const url = urlOf(env);
  if (url === null) return "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL that begins with http:// or https://";
  const headers = parsePairs(forTraces("HEADERS"));
  if (headers === null || headers.some(([name, value]) => !isHeader(name, value))) {
    return "OTEL_EXPORTER_OTLP_HEADERS is not a list of NAME=VALUE with commas between them";
  }
  const attributes = parsePairs(known(env, "OTEL_RESOURCE_ATTRIBUTES"));
  if (attributes === null) return "OTEL_RESOURCE_ATTRIBUTES is not a list of NAME=VALUE with commas between them";
  const service = known(env, "OTEL_SERVICE_NAME");
  const resource = new Map([...own, ...attributes]);
  if (service) resource.set("service.name", service);
  const timeoutMs = Number(forTraces("TIMEOUT") ?? timeoutMsMax);
  return { url, headers, resource, timeoutMs: timeoutMs > 0 ? Math.min(timeoutMs, timeoutMsMax) : timeoutMsMax };
}

const known = (env: TraceVariables, name: keyof typeof traceVariables): string | undefined => env[name];

function urlOf(env: TraceVariables): string | null {
  const whole = known(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  const url = URL.parse(whole || known(env, "OTEL_EXPORTER_OTLP_ENDPOINT") || "http://localhost:4318");
  if (url === null || !/^https?:$/.test(url.protocol)) return null;
  if (!whole) url.pathname = `${url.pathname.replace(/\/$/, "")}/v1/traces`;
  return url.href;
}

/** Parses `name=value,…` with escapes as in a URL; null for another text. */
function parsePairs(text: string | undefined): (readonly [string, string])[] | null {
  const pairs = (text ?? "").split(",").map((part) => part.trim()).filter(Boolean).map((part) => {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(part) ?? [];
    if (name === undefined || value === undefined) return null;
    return [name.trim(), unescaped(value.trim())] as const;
  });
  return pairs.some((pair) => pair === null) ? null : pairs.filter((pair) => pair !== null);
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function isHeader(name: string, value: string): boolean {
  return /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}
