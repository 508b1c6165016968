import { describe, expect, test } from "bun:test";
import {
  goneRowLine,
  lsJson,
  lsJsonToCompare,
  lsLines,
  type LsReading,
  lsTables,
} from "../../../../commands/operator/ls_view.ts";
import { shortenHolderIds } from "../../../../src/base/support/short_ids.ts";
import {
  jsonChangePrinter,
  lineChangePrinter,
  type WatchedRowsView,
} from "../../../../commands/operator/watch_rows.ts";
import { goneParticipantLine, whoLines, whoTable } from "../../../../commands/operator/who_view.ts";
import type { CoordinationObjectDetails, HolderRow, WaiterRow } from "../../../../src/base/rows/object_row.ts";
import { noRowRates, RateMeter } from "../../../../src/operator/lists/rates.ts";
import { formatTableLines } from "../../../../src/base/terminal/table.ts";
import { cutTerminalLine, RedrawnTerminalLines } from "../../../../src/base/terminal/terminal_lines.ts";
import { fakeIo } from "../../../support/fake_io.ts";

describe("short ids", () => {
  test("have six characters, or as many as make them unique", () => {
    expect([...shortenHolderIds(["0123456789", "abcdefghij"]).values()]).toEqual(["012345", "abcdef"]);
    expect([...shortenHolderIds(["0123456789", "0123456abc"]).values()]).toEqual(["01234567", "0123456a"]);
    expect(shortenHolderIds(["abc"]).get("abc")).toBe("abc");
    expect(shortenHolderIds(["same", "same"]).get("same")).toBe("same");
  });

  test("one id that begins another is whole, and the other is longer", () => {
    const ids = shortenHolderIds(["lock-1", "lock-10"]);
    expect(ids.get("lock-1")).toBe("lock-1");
    expect(ids.get("lock-10")).toBe("lock-10");
  });
});

const nowMs = Date.parse("2026-01-02T03:04:05Z");
const iso = (ms: number) => new Date(ms).toISOString();
const common = {
  ...{ host: "db1", user: "root", command: "job.sh", session_timeout_ms: 10_000, revoke: null, session_id: "255" },
  ...{ mode: "exclusive" as const, value: null, warning: null },
};
const holder: HolderRow = {
  ...{ ...common, pid: 7, reason: "full", since: iso(nowMs - 12_345), id: "aaaaaaaaaaaa", slot: null, rank: null },
  fencing_token: "42",
};
const waiter: WaiterRow = {
  ...common,
  pid: 8,
  reason: "",
  since: iso(nowMs - 1000),
  id: "bbbbbbbbbbbb",
  place: 1,
  priority: 100,
};
const status: CoordinationObjectDetails = {
  ...{ kind: "lock", name: "nightly", path: "/baton/locks/nightly", limit: null },
  ...{ holders: [holder], waiters: [waiter] },
};
const plain = (_style: string, text: string) => text;
const cells = (lines: readonly string[]) => lines.map((line) => line.split(/ {2,}/));

describe("who", () => {
  test("short ids, whole seconds", () => {
    expect(cells(formatTableLines(whoTable(status, { nowMs, long: false }), plain))).toEqual([
      ["STATE", "WHO", "FOR", "HOW", "ID", "REASON"],
      ["holds", "root@db1 (pid 7, job.sh)", "12 s", "exclusive", "aaaaaa", "full"],
      ["waits", "root@db1 (pid 8, job.sh)", "1 s", "exclusive, priority 100", "bbbbbb"],
    ]);
  });

  test("--long: each fact in a column", () => {
    expect(cells(formatTableLines(whoTable(status, { nowMs, long: true }), plain))).toEqual([
      ["STATE", "QUEUE", "USER", "HOST", "PID", "COMMAND", "SINCE", "HOW", "TOKEN", "SESSION", "ID", "REASON"],
      [
        ...["holds", "-", "root", "db1", "7", "job.sh", "2026-01-02T03:03:52Z", "exclusive", "42", "0xff"],
        ...["aaaaaaaaaaaa", "full"],
      ],
      [
        ...["waits", "1", "root", "db1", "8", "job.sh", "2026-01-02T03:04:04Z", "exclusive, priority 100", "-", "0xff"],
        "bbbbbbbbbbbb",
      ],
    ]);
  });

  test("the state has a colour where there are colours", () => {
    const [, row = ""] = formatTableLines(
      whoTable(status, { nowMs, long: false }),
      (style, text) => `<${style} ${text}>`,
    );
    expect(row).toStartWith("<green holds>");
  });

  test("a free lock has no table", () => {
    expect(whoTable({ ...status, holders: [], waiters: [] }, { nowMs, long: false })).toEqual([]);
  });
});

