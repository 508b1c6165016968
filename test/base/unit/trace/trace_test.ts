import { expect, test } from "bun:test";
import { wantsTraces } from "../../../../src/coordination/settings/coordination_settings.ts";
import { readOtlpSettings } from "../../../../src/base/trace/otlp_settings.ts";
import { formatTraceparent, newSpanContext, parseTraceparent } from "../../../../src/base/trace/trace_context.ts";
import { TraceExporter } from "../../../../src/base/trace/trace_exporter.ts";
import { type Clock, systemClock } from "../../../../src/base/support/clock.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { TraceCollector } from "../../../support/trace_collector.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";

test("traceparent: version 00 is exact, later ones may have more; zeros, upper case and version ff are invalid", () => {
  const parsed = { traceId, spanId, isSampled: true, state: "" };
  expect(parseTraceparent(`00-${traceId}-${spanId}-01`)).toEqual(parsed);
  expect(parseTraceparent(`00-${traceId}-${spanId}-02`)).toEqual({ ...parsed, isSampled: false });
  expect(parseTraceparent(`cc-${traceId}-${spanId}-01-what`)).toEqual(parsed);
  const invalid = [
    undefined,
    "",
    "00",
    `00-${traceId}-${spanId}`,
    `00-${traceId}-${spanId}-01-x`,
    `ff-${traceId}-${spanId}-01`,
    `00-${"0".repeat(32)}-${spanId}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    `00-${traceId}-${spanId}-01x`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `0-${traceId}-${spanId}-01`,
  ];
  for (const text of invalid) expect(parseTraceparent(text)).toBeNull();
});

test("a new span keeps trace, flag and state of its parent, and is written as version 00", () => {
  const parent = parseTraceparent(`00-${traceId}-${spanId}-00`, "a=b");
  const span = newSpanContext(parent);
  expect(span).toMatchObject({ traceId, isSampled: false, state: "a=b" });
  expect(span.spanId).toMatch(/^[0-9a-f]{16}$/);
  expect(span.spanId).not.toBe(spanId);
  expect(formatTraceparent(span)).toBe(`00-${traceId}-${span.spanId}-00`);
  expect(newSpanContext(null)).toMatchObject({ isSampled: true, state: "" });
});

test("OTEL_TRACES_EXPORTER decides over trace.otlp, and OTEL_SDK_DISABLED over both", () => {
  const wanted = (exporter: string | undefined, traceOtlp: boolean, off?: string) =>
    wantsTraces({ OTEL_TRACES_EXPORTER: exporter, OTEL_SDK_DISABLED: off }, { traceOtlp });
  expect([wanted(undefined, false), wanted("", true), wanted("none", true)]).toEqual([false, true, false]);
  expect([wanted("console,otlp", false), wanted("otlp", true, "true"), wanted("zipkin", false)])
    .toEqual([true, false, false]);
});

test("the endpoint for traces is used as it is, the one for all gets v1/traces; headers are unescaped", () => {
  const own = new Map([["service.name", "baton"]]);
  const of = (env: Record<string, string>) => readOtlpSettings(env, own);
  expect(of({})).toMatchObject({ url: "http://localhost:4318/v1/traces", headers: [], timeoutMs: 2000, resource: own });
  const base = "https://otel.example.org/in/";
  expect(of({ OTEL_EXPORTER_OTLP_ENDPOINT: base })).toMatchObject({ url: `${base}v1/traces` });
  expect(of({ OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${base}x` }))
    .toMatchObject({ url: `${base}x` });
  expect(of({ OTEL_EXPORTER_OTLP_HEADERS: "a=1", OTEL_EXPORTER_OTLP_TRACES_HEADERS: "b = c%2Cd , e=f=g" }))
    .toMatchObject({ headers: [["b", "c,d"], ["e", "f=g"]] });
  expect(of({ OTEL_RESOURCE_ATTRIBUTES: "a=b,service.name=x", OTEL_SERVICE_NAME: "y" }))
    .toMatchObject({ resource: new Map([["service.name", "y"], ["a", "b"]]) });
  expect(of({ OTEL_EXPORTER_OTLP_TIMEOUT: "10000" })).toMatchObject({ timeoutMs: 2000 });
});

test("variables that cannot be used are named, without their values", () => {
  const problem = (env: Record<string, string>) => readOtlpSettings(env, new Map());
  expect(problem({ OTEL_EXPORTER_OTLP_ENDPOINT: "ftp://secret/" })).toMatch(/^OTEL_EXPORTER_OTLP_ENDPOINT [^:]*URL/);
  expect(problem({ OTEL_EXPORTER_OTLP_HEADERS: "secret" })).toMatch(/^OTEL_EXPORTER_OTLP_HEADERS (?!.*secret)/);
  expect(problem({ OTEL_EXPORTER_OTLP_HEADERS: "a=b%0d%0ac" })).toMatch(/^OTEL_EXPORTER_OTLP_HEADERS /);
  expect(problem({ OTEL_RESOURCE_ATTRIBUTES: "secret" })).toMatch(/^OTEL_RESOURCE_ATTRIBUTES (?!.*secret)/);
  expect(problem({ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" })).toContain("grpc");
});

function exporterTo(collector: TraceCollector, { clock = systemClock() }: { readonly clock?: Clock } = {}) {
  const problems: string[] = [];
  const settings = readOtlpSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }, new Map());
  if (typeof settings === "string") throw new Error(settings);
  const options = {
    settings,
    version: "1",
    clock,
    env: {},
    onProblem: (what: string) => void problems.push(what),
  };
  return { problems, exporter: new TraceExporter(options) };
}

const span = {
  name: "x",
  context: newSpanContext(null),
  parentId: null,
  startMs: 1.7e12,
  endMs: 1.7e12,
  attributes: {},
  error: null,
};

test("spans beyond the limit of the queue are dropped and counted, and a request has at most 512", async () => {
  await using collector = await new TraceCollector().up();
  const { exporter, problems } = exporterTo(collector);
  exporter.add(Array.from({ length: 4200 }, () => span));
  await exporter.close();
  expect(collector.problems).toEqual([]);
  expect([collector.spans.length, collector.received.length]).toEqual([4096, 8]);
  expect(problems).toEqual(["104 spans were not sent: the collector is too slow"]);
});

test("a refusal is reported once while it lasts; no batch is sent again, and no redirection is followed", async () => {
  await using collector = await new TraceCollector().up();
  const { exporter, problems } = exporterTo(collector);
  collector.answer = (_, response) => response.writeHead(307, { location: `${collector.url}/elsewhere` }).end();
  for (let round = 0; round < 3; round++) {
    exporter.add([span]);
    await exporter.close();
  }
  collector.answer = (_, response) => response.end('{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}');
  expect([collector.received.length, problems]).toEqual([3, [
    `traces were not sent: ${collector.url}/v1/traces responded with status 307`,
  ]]);
  const second = exporterTo(collector);
  second.exporter.add([span]);
  await second.exporter.close();
  expect(second.problems).toEqual(["traces were not sent: the collector refused 1 span: too old"]);
});

test("a collector that does not respond is reported once after the wait, without credentials", async () => {
  await using collector = await new TraceCollector().up();
  collector.answer = () => {}; // never
  const clock = new FakeClock();
  const { exporter, problems } = exporterTo(collector, { clock });
  exporter.add([span, span]);
  const closed = exporter.close();
  clock.advance(2000);
  await closed;
  await exporter.close();
  expect(problems).toEqual([`traces were not sent: ${collector.url}/v1/traces: no response within 2 s`]);
});
