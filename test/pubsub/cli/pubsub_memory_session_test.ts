/** What clients can make a proxy and a server hold that send messages and never end them, with the compiled binary. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { connect as dial, type Socket } from "node:net";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { HalfMessage } from "../../support/half_message.ts";
import { ProxyClient } from "../../support/proxy_client.ts";

setDefaultTimeout(120_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

const mib = 2 ** 20;
/** The memory for incomplete messages, and as much again for what the runtime frees later. */
const boundMib = 2 * 256;

interface Role {
  readonly running: Running;
  readonly endpoint: string;
  metric(name: string): Promise<number>;
}

async function begun(words: string, says: RegExp): Promise<Role> {
  const running = session.start(`exec "$baton" pubsub ${words} --metrics-listen 127.0.0.1:0`);
  const [endpoint, page] = await eventually(() => {
    const [, at] = says.exec(running.stderr()) ?? [];
    const [, page] = /\/metrics are at (\S+)/.exec(running.stderr()) ?? [];
    return at !== undefined && page !== undefined ? [at, page] as const : undefined;
  }, { what: `baton pubsub ${words} to serve`, withinMs: 15_000 });
  return {
    running,
    endpoint,
    async metric(name) {
      const text = await (await fetch(`http://${page}/metrics`)).text();
      return Number(new RegExp(`^\\w+_${name} (.*)$`, "m").exec(text)?.[1]);
    },
  };
}

/** Of the process, in MiB: at present, and the most since it began. */
function memory({ running }: Role): { readonly now: number; readonly peak: number } {
  const status = readFileSync(`/proc/${running.child.pid}/status`, "utf8");
  const value = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1024;
  return { now: value("VmRSS"), peak: value("VmHWM") };
}

for (const role of ["proxy", "server"] as const) {
  test(`a ${role} holds at most its budget of incomplete 60 MiB messages, and other clients go on`, async () => {
    const server = await begun(`server --id s-${role} --data-dir s-${role}`, / at (\S+?), for/);
    const proxy = await begun(`proxy --id p-${role}`, /takes requests at (\S+?),/);
    const attacked = role === "proxy" ? proxy : server;
    const before = memory(attacked).now;
    await using client = new ProxyClient(proxy.endpoint);
    expect((await client.plain(`SUBSCRIBE alice ${role}`)).status).toBe("OK");
    const unfinished = Array.from(
      { length: 12 },
      () => new HalfMessage(attacked.endpoint, { frameBytes: mib, frameCount: 60 }),
    );
    let longestMs = 0;
    let counter = 0;
    let had = -1;
    const putAndGet = async (body: string, withinMs = 5000) => {
      counter++;
      // A put whose time was over at the server is repeated, with the same counter: it is stored once.
      await eventually(async () => {
        const put = await client.plain(`PUT bob ${role} ${counter}`, body);
        longestMs = Math.max(longestMs, put.quietMs);
        return put.status === "OK";
      }, { withinMs });
      const got = await client.plain(`GET alice ${role} ${had}`);
      expect([got.status, got.text === body]).toEqual(["OK", true]);
      had = got.messageId ?? NaN;
    };
    try {
      // All that is taken of them was taken: memory is short, and nothing more comes.
      await eventually(async () => {
        await putAndGet("small");
        return await attacked.metric("incoming_bytes") > 96 * mib;
      }, { withinMs: 30_000, what: "memory to be short" });
      for (let n = 0; n < 200; n++) await putAndGet(`message ${n}`);
      expect(unfinished.filter(({ isClosed }) => isClosed)).toEqual([]);
      const { peak } = memory(attacked);
      expect(peak).toBeLessThan(before + boundMib);
      expect(longestMs).toBeLessThan(5000);
      // A message that is larger than its share waits for those that do not end, and they have ten seconds.
      await putAndGet("L".repeat(30 * mib), 40_000);
      await eventually(() => unfinished.every(({ isClosed }) => isClosed), { withinMs: 30_000, what: "their end" });
      expect(await attacked.metric("connections_incomplete_closed_total")).toBe(12);
      expect(await attacked.metric("incoming_bytes")).toBe(0);
    } finally {
      for (const one of unfinished) one[Symbol.dispose]();
    }
    expect(attacked.running.stderr().split("memory for incomplete messages is short").length).toBe(2);
    for (const { running } of [proxy, server]) {
      running.child.kill("SIGTERM");
      expect((await running.ended).code).toBe(0);
    }
  });
}

test("a topic is handed off to a server that others make hold as much as it may", async () => {
  const from = await begun("server --id s-from --data-dir s-from", / at (\S+?), for/);
  const proxy = await begun("proxy --id p-move", /takes requests at (\S+?),/);
  await using client = new ProxyClient(proxy.endpoint);
  expect((await client.plain("SUBSCRIBE alice move")).status).toBe("OK");
  for (let n = 1; n <= 8; n++) expect((await client.plain(`PUT bob move ${n}`, "M".repeat(mib))).status).toBe("OK");
  const to = await begun("server --id s-to --data-dir s-to", / at (\S+?), for/);
  const unfinished = Array.from(
    { length: 12 },
    () => new HalfMessage(to.endpoint, { frameBytes: mib, frameCount: 60 }),
  );
  try {
    await eventually(async () => await to.metric("incoming_bytes") > 96 * mib, { withinMs: 30_000 });
    const moved = await session.run('"$baton" pubsub server move move --to s-to');
    expect([moved.code, moved.stderr]).toEqual([0, expect.any(String)]);
    expect(unfinished.filter(({ isClosed }) => isClosed)).toEqual([]);
    const got = await client.plain("GET alice move -1");
    expect([got.status, got.sender, got.text.length]).toEqual(["OK", "s-to", mib]);
  } finally {
    for (const one of unfinished) one[Symbol.dispose]();
  }
  for (const { running } of [proxy, from, to]) {
    running.child.kill("SIGTERM");
    expect((await running.ended).code).toBe(0);
  }
});

test("connections over --max-connections go, the oldest without a handshake first, and it is said once", async () => {
  const server = await begun("server --id s-many --data-dir s-many", / at (\S+?), for/);
  const proxy = await begun("proxy --id p-many --max-connections 20", /takes requests at (\S+?),/);
  await using client = new ProxyClient(proxy.endpoint);
  expect((await client.plain("SUBSCRIBE alice many")).status).toBe("OK");
  const [, host = "", port = ""] = /^tcp:\/\/(.*):(\d+)$/.exec(proxy.endpoint) ?? [];
  const silent: Socket[] = [];
  for (let n = 0; n < 100; n++) {
    silent.push(
      await new Promise<Socket>((resolve) => {
        const socket = dial(Number(port), host, () => resolve(socket));
        socket.on("error", () => {});
      }),
    );
  }
  try {
    await using late = new ProxyClient(proxy.endpoint);
    expect((await late.plain("PUT bob many 1", "hello")).status).toBe("OK");
    expect((await client.plain("GET alice many -1")).text).toBe("hello");
    await eventually(async () => await proxy.metric("connections") <= 20);
    expect(await proxy.metric("connections_refused_total")).toBeGreaterThanOrEqual(82);
    expect(proxy.running.stderr().split("\n").filter((line) => line.includes("--max-connections")).length).toBe(1);
  } finally {
    for (const socket of silent) socket.destroy();
  }
  for (const { running } of [proxy, server]) {
    running.child.kill("SIGTERM");
    expect((await running.ended).code).toBe(0);
  }
});
