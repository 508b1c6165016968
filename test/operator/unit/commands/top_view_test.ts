import { describe, expect, test } from "bun:test";
import { initialTopUi } from "../../../../commands/operator/top_keys.ts";
import {
  noTopRates,
  topRatesBetween,
  type TopReading,
  type TopUse,
} from "../../../../commands/operator/top_reading.ts";
import { topScreen, topText } from "../../../../commands/operator/top_view.ts";
import type { UseHolder } from "../../../../src/coordination/admin/use_status.ts";

const nowMs = Date.parse("2026-01-02T03:04:05Z");
const plain = (_style: string, text: string) => text;

const holder = (pid: number, sinceMs: number, more: Partial<UseHolder> = {}): UseHolder => ({
  ...{ host: "db1", pid, user: "root", argv0: "job.sh", reason: "", sinceMs, sessionTimeoutMs: 10_000, revoke: null },
  ...{ id: `id${pid}`, mode: "exclusive", sessionId: 1n, slot: null, rank: null, fencingToken: BigInt(pid * 10) },
  ...more,
});

const use = (name: string, more: Partial<TopUse> = {}): TopUse => ({
  ...{ kind: "lock", name, holders: 1, waiters: 0, holder: null, next: null },
  ...more,
});

const empty: TopReading = {
  ...{ atMs: nowMs, servers: "zk1:2181", root: "/baton", uses: [], topics: [] },
  ...{ pubsubServers: [], stores: [], processes: [], problems: [] },
};

const full: TopReading = {
  ...empty,
  uses: [
    use("backup", { waiters: 2, holder: holder(7, nowMs - 90_000, { reason: "full" }) }),
    use("nightly", { holder: holder(8, nowMs - 5_000, { revoke: { by: "me", reason: "" } }) }),
    use("echo", { kind: "election", holder: holder(9, nowMs - 3_600_000, { value: "db1:7000" }) }),
    use("secret", { holders: null, waiters: null }),
  ],
  topics: [{ topic: "logs", server: "s1", state: "stored", epoch: 3 }],
  pubsubServers: [{ server: "s1", endpoint: "tcp://db1:5000", draining: false, topics: 1, store: null }],
  stores: [{
    ...{ name: "orders", folder: "/srv/orders", isPaused: false, waiting: 12, inFlight: 1, dead: 2, done: 100 },
    ...{ oldestMs: nowMs - 60_000, nextMs: nowMs + 5000 },
  }],
  processes: [
    { address: "db1:9102", process: "keeper", error: null, counters: { requests: 50 }, gauges: { sessions: 3 } },
    { address: "db1:9103", process: null, error: "connection refused", counters: {}, gauges: {} },
  ],
};

const frame = (reading: TopReading) => ({ reading, rates: noTopRates, ui: initialTopUi, nowMs, message: "" });

describe("all sections", () => {
  test("locks with their first holder, servers, topics, stores, processes", () => {
    const text = topText(frame(full), plain).slice(2).join("\n");
    const rows = text.split("\n").map((line) => line.split(/ {2,}/));
    expect(rows[1]).toEqual(["lock", "backup", "1", "2", "root@db1 (pid 7, job.sh)", "1 m 30 s", "70", "full"]);
    expect(rows[2]?.at(-1)).toBe("asked to release it");
    expect(rows[3]).toEqual(["election", "echo", "1", "0", "root@db1 (pid 9, job.sh)", "1 h", "90", "db1:7000"]);
    expect(rows[4]).toEqual(["lock", "secret", "?", "?", "-", "-", "-"]);
    expect(rows).toContainEqual(["s1", "serving", "tcp://db1:5000", "1"]);
    expect(rows).toContainEqual(["logs", "s1", "stored", "3"]);
    expect(rows).toContainEqual(["orders", "12", "1", "2", "100", "-", "1 m", "in 5 s"]);
    expect(rows).toContainEqual(["keeper", "db1:9102", "-", "sessions 3"]);
    expect(rows).toContainEqual(["unreachable", "db1:9103", "-", "connection refused"]);
  });

  test("a section without rows is left out; with nothing at all it says so", () => {
    expect(topText(frame(empty), plain).slice(2)).toEqual(["nothing is in use below /baton"]);
    const filtered = { ...frame(full), ui: { ...initialTopUi, filter: "zzz" } };
    expect(topText(filtered, plain).slice(2)).toEqual(['no row has "zzz"']);
  });

  test("a name cannot move the cursor", () => {
    const text = topText(frame({ ...empty, uses: [use("a\x1b[2Jb")] }), plain).join("\n");
    expect(text).toContain("a\ufffd[2Jb");
    expect(text).not.toContain("\x1b");
  });
});

