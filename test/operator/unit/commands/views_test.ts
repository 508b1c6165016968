import { describe, expect, test } from "bun:test";
import { lsLines, lsTable, unlistedObjectLine } from "../../../../commands/operator/ls_view.ts";
import { shortenHolderIds } from "../../../../src/base/support/short_ids.ts";
import { jsonChangePrinter, lineChangePrinter, type WatchedUseView } from "../../../../commands/operator/watch_use.ts";
import { goneParticipantLine, whoLines, whoTable } from "../../../../commands/operator/who_view.ts";
import type { UseHolder, UseStatus, UseWaiter } from "../../../../src/coordination/admin/use_status.ts";
import type { ObjectsInUse } from "../../../../src/coordination/admin/list_in_use.ts";
import { formatTableLines } from "../../../../src/base/terminal/table.ts";
import { cutTerminalLine, RedrawnLines } from "../../../../src/base/terminal/terminal_lines.ts";
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
const common = {
  ...{ host: "db1", user: "root", argv0: "job.sh", sessionTimeoutMs: 10_000, revoke: null, sessionId: 255n },
  mode: "exclusive" as const,
};
const holder: UseHolder = {
  ...{ ...common, pid: 7, reason: "full", sinceMs: nowMs - 12_345, id: "aaaaaaaaaaaa", slot: null, rank: null },
  fencingToken: 42n,
};
const waiter: UseWaiter = {
  ...common,
  pid: 8,
  reason: "",
  sinceMs: nowMs - 1000,
  id: "bbbbbbbbbbbb",
  place: 1,
  priority: 100,
};
const status: UseStatus = {
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

const view: WatchedUseView<UseStatus> = {
  ...{ empty: () => "free", table: () => [], json: ({ name, holders }) => ({ name, holders: holders.length }) },
  ...{ lines: whoLines, gone: goneParticipantLine },
};

describe("changes", () => {
  test("as lines: what is new, what has changed, what is gone, each once", () => {
    const io = fakeIo();
    const show = lineChangePrinter(io, view);
    show(status);
    show(status);
    const granted: UseHolder = { ...holder, id: "bbbbbbbbbbbb", pid: 8, reason: "" };
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
  const found: ObjectsInUse = {
    ...{ lock: [{ name: "nightly", holders: 1, waiters: 1 }, { name: "secret", holders: null, waiters: null }] },
    ...{ election: [], barrier: [], gate: [], pool: [{ name: "papers", holders: 2, waiters: 0 }] },
  };

  test("--long: a line for each holder, and one for what has no details", () => {
    const reading = { found, details: new Map([["lock nightly", status]]) };
    expect(cells(formatTableLines(lsTable(reading), plain)).slice(1)).toEqual([
      ["lock", "nightly", "1", "1", "root", "db1", "7", "job.sh", "2026-01-02T03:03:52Z", "42", "0xff"],
      ["lock", "secret", "?", "?", "-", "-", "-", "-", "-", "-", "-"],
      ["pool", "papers", "2", "0", "-", "-", "-", "-", "-", "-", "-"],
    ]);
    expect(lsLines(reading).get("lock nightly")).toBe("lock  nightly  1  1  root@db1:7");
  });

  test("what is no longer listed has no holders", () => {
    expect(unlistedObjectLine(lsLines({ found, details: null }).get("pool papers") ?? "")).toBe("pool  papers  0  0");
  });
});

describe("lines on a terminal", () => {
  test("a line is cut by what is seen of it, and its styles end", () => {
    expect(cutTerminalLine("\x1b[1mbold\x1b[22m text", 6)).toBe("\x1b[1mbold\x1b[22m t");
    expect(cutTerminalLine("\x1b[1mbold\x1b[22m", 2)).toBe("\x1b[1mbo\x1b[22m");
  });

  test("each drawing starts where the previous one did, and leaves nothing of it", () => {
    let [written, isFree] = ["", true];
    const lines = new RedrawnLines(
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
    new RedrawnLines((text) => (written += text) !== "", () => ({ columns: 20, rows: 4 })).show([
      "1",
      "2",
      "3",
      "4",
      "5",
    ]);
    expect(written).toContain("1\x1b[K\r\n2\x1b[K\r\n… 3 more lines\x1b[K\r\n");
  });
});