const view: WatchedRowsView<CoordinationObjectDetails> = {
  ...{ empty: () => "free", tables: () => [], json: ({ name, holders }) => ({ name, holders: holders.length }) },
  ...{ lines: whoLines, gone: goneParticipantLine },
};

describe("changes", () => {
  test("as lines: what is new, what has changed, what is gone, each once", () => {
    const io = fakeIo();
    const show = lineChangePrinter(io, view);
    show(status);
    show(status);
    const granted: HolderRow = { ...holder, id: "bbbbbbbbbbbb", pid: 8, reason: "" };
    show({ ...status, holders: [granted], waiters: [] });
    const lines = io.stdout().trimEnd().split("\n");
    expect(lines.map((line) => line.split(/ {2,}/).slice(1))).toEqual([
      ["holds", "root@db1 (pid 7, job.sh)", "exclusive", "aaaaaa", "full"],
      ["waits", "root@db1 (pid 8, job.sh)", "exclusive, priority 100", "place 1", "bbbbbb"],
      ["gone", "root@db1 (pid 7, job.sh)", "exclusive", "aaaaaa", "full"],
      ["holds", "root@db1 (pid 8, job.sh)", "exclusive", "bbbbbb"],
    ]);
    expect(lines[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z {2}holds/);
  });

  test("as JSON lines: each state once", () => {
    const io = fakeIo();
    const show = jsonChangePrinter(io, view);
    show(status);
    show({ ...status });
    show({ ...status, holders: [] });
    expect(io.stdout()).toBe('{"name":"nightly","holders":1}\n{"name":"nightly","holders":0}\n');
  });
});

describe("ls", () => {
  const rows: LsReading["rows"] = {
    lock: [{ name: "nightly", holders: 1, waiters: 1 }, { name: "secret", holders: null, waiters: null }],
    pool: [{ name: "papers", holders: 2, waiters: 0, done: 12, failed: 1 }],
  };
  const reading: LsReading = { scope: "user", atMs: nowMs, rates: noRowRates, rows };
  const tablesOf = (one: LsReading) => lsTables(one, nowMs).map((table) => cells(formatTableLines(table, plain)));

  test("--long: a line for each holder, and one for what has no details; pools have their results", () => {
    const long = { ...reading, details: new Map([["lock nightly", status]]) };
    const [table = []] = tablesOf(long);
    expect(table.slice(1).map((row) => row.filter((cell) => cell !== ""))).toEqual([
      ["lock", "nightly", "1", "1", "root", "db1", "7", "job.sh", "2026-01-02T03:03:52Z", "42", "0xff", "full"],
      ["lock", "secret", "?", "?", "-", "-", "-", "-", "-", "-", "-", "-"],
      ["pool", "papers", "2", "0", "12 done, 1 failed", "-", "-", "-", "-", "-", "-", "-", "-"],
    ]);
    expect(lsLines(long).get("lock nightly")).toBe("lock  nightly  1  1  root@db1:7");
    expect(lsLines(long).get("pool papers")).toBe("pool  papers  2  0  12 done, 1 failed");
  });

  const schedule = {
    ...{ name: "backup", schedule_id: "i", schedule: "0 3 * * *", time_zone: "UTC", settled_until: iso(0) },
    ...{ next: iso(nowMs + 60_000), overdue: false, running: null, retry: null },
  };
  const run = { tick: iso(0), attempt: 1, host: "db1", pid: 7, began: iso(0), lost: false };
  const topic = { topic: "news", server: "s1", epoch: 3, state: "stored" as const, there: true, served: true };
  const none = { count: 0, bytes: 0 };
  const states = {
    waiting: { count: 2, bytes: 9 },
    in_flight: none,
    done: none,
    dead: none,
    dropped: none,
    cancelled: none,
  };
  const store = {
    ...{
      name: "orders",
      folder: "/srv/orders",
      paused: false,
      processors: 1,
      oldest: iso(nowMs - 5000),
      next: iso(nowMs - 1),
      states,
    },
    ...{ dead_letters: { pending: 0, forwarded: 0, error: null }, disk: { used_bytes: 1, free_bytes: null } },
  };
  const process = {
    address: "db1:9102",
    process: "keeper",
    error: null,
    counters: { requests: 100 },
    gauges: { nodes: 4 },
    disk_free_bytes: 2 ** 33,
  };
  const server = { server: "s1", endpoint: null, store: null, draining: false, topic_count: 1 };

  test("schedules, servers, topics, stores and processes have own tables; what could not be read is last", () => {
    const lost = { ...schedule, name: "report", running: { ...run, lost: true } };
    const overdue = { ...schedule, name: "late", next: iso(nowMs - 90_001), overdue: true };
    const due = { ...overdue, name: "now", next: iso(nowMs - 90_000) };
    const retry = { tick: iso(0), attempt: 2, from: iso(nowMs + 5000), until: iso(nowMs + 6000) };
    const failed = { ...schedule, name: "again", retry };
    const tooLate = { ...schedule, name: "over", retry: { ...retry, until: iso(nowMs - 1) } };
    const all = {
      ...reading,
      rows: {
        schedule: [schedule, lost, overdue, due, failed, tooLate],
        server: [server],
        topic: [topic],
        store: [store],
        process: [process],
      },
      problems: ["there is no store"],
    };
    expect(tablesOf(all)).toEqual([
      [
        ["SCHEDULE OF", "TICKS", "NEXT", "STATE"],
        ["backup", "0 3 * * * (UTC)", "in 1 m", "-"],
        ["report", "0 3 * * * (UTC)", "in 1 m", "lost on db1"],
        ["late", "0 3 * * * (UTC)", "due", "overdue"],
        ["now", "0 3 * * * (UTC)", "due", "-"],
        ["again", "0 3 * * * (UTC)", "in 1 m", "try 2 from 2026-01-02T03:04:10Z on"],
        ["over", "0 3 * * * (UTC)", "in 1 m", "-"],
      ],
      [["SERVER", "STATE", "ENDPOINT", "TOPICS"], ["s1", "offline", "-", "1"]],
      [["TOPIC", "SERVER", "STATE", "EPOCH"], ["news", "s1", "stored", "3"]],
      [
        ["STORE", "WAITING", "IN FLIGHT", "DEAD", "DONE", "RATE", "OLDEST", "NEXT TRY"],
        ["orders", "2", "0", "0", "0", "-", "5 s", "due"],
      ],
      [["PROCESS", "METRICS AT", "RATES", "NOW"], ["keeper", "db1:9102", "-", "nodes 4"]],
      [["there is no store"]],
    ]);
    expect([...lsLines(all).values()]).toEqual([
      "schedule  backup  0 3 * * * (UTC)  next 2026-01-02T03:05:05Z",
      "schedule  report  0 3 * * * (UTC)  next 2026-01-02T03:05:05Z  lost on db1",
      "schedule  late  0 3 * * * (UTC)  next 2026-01-02T03:02:34Z  overdue",
      "schedule  now  0 3 * * * (UTC)  next 2026-01-02T03:02:35Z",
      "schedule  again  0 3 * * * (UTC)  next 2026-01-02T03:05:05Z  try 2 from 2026-01-02T03:04:10Z on",
      "schedule  over  0 3 * * * (UTC)  next 2026-01-02T03:05:05Z",
      "server  s1  offline  topics 1",
      "topic  news  s1  stored  epoch 3",
      "store  /srv/orders  orders  waiting 2  in_flight 0  dead 0  done 0",
      "process  db1:9102  keeper  nodes 4",
    ]);
  });

  test("rates are those since an earlier reading; a counter that has decreased has none", () => {
    const meter = new RateMeter();
    const at = (done: number, requests: number) => ({
      store: [{ ...store, states: { ...states, done: { count: done, bytes: 0 } } }],
      process: [{ ...process, counters: { requests } }],
    });
    expect(meter.measure(at(10, 100), 0)).toBe(noRowRates);
    const rates = meter.measure(at(30, 90), 2000);
    expect(rates).toEqual({ stores: new Map([["/srv/orders", 10]]), processes: new Map([["db1:9102", {}]]) });
    expect(meter.measure(at(31, 91), 2050)).toBe(rates);
    const [stores = []] = tablesOf({ ...reading, rows: { store: [store] }, rates });
    expect(stores[1]?.[5]).toBe("10/s");
  });

  test("disk space and counters, which change all the time, print no line of JSON", () => {
    const io = fakeIo();
    const show = jsonChangePrinter<LsReading>(io, {
      empty: () => "",
      tables: () => [],
      json: lsJson,
      comparedJson: lsJsonToCompare,
      lines: lsLines,
      gone: goneRowLine,
    });
    show({ ...reading, rows: { store: [store], process: [process] } });
    const other = { ...store, disk: { used_bytes: 2, free_bytes: null } };
    show({ ...reading, rows: { store: [other], process: [{ ...process, counters: { requests: 101 } }] } });
    expect(io.stdout().trimEnd().split("\n")).toHaveLength(1);
    show({ ...reading, rows: { store: [{ ...other, paused: true }], process: [process] } });
    expect(io.stdout().trimEnd().split("\n")).toHaveLength(2);
  });

  test("what is no longer listed has no holders, or is gone", () => {
    expect(goneRowLine(lsLines(reading).get("pool papers") ?? "")).toBe("pool  papers  0  0");
    expect(goneRowLine("topic  news  s1  stored  epoch 3")).toBe("topic  news  gone");
  });
});

describe("lines on a terminal", () => {
  test("a line is cut by what is seen of it, and its styles end", () => {
    expect(cutTerminalLine("\x1b[1mbold\x1b[22m text", 6)).toBe("\x1b[1mbold\x1b[22m t");
    expect(cutTerminalLine("\x1b[1mbold\x1b[22m", 2)).toBe("\x1b[1mbo\x1b[22m");
  });

  test("each drawing starts where the previous one did, and leaves nothing of it", () => {
    let [written, isFree] = ["", true];
    const lines = new RedrawnTerminalLines(
      (text) => {
        if (isFree) written += text;
        return isFree;
      },
      () => ({ columns: 10, rows: 5 }),
    );
    lines.show(["one", "two"]);
    expect(written).toBe("\x1b[?7l\rone\x1b[K\r\ntwo\x1b[K\r\n\x1b[J\x1b[?7h");
    written = "";
    isFree = false;
    lines.show(["left", "out", "of it"]);
    isFree = true;
    lines.show(["three"]);
    expect(written).toBe("\x1b[?7l\r\x1b[2Athree\x1b[K\r\n\x1b[J\x1b[?7h");
  });

  test("more lines than the terminal has are counted", () => {
    let written = "";
    new RedrawnTerminalLines((text) => (written += text) !== "", () => ({ columns: 20, rows: 4 })).show([
      "1",
      "2",
      "3",
      "4",
      "5",
    ]);
    expect(written).toContain("1\x1b[K\r\n2\x1b[K\r\n… 3 more lines\x1b[K\r\n");
  });
});