describe("order and filter", () => {
  const names = (ui: Partial<typeof initialTopUi>) =>
    topText({ ...frame(full), ui: { ...initialTopUi, ...ui } }, plain).filter((line) => /^(lock|election) /.test(line))
      .map((line) => line.split(/ {2,}/)[1]);

  test("by kind as read, by name, by waiters, by age, reversed", () => {
    expect(names({})).toEqual(["backup", "nightly", "echo", "secret"]);
    expect(names({ sort: "name" })).toEqual(["backup", "echo", "nightly", "secret"]);
    expect(names({ sort: "wait" })[0]).toBe("backup");
    expect(names({ sort: "age" })).toEqual(["echo", "backup", "nightly", "secret"]);
    expect(names({ sort: "name", isReversed: true })).toEqual(["secret", "nightly", "echo", "backup"]);
  });

  test("a text in any column, in upper or lower case", () => {
    expect(names({ filter: "NIGHT" })).toEqual(["nightly"]);
    expect(names({ filter: "db1:7000" })).toEqual(["echo"]);
  });
});

describe("screen", () => {
  const size = { columns: 80, rows: 8 };
  const many = { ...empty, uses: Array.from({ length: 10 }, (_, at) => use(`n${at}`)) };

  test("has as many lines as the terminal, and says which part is shown", () => {
    const { lines, body } = topScreen(frame(many), { size, paint: plain });
    expect(lines).toHaveLength(8);
    expect(body).toEqual({ lines: 11, room: 4 });
    expect(lines.slice(1, 3)).toEqual(["lines 1 to 4 of 11", ""]);
    expect(lines[0]).toContain("10 holders, 0 waiting");
    expect(lines.at(-1)).toStartWith("q quit");
  });

  test("an offset beyond the end shows the end", () => {
    const { lines } = topScreen({ ...frame(many), ui: { ...initialTopUi, offset: 99 } }, { size, paint: plain });
    expect(lines[1]).toBe("lines 8 to 11 of 11");
    expect(lines[2]).toStartWith("KIND  NAME");
    expect(lines[6]).toContain("n9");
  });

  test("shows what is being typed, help, and a message", () => {
    const second = (ui: Partial<typeof initialTopUi>, message = "") =>
      topScreen({ ...frame(empty), ui: { ...initialTopUi, ...ui }, message }, { size, paint: plain }).lines;
    expect(second({ isTyping: true, filter: "ab" })[1]).toBe("filter: ab_");
    expect(second({ isHelp: true }).join("\n")).toContain("next order");
    expect(second({}, "no server responds")[1]).toBe("no server responds");
  });

  test("a long name hides no column, and a long problem is wrapped", () => {
    const long = use("x".repeat(200), { waiters: 4, holder: holder(7, nowMs - 90_000, { reason: "r".repeat(300) }) });
    const reading = { ...empty, uses: [long], problems: [`The store ${"y".repeat(100)} is damaged`] };
    const { lines } = topScreen(frame(reading), { size: { columns: 80, rows: 12 }, paint: plain });
    expect(lines.find((line) => line.startsWith("lock"))).toMatch(/^lock +x+… +1 +4 +root@db1/);
    expect(lines.join("")).toContain("is damaged");
  });

  test("a terminal of one row gets one line", () => {
    expect(topScreen(frame(full), { size: { columns: 80, rows: 1 }, paint: plain }).lines).toHaveLength(1);
  });
});

describe("rates", () => {
  const [store] = full.stores;
  const later = (done: number, requests: number): TopReading => ({
    ...full,
    atMs: nowMs + 2000,
    stores: store === undefined ? [] : [{ ...store, done }],
    processes: full.processes.map((one) => ({ ...one, counters: { requests } })),
  });

  test("are those between two readings", () => {
    const rates = topRatesBetween(full, later(103, 150));
    expect(rates.stores.get("/srv/orders")).toBe(1.5);
    expect(rates.processes.get("db1:9102")).toEqual({ requests: 50 });
    const text = topText({ ...frame(later(103, 150)), rates }, plain).join("\n");
    expect(text).toMatch(/orders +12 +1 +2 +103 +1\.5\/s/);
    expect(text).toContain("50/s requests");
  });

  test("a counter that starts again has none", () => {
    const rates = topRatesBetween(full, later(1, 2));
    expect(rates.stores.size).toBe(0);
    expect(rates.processes.get("db1:9102")).toEqual({});
    expect(topRatesBetween(full, full)).toBe(noTopRates);
  });
});
