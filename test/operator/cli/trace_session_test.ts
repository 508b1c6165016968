/** Traces from the compiled binary, on the keeper and on ZooKeeper: a collector checks and keeps what it is sent. */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { BackendSession } from "../../support/backend_session.ts";
import { backends, describeBackend } from "../../support/backends.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { TraceCollector } from "../../support/trace_collector.ts";

setDefaultTimeout(90_000);

const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
const around = `00-${trace}-00f067aa0ba902b7-01`;

for (const kind of backends) {
  describeBackend(kind, () => {
    let session: BackendSession;
    let collector: TraceCollector;
    let env: Record<string, string>;
    beforeAll(async () => void (session = await BackendSession.start(kind)), 40_000);
    afterAll(() => session?.[Symbol.asyncDispose]());
    beforeEach(async () => {
      await collector?.[Symbol.asyncDispose]();
      collector = await new TraceCollector().up();
      env = { OTEL_TRACES_EXPORTER: "otlp", OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
    });
    afterAll(() => collector[Symbol.asyncDispose]());

    test("lock: call, wait and hold are one tree below TRACEPARENT; the command gets the id of the hold, and no credentials", async () => {
      const script =
        `"$baton" lock db -- sh -c 'echo "$TRACEPARENT $TRACESTATE \${OTEL_EXPORTER_OTLP_HEADERS-none}"; exit 3'`;
      const { code, stdout, stderr } = await session.run(script, {
        ...env,
        ...{ TRACEPARENT: around, TRACESTATE: "vendor=x", OTEL_EXPORTER_OTLP_HEADERS: "api-key=a%20b" },
        ...{ OTEL_SERVICE_NAME: "night", OTEL_RESOURCE_ATTRIBUTES: "team=db,service.name=other" },
      });
      expect({ code, stderr }).toEqual({ code: 3, stderr: "" });
      expect(collector.problems).toEqual([]);
      expect(collector.received.map(({ url, headers }) => [url, headers["api-key"]])).toEqual([["/v1/traces", "a b"]]);
      const [call, wait, hold] = ["lock", "lock.wait", "lock.hold"].map((name) => collector.named(name)[0]);
      expect(collector.spans).toHaveLength(3);
      expect(stdout).toBe(`00-${trace}-${hold?.spanId}-01 vendor=x none\n`);
      expect(call).toMatchObject({ traceId: trace, parentSpanId: "00f067aa0ba902b7", error: "exit code 3" });
      expect(call?.resource).toMatchObject({ "service.name": "night", team: "db" });
      expect(wait).toMatchObject({ traceId: trace, parentSpanId: call?.spanId, error: null, state: "vendor=x" });
      expect(hold).toMatchObject({ traceId: trace, parentSpanId: call?.spanId, error: "exit code 3" });
      expect(hold?.attributes).toMatchObject({ "baton.name": "db", "baton.exit_code": "3" });
      expect(hold?.attributes["baton.token"]).toMatch(/^\d+$/);
      expect(wait?.endNs).toBe(hold?.startNs);
    });

    test("an invalid TRACEPARENT begins a new trace; one that is not sampled sends nothing and is passed on", async () => {
      const script = `"$baton" lock db -- sh -c 'echo "$TRACEPARENT|$TRACESTATE"'`;
      const invalid = await session.run(script, { ...env, TRACEPARENT: "00-0-0-01", TRACESTATE: "vendor=x" });
      const [call] = collector.named("lock");
      expect(call?.parentSpanId).toBeNull();
      expect(invalid.stdout).toMatch(new RegExp(`^00-${call?.traceId}-[0-9a-f]{16}-01\\|\n$`));
      const off = around.replace(/01$/, "00");
      const unsampled = await session.run(script, { ...env, TRACEPARENT: off, TRACESTATE: "vendor=x" });
      expect(unsampled.stdout).toBe(`${off}|vendor=x\n`);
      expect(collector.received).toHaveLength(1);
    });

    test("off by default; trace.otlp of a file turns it on, and a collector that does not respond changes no exit code", async () => {
      expect((await session.run('"$baton" lock db true', { ...env, OTEL_TRACES_EXPORTER: "" })).code).toBe(0);
      expect(collector.received).toHaveLength(0);
      writeFileSync(join(session.folder, "on.toml"), "[trace]\notlp = true\n");
      collector.answer = () => {}; // never
      const silent = await session.run('"$baton" lock --config "$dir/on.toml" db -- sh -c "exit 4"', {
        ...env,
        ...{ OTEL_TRACES_EXPORTER: "", OTEL_EXPORTER_OTLP_TIMEOUT: "100" },
      });
      expect(silent.code).toBe(4);
      expect(silent.stderr).toContain("traces were not sent");
      expect(collector.received).toHaveLength(1);
      const wrong = await session.run('"$baton" lock db true', { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: "nowhere:1" });
      expect(wrong).toMatchObject({ code: 0 });
      expect(wrong.stderr).toContain("OTEL_EXPORTER_OTLP_ENDPOINT is not a URL");
    });

    test("a busy lock is a wait that failed; a tick has its time", async () => {
      const tick = `"$baton" lock nightly --tick '* * * * *' --catch-up 1h --timezone UTC`;
      const busy = await session.run(
        `"$baton" lock db -- sh -c 'env -u BATON_LOCK_COOKIE -u TRACEPARENT "$baton" lock -n db true'`,
        env,
      );
      expect(busy.code).toBe(75);
      expect(collector.spans.filter(({ error }) => error?.includes("is busy")).map(({ name }) => name).sort())
        .toEqual(["lock", "lock.wait"]);
      expect((await session.run(`${tick} -- true`, env)).code).toBe(0);
      const [run] = collector.named("tick");
      expect(run).toMatchObject({ error: null, attributes: { "baton.name": "nightly", "baton.attempt": "1" } });
      expect(run?.attributes["baton.tick"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:00Z$/);
    });

    test("elect, pool and barrier: terms, items and members have spans", async () => {
      const leading = await session.run('"$baton" elect boss -- sh -c "echo $TRACEPARENT"', env);
      expect(leading.code).toBe(0);
      expect(collector.spans.map(({ name }) => name).sort()).toEqual(["elect", "elect.hold", "elect.wait"]);
      const pool = await session.run(
        `printf 'a\\nb\\n' | "$baton" pool work -j 2 --items - -- sh -c 'echo "$TRACEPARENT" >"$dir/item-$0"; test "$0" != b' {}`,
        env,
      );
      expect(pool.code).not.toBe(0);
      const [call] = collector.named("pool");
      const items = collector.named("pool.item");
      expect(items.map(({ attributes, error }) => [attributes["baton.item"], error]).sort()).toEqual([
        ["a", null],
        ["b", "exit code 1"],
      ]);
      for (const { attributes, spanId, traceId, parentSpanId } of items) {
        expect(session.read(`item-${String(attributes["baton.item"])}`)).toBe(`00-${traceId}-${spanId}-01\n`);
        expect([traceId, parentSpanId]).toEqual([call?.traceId ?? "", call?.spanId ?? ""]);
      }
      expect((await session.run('"$baton" barrier meet -N 1 -- true', env)).code).toBe(0);
      expect(collector.named("barrier.hold")).toHaveLength(1);
      expect(collector.problems).toEqual([]);
    });

    test("hold: wait and hold are below TRACEPARENT, which the script keeps; a busy lock is a wait that failed", async () => {
      const around = {
        ...env,
        TRACEPARENT: `00-${trace}-00f067aa0ba902b7-01`,
        OTEL_EXPORTER_OTLP_HEADERS: "api-key=a",
      };
      const script = 'held=$("$baton" hold held --pid $$) || exit; eval "$held"; ' +
        'echo "$TRACEPARENT $OTEL_EXPORTER_OTLP_HEADERS $BATON_FENCING_TOKEN"; "$baton" release held';
      const { code, stdout } = await session.run(script, around);
      await eventually(() => collector.named("hold").length === 1, { what: "the spans of the hold" });
      const [call, wait, hold] = ["hold", "lock.wait", "lock.hold"].map((name) => collector.named(name)[0]);
      expect({ code, stdout }).toEqual({
        code: 0,
        stdout: `${around.TRACEPARENT} api-key=a ${String(hold?.attributes["baton.token"])}\n`,
      });
      expect(collector.spans).toHaveLength(3);
      expect(call).toMatchObject({ traceId: trace, parentSpanId: "00f067aa0ba902b7", error: null });
      for (const part of [wait, hold]) expect(part).toMatchObject({ parentSpanId: call?.spanId, error: null });
      expect(hold?.attributes).toMatchObject({ "baton.name": "held", "baton.exit_code": "0" });
      expect(wait?.endNs).toBe(hold?.startNs);
      const busy = await session.run(
        `"$baton" lock held -- env -u BATON_LOCK_COOKIE -u TRACEPARENT sh -c '"$baton" hold -n held --pid $$'`,
        env,
      );
      expect(busy.code).toBe(75);
      const failed = () => collector.spans.filter(({ error }) => error?.includes("is busy")).map(({ name }) => name);
      await eventually(() => failed().length === 2, { what: "the spans of the busy lock" });
      expect(failed().sort()).toEqual(["hold", "lock.wait"]);
      expect(collector.problems).toEqual([]);
    });

    test("cron: each tick has a trace of its own, and its job the id of the hold", async () => {
      writeFileSync(
        join(session.folder, "jobs.cron"),
        `CRON_TZ=UTC\n#baton name=job-${kind.kind} catch-up=1h retry=1\n* * * * * echo "$TRACEPARENT" >${
          session.path("ticked")
        }\n`,
      );
      // The service tries a tick again that failed before: no minute passes.
      await session.run(
        `"$baton" lock job-${kind.kind} --tick '* * * * *' --timezone UTC --catch-up 1h --retry 1 -- false`,
      );
      const service = session.start('exec "$baton" cron "$dir/jobs.cron" --splay 0', env);
      const traceparent = (await session.said("ticked")).trim();
      await eventually(() => collector.named("tick").length > 0, { withinMs: 20_000 });
      const [hold] = collector.named("lock.hold");
      expect(traceparent).toBe(`00-${hold?.traceId}-${hold?.spanId}-01`);
      service.child.kill("SIGTERM");
      expect((await service.ended).code).toBe(0);
      expect(collector.problems).toEqual([]);
    });
  });
}

test("retry-processor: the tries of a message are in one trace, also over HTTP below the client's span", async () => {
  await using session = new BatonSession();
  await using collector = await new TraceCollector().up();
  await using target = await new TraceCollector().up();
  const env = { OTEL_TRACES_EXPORTER: "otlp", OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const run = (options: string) =>
    session.run(`"$baton" retry-processor run --store "$dir/q" --until-empty --interval 10ms ${options}`, env);
  await session.run(`echo hello | "$baton" retry-processor submit --store "$dir/q"`);
  await run(`--exec 'echo "$TRACEPARENT" >>"$dir/tries"; test "$BATON_MESSAGE_TRY" = 2'`);
  const tries = collector.named("retry.attempt");
  expect(tries.map(({ attributes, error }) => [attributes["baton.attempt"], error !== null])).toEqual([
    ["1", true],
    ["2", false],
  ]);
  expect(session.read("tries")).toBe(tries.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01\n`).join(""));
  expect(new Set(tries.map(({ traceId }) => traceId)).size).toBe(1);
  const own = tries[0]?.traceId ?? "";
  await session.run(`echo hello | "$baton" retry-processor submit --store "$dir/q"`, {
    ...{ TRACEPARENT: around, TRACESTATE: "vendor=x" }, // stored also where no spans are sent
  });
  await run(`--exec 'echo "$TRACEPARENT $TRACESTATE" >>"$dir/traced"; test "$BATON_MESSAGE_TRY" = 2'`);
  const traced = collector.named("retry.attempt").filter(({ traceId }) => traceId !== own);
  expect(traced).toHaveLength(2);
  for (const span of traced) expect(span).toMatchObject({ traceId: trace, parentSpanId: "00f067aa0ba902b7" });
  expect(session.read("traced")).toBe(traced.map(({ spanId }) => `00-${trace}-${spanId}-01 vendor=x\n`).join(""));
  target.answer = (_, response, count) => response.writeHead(count === 1 ? 503 : 200).end();
  const call = `echo hi | "$baton" retry-processor call --store "$dir/q" --interval 10ms --url ${target.url}/x`;
  await session.run(`${call} -H 'traceparent: ${around}'`);
  await run("");
  const last = collector.named("retry.attempt").at(-1);
  expect(last).toMatchObject({ traceId: trace, parentSpanId: "00f067aa0ba902b7", error: null });
  expect(target.received.map(({ headers }) => headers["traceparent"])).toEqual([
    around,
    `00-${trace}-${last?.spanId}-01`,
  ]);
  expect(collector.problems).toEqual([]);
});

test("retry-processor call: the first try has a span in the caller's trace, and the later tries of a request are below it", async () => {
  await using session = new BatonSession();
  await using collector = await new TraceCollector().up();
  await using target = await new TraceCollector().up();
  const env = { OTEL_TRACES_EXPORTER: "otlp", OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const call = `"$baton" retry-processor call --store "$dir/q" --interval 10ms`;
  const ran = await session.run(`${call} --no-stdin -- sh -c 'echo "$TRACEPARENT"; exit 65'`, {
    ...env,
    TRACEPARENT: around,
  });
  const [first] = collector.named("retry.attempt");
  expect(first).toMatchObject({ traceId: trace, parentSpanId: "00f067aa0ba902b7" });
  expect(first?.error).toContain("65");
  expect(first?.attributes).toMatchObject({ "baton.attempt": "1", "baton.exit_code": "65" });
  expect(ran.stdout).toBe(`00-${trace}-${first?.spanId}-01\n`);
  await session.run(`${call} --no-stdin -- sh -c 'test -n "$BATON_MESSAGE_TRY"'`, { ...env, TRACEPARENT: around });
  await session.run(`"$baton" retry-processor run --store "$dir/q" --until-empty`, env);
  const [, tried, again] = collector.named("retry.attempt");
  expect(again).toMatchObject({ traceId: trace, parentSpanId: tried?.spanId, error: null });
  target.answer = (_, response, count) => response.writeHead(count === 1 ? 503 : 200).end();
  await session.run(`echo hi | ${call} --url ${target.url}/x`, env);
  await session.run(`"$baton" retry-processor run --store "$dir/q" --until-empty`, env);
  const [, , , request, later] = collector.named("retry.attempt");
  expect(later).toMatchObject({ traceId: request?.traceId, parentSpanId: request?.spanId, error: null });
  expect(target.received.map(({ headers }) => headers["traceparent"])).toEqual(
    [request, later].map((span) => `00-${span?.traceId}-${span?.spanId}-01`),
  );
  expect(collector.problems).toEqual([]);
});

test("retry-processor serve: the first try of a request has a span below the client's, and so have the later ones", async () => {
  await using session = new BatonSession();
  await using collector = await new TraceCollector().up();
  await using target = await new TraceCollector().up();
  target.answer = (_, response, count) => response.writeHead(count === 1 ? 503 : 200).end();
  const serve = session.start(
    `exec "$baton" retry-processor serve --store "$dir/q" --listen 127.0.0.1:0 --url ${target.url} --interval 10ms`,
    { OTEL_TRACES_EXPORTER: "otlp", OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
  );
  const place = () => / at (127\.0\.0\.1:\d+)/.exec(serve.stderr())?.[1];
  const at = await eventually(() => place() ?? null, { what: "the address of the service" });
  const response = await fetch(`http://${at}/x`, { method: "POST", body: "hi", headers: { traceparent: around } });
  expect(response.status).toBe(503);
  await eventually(() => collector.named("retry.attempt").length === 2, { what: "spans of both tries" });
  const both = collector.named("retry.attempt");
  for (const span of both) expect(span).toMatchObject({ traceId: trace, parentSpanId: "00f067aa0ba902b7" });
  expect(both.map(({ attributes, error }) => [attributes["baton.attempt"], error !== null])).toEqual([
    ["1", true],
    ["2", false],
  ]);
  expect(target.received.map(({ headers }) => headers["traceparent"])).toEqual(
    both.map(({ spanId }) => `00-${trace}-${spanId}-01`),
  );
  expect(collector.problems).toEqual([]);
});

test("subscribe --exec: each message has a span, in a trace of its own or in that of the call, and its command the id", async () => {
  await using session = new BatonSession();
  await using collector = await new TraceCollector().up();
  const env = { OTEL_TRACES_EXPORTER: "otlp", OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const serve = session.start('exec "$baton" pubsub serve');
  const subscribe = `"$baton" subscribe news --until-empty`;
  await session.run(`${subscribe} --wait 0 >&2; for text in a b; do echo $text | "$baton" publish news -; done`);
  const own = await session.run(`${subscribe} --exec 'echo "$TRACEPARENT \${OTEL_EXPORTER_OTLP_HEADERS-none}"'`, {
    ...{ ...env, OTEL_EXPORTER_OTLP_HEADERS: "api-key=a" },
  });
  const spans = collector.named("subscribe.message");
  expect(spans.map(({ parentSpanId, error, attributes }) => [parentSpanId, error, attributes["baton.name"]])).toEqual([
    [null, null, "news"],
    [null, null, "news"],
  ]);
  expect(own.stdout).toBe(spans.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01 none\n`).join(""));
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(2);
  await session.run('echo c | "$baton" publish news -');
  const failed = await session.run(`${subscribe} --exec 'exit 3'`, { ...env, TRACEPARENT: around });
  expect(failed.code).toBe(3);
  expect(collector.named("subscribe.message").at(-1)).toMatchObject({
    ...{ traceId: trace, parentSpanId: "00f067aa0ba902b7", error: "exit code 3" },
    attributes: { "baton.exit_code": "3" },
  });
  expect(collector.problems).toEqual([]);
  serve.child.kill("SIGTERM");
  await serve.ended;
});
