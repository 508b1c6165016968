/** A log that is read by `put --lines --resume`, grows, is rotated and changed: each line is put once. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { decideReplacedFile, readRotatedName, sortRotatedFiles } from "../../../../commands/pubsub/resumed_file.ts";
import { seededRandom, testSeed } from "../../../support/random.ts";
import { fileOfLog, nothingLeft, type PutOptions, ResumedLog } from "../../../support/resumed_log.ts";

setDefaultTimeout(60_000);

let folder = "";
let log = "";
beforeEach(() => {
  folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "baton-rotation-"));
  log = join(folder, "app.log");
  begin();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

let client: ResumedLog;
let stored: readonly string[] = [];
const put = (options: PutOptions = {}) => client.put(options);

/** Begins with a new state and server. */
function begin(): void {
  client = new ResumedLog(folder);
  stored = client.stored;
}

/** Moves each file to the next number, as logrotate does, and the log to app.log.1. */
function shiftRotated(): void {
  const last = readdirSync(folder).filter((name) => name.startsWith("app.log.")).length;
  for (let number = last; number > 0; number--) renameSync(`${log}.${number}`, `${log}.${number + 1}`);
}

function renameAway(): void {
  shiftRotated();
  renameSync(log, `${log}.1`);
  writeFileSync(log, "");
}

function copyAndTruncate(): void {
  shiftRotated();
  copyFileSync(log, `${log}.1`);
  truncateSync(log);
}

const unfinished = (path: string) =>
  `baton: the last line of ${path} has no newline yet; --resume puts it when it has one\n`;

test("an unfinished last line is left to a later call", async () => {
  writeFileSync(log, "one\ntw");
  expect(await put()).toEqual({ result: 1, said: unfinished(log) });
  expect(await put()).toEqual({ result: 0, said: `${unfinished(log)}${nothingLeft}` });
  appendFileSync(log, "o\n");
  expect(await put()).toEqual({ result: 1, said: "" });
  expect(stored).toEqual(["one", "two"]);
});

test("without --resume the last line needs no newline, and --resume goes on after it", async () => {
  writeFileSync(log, "one\ntwo");
  expect(await put({ resume: false })).toEqual({ result: 2, said: "" });
  expect(await put()).toEqual({ result: 0, said: nothingLeft });
  appendFileSync(log, "\nthree\n");
  expect(await put()).toEqual({ result: 1, said: "" });
  expect(stored).toEqual(["one", "two", "three"]);
});

describe.each([["renamed", renameAway], ["copied and truncated", copyAndTruncate]])(
  "a log that was %s",
  (_, rotate) => {
    test("the rest of the old file is put first, then the new file", async () => {
      writeFileSync(log, "1\n2\n");
      await put();
      appendFileSync(log, "3\n4");
      rotate();
      expect(await put()).toEqual({ result: 1, said: unfinished(`${log}.1`) });
      writeFileSync(log, "5\n");
      const isCopy = rotate === copyAndTruncate;
      const last = isCopy
        ? `baton: the last line of ${log}.1 has no newline, and was not put; to put it as it is: ` +
          `tail -n 1 ${log}.1 | baton publish news --lines -\n`
        : unfinished(`${log}.1`);
      const said = `baton: ${log} is a new file; the old one is ${log}.1\n${last}`;
      expect(await put()).toEqual({ result: isCopy ? "1, not all" : 1, said });
      expect(await put({ path: `${log}.1` })).toEqual({ result: 0, said: `${unfinished(`${log}.1`)}${nothingLeft}` });
      expect(stored).toEqual(["1", "2", "3", "5"]);
    });

    test("a file that was seen empty may repeat the lines of the old one", async () => {
      writeFileSync(log, "1\n2\n");
      await put();
      rotate();
      await put();
      appendFileSync(log, "1\n2\n3\n");
      expect((await put()).result).toBe(3);
      expect(stored).toEqual(["1", "2", "1", "2", "3"]);
    });

    test("an old file that is no longer there: the way to put its rest is named", async () => {
      writeFileSync(log, "1\n2\n");
      await put();
      rotate();
      rmSync(`${log}.1`);
      appendFileSync(log, "5\n6\n7\n");
      expect(await put()).toEqual({
        result: "3, not all",
        said: `baton: ${log} is a new file; the old one is not in its folder, 2 messages of it were put; ` +
          "to put its rest: tail -n +3 OLD-FILE | baton publish news --lines -\n",
      });
      expect(await put()).toEqual({ result: 0, said: nothingLeft });
      expect(stored).toEqual(["1", "2", "5", "6", "7"]);
    });

    test("each file is put in its order if there were several rotations", async () => {
      writeFileSync(log, "1\n");
      await put();
      appendFileSync(log, "2\n");
      rotate();
      appendFileSync(log, "3\n");
      rotate();
      appendFileSync(log, "4\n");
      rotate();
      expect((await put()).result).toBe(3);
      appendFileSync(log, "5\n");
      expect((await put()).result).toBe(1);
      expect(stored).toEqual(["1", "2", "3", "4", "5"]);
    });

    test("files with another name or a compressed one between the old and the new file", async () => {
      writeFileSync(log, "1\n");
      await put();
      rotate();
      appendFileSync(log, "2\n");
      rotate();
      writeFileSync(log, "3\n");
      renameSync(`${log}.1`, `${log}.1.xz`);
      writeFileSync(`${log}.offset`, "12\n");
      const { result, said } = await put();
      expect(result).toBe("1, not all");
      expect(said).toContain(
        `${log}.1.xz is compressed, and was not put; to put it: xz -dc ${log}.1.xz | baton publish news --lines -`,
      );
      expect(stored).toEqual(["1", "3"]);
    });
  },
);

describe("a log that was renamed, and has no new file yet", () => {
  test("the rest of the old file is put", async () => {
    writeFileSync(log, "1\n");
    await put();
    appendFileSync(log, "2\n");
    renameSync(log, `${log}.1`);
    const said = `baton: ${log} is not there yet; the old one is ${log}.1`;
    expect(await put()).toEqual({ result: 1, said: `${said}, and the rest of it was put: 1 message\n` });
    expect(await put()).toEqual({ result: 0, said: `${said}, and all of it was put\n${nothingLeft}` });
    writeFileSync(log, "3\n");
    expect((await put()).result).toBe(1);
    expect(stored).toEqual(["1", "2", "3"]);
  });

  test("without the old file, and without a file that was read before", async () => {
    expect((await put()).result).toStartWith(`IO Cannot read ${log}: there is no such file; --resume continues`);
    writeFileSync(log, "1\n");
    await put();
    rmSync(log);
    expect((await put()).result).toBe(
      `IO Cannot read ${log}: there is no such file; the old one is not in its folder; 1 message of it was put`,
    );
  });
});

describe("rotated files that gzip has compressed", () => {
  /** Compresses a file as gzip does, which keeps its time. */
  const compress = (path: string) => {
    const { mtimeMs } = statSync(path);
    writeFileSync(`${path}.gz`, gzipSync(readFileSync(path)));
    utimesSync(`${path}.gz`, 0, Math.floor(mtimeMs / 1000));
    rmSync(path);
  };

  test.each([["renamed", renameAway], ["copied and truncated", copyAndTruncate]])(
    "the old file and the one after it, %s",
    async (_, rotate) => {
      writeFileSync(log, "1\n");
      await put();
      appendFileSync(log, "2\n");
      rotate();
      writeFileSync(log, "3\n");
      compress(`${log}.1`);
      renameSync(`${log}.1.gz`, `${log}.2.gz`);
      renameSync(log, `${log}.1`);
      compress(`${log}.1`);
      writeFileSync(log, "4\n");
      expect((await put()).result).toBe(3);
      expect(stored).toEqual(["1", "2", "3", "4"]);
    },
  );

  test("late lines are put from the compressed file", async () => {
    writeFileSync(log, "1\n");
    await put();
    renameAway();
    writeFileSync(log, "2\n");
    await put();
    appendFileSync(`${log}.1`, "3\n4");
    compress(`${log}.1`);
    const last = `zcat ${log}.1.gz | tail -n 1 | baton publish news --lines -`;
    expect(await put()).toMatchObject({ result: "1, not all", said: expect.stringContaining(last) });
    expect(await put()).toEqual({ result: 0, said: nothingLeft });
    expect(stored).toEqual(["1", "2", "3"]);
  });

  test("while gzip compresses a file, and if its output is damaged", async () => {
    writeFileSync(log, "1\n");
    await put();
    renameAway();
    appendFileSync(log, "2\n");
    writeFileSync(`${log}.1.gz`, gzipSync("1\n").subarray(0, 12));
    expect((await put()).result).toBe(1);
    rmSync(`${log}.1`);
    expect(await put()).toMatchObject({ result: "0, not all", said: expect.stringContaining("is not in its folder") });
  });

  test("a renamed file that cannot be read is waited for", async () => {
    writeFileSync(log, "1\n");
    await put();
    appendFileSync(log, "2\n");
    renameSync(log, `${log}.1.gz`); // its content is not that of gzip
    writeFileSync(log, "3\n");
    expect((await put()).result).toStartWith(`IO Cannot read ${log}.1.gz: `);
    renameSync(`${log}.1.gz`, `${log}.1`);
    expect((await put()).result).toBe(2);
    expect(stored).toEqual(["1", "2", "3"]);
  });
});

describe("lines that a program adds to the old file after the new one was read", () => {
  const late = (text: string, path = `${log}.1`) => appendFileSync(path, text);
  beforeEach(async () => {
    writeFileSync(log, "1\n");
    await put();
    renameAway();
    appendFileSync(log, "2\n");
    await put();
  });

  test("are put by the next call, also if both files have new ones, and by no other call", async () => {
    late("3\n4\n");
    appendFileSync(log, "5\n");
    expect(await put()).toEqual({ result: 3, said: `baton: put 2 messages that were added to ${log}.1 late\n` });
    expect(await put({ path: `${log}.1` })).toEqual({ result: 0, said: nothingLeft });
    expect(await put()).toEqual({ result: 0, said: nothingLeft });
    late("6\n");
    expect((await put()).result).toBe(1);
    expect(stored).toEqual(["1", "2", "3", "4", "5", "6"]);
  });

  test("are put before the files of the next rotations", async () => {
    late("3");
    expect(await put()).toEqual({ result: 0, said: `${unfinished(`${log}.1`)}${nothingLeft}` });
    appendFileSync(log, "5\n");
    renameAway();
    writeFileSync(log, "6\n");
    late("\n4\n", `${log}.2`);
    expect(await put()).toMatchObject({ said: expect.stringContaining(`added to ${log}.2 late`) });
    expect(stored).toEqual(["1", "2", "3", "4", "5", "6"]);
  });

  test("are reported if the program still adds some, or has not ended one, after another rotation", async () => {
    late("3");
    appendFileSync(log, "4\n");
    renameAway();
    writeFileSync(log, "5\n");
    expect(await put()).toMatchObject({
      result: "2, not all",
      said: expect.stringContaining(`the last line of ${log}.2 has no newline, and was not put; to put it as it is: `),
    });
    renameAway();
    writeFileSync(log, "6\n");
    utimesSync(`${log}.2`, 1, 1);
    late("7\n", `${log}.2`);
    utimesSync(`${log}.1`, 1, 1);
    expect(await put()).toMatchObject({
      result: "2, not all",
      said: expect.stringContaining(`a program still adds lines to ${log}.2, which later calls do not read`),
    });
    expect(stored).toEqual(["1", "2", "4", "5", "7", "6"]);
  });

  test("are lost with the file: an exit code says so, unless a later call found that none came", async () => {
    const gone = `baton: the file before ${log} is not in its folder, or was changed; 1 message of it was put; ` +
      `to put what was added later: tail -n +2 OLD-FILE | baton publish news --lines -\n`;
    rmSync(`${log}.1`);
    expect(await put()).toEqual({ result: "0, not all", said: gone });
    expect(await put()).toEqual({ result: 0, said: nothingLeft });
    renameAway();
    writeFileSync(log, "3\n");
    await put();
    await put();
    rmSync(`${log}.1`);
    expect(await put()).toEqual({ result: 0, said: `${gone}${nothingLeft}` });
    expect(stored).toEqual(["1", "2", "3"]);
  });

  test("are not confused with those of another file that has the inode", async () => {
    writeFileSync(`${log}.1`, "other\nlines\n");
    expect((await put()).result).toBe("0, not all");
    expect(stored).toEqual(["1", "2"]);
  });

  test("are put once although the process is killed at any moment", async () => {
    for (let write = 1; write < 12; write++) {
      for (const isWritten of [false, true]) {
        late(`late ${write} ${isWritten}\n`);
        appendFileSync(log, `new ${write} ${isWritten}\n`);
        await put({ kill: { write, isWritten } });
      }
    }
    await put();
    expect(stored.toSorted()).toEqual([...new Set(stored)].toSorted());
    expect(stored).toHaveLength(2 + 11 * 2 * 2);
  });
});

test.each([
  ["counted", [".3", ".2", ".1"]],
  ["counted in ten", [".10", ".9.gz", ".1"]],
  ["dated", ["-20251231", "-20260101", "-20260102"]],
  ["dated with dashes", [".2025-12-31", ".2026-01-01_9", ".2026-01-01_10"]],
])("which rotated file was the log after another: %s", (_, suffixes) => {
  const others = suffixes.map((suffix, at) => fileOfLog(suffix, at, 10 - at));
  const after = (old: number | null) => {
    const { newer, doubtful } = sortRotatedFiles(
      others.toReversed(),
      old === null ? null : others[old] ?? null,
      old === null ? 8 : 7,
      "down",
    );
    return [newer, doubtful].map((files) => files.map(({ path }) => path));
  };
  expect(after(null)).toEqual([[], suffixes.slice(0, 2)]);
  expect(after(0)).toEqual([suffixes.slice(1), []]);
  expect(after(1)).toEqual([suffixes.slice(2), suffixes.slice(0, 1)]); // the times are those of another order
  expect(after(2)).toEqual([[], suffixes.slice(0, 2)]);
});

test("files that are not the log of an earlier time, and those whose names tell no order", () => {
  const file = (suffix: string, at: number) => fileOfLog(suffix, at, at);
  const others = [".swp", ".changed", ".offset", ".1.tmp", "", "1", ".1", "-20260101"].map(file);
  const { newer, doubtful } = sortRotatedFiles(others, { ...file(".old", 6), ino: 99 }, 0, null);
  expect([newer, doubtful].map((files) => files.map(({ path }) => path))).toEqual([["-20260101"], []]);
  const sameTime = [file(".1", 1), file(".2.gz", 1), file(".3", 1)].map((other, ino) => ({ ...other, ino }));
  expect(sortRotatedFiles(sameTime, sameTime[2] ?? null, 1, "down")).toMatchObject({
    newer: [{ path: ".2.gz" }],
    doubtful: [{ path: ".1" }],
  });
});

describe("files that several rotations gave other names", () => {
  test.each([
    ["app.log", "app-20261128.log", "app-20261129.log"],
    ["app.log", "app.log.20261128T101010Z", "app.log.20261129T101010Z"],
    ["current", "@40000000674a00f9.s", "@40000000674a00fa.s"],
  ])("%s to %s are put in order", async (name, first, second) => {
    const path = join(folder, name);
    writeFileSync(path, "1\n");
    await put({ path });
    appendFileSync(path, "2\n");
    renameSync(path, join(folder, first));
    writeFileSync(path, "3\n");
    renameSync(path, join(folder, second));
    for (const other of ["app-error.log", "app-1.log", "app-error-20261129.log", "@lock"]) {
      writeFileSync(join(folder, other), "other\n");
    }
    writeFileSync(path, "4\n");
    expect((await put({ path })).result).toBe(3);
    expect(await put({ path })).toEqual({ result: 0, said: nothingLeft });
    expect(stored).toEqual(["1", "2", "3", "4"]);
  });

  test.each([
    ["20261127", "20261128", "20261129", 3],
    ["1", "2", "3", "2, not all"],
  ])("a symbolic link to app-%s.log is switched", async (first, second, third, result) => {
    const file = (at: string) => join(folder, `app-${at}.log`);
    writeFileSync(file(first), "1\n");
    symlinkSync(file(first), log);
    await put();
    appendFileSync(file(first), "2\n");
    writeFileSync(file(second), "3\n");
    writeFileSync(file(third), "4\n");
    utimesSync(file(second), 4e9, 4e9);
    rmSync(log);
    symlinkSync(file(third), log);
    const said = await put();
    expect(said.result).toBe(result);
    if (result !== 3) {
      expect(said.said).toContain(`${file(second)} was written since the last call; if it was never put`);
    }
    expect(await put()).toEqual({ result: 0, said: nothingLeft });
    expect(stored).toEqual(result === 3 ? ["1", "2", "3", "4"] : ["1", "2", "4"]);
  });

  test.each([[".2", ".1"], ["-20261128", "-20261129"]])(
    "%s and %s, the time of which was set back: it is named",
    async (first, second) => {
      writeFileSync(log, "1\n");
      await put();
      utimesSync(log, 1e9, 1e9);
      await put();
      renameSync(log, `${log}${first}`);
      writeFileSync(`${log}${second}`, "2\n");
      utimesSync(`${log}${second}`, 1, 1);
      writeFileSync(log, "3\n");
      expect(await put()).toMatchObject({
        result: "1, not all",
        said: expect.stringContaining(`${log}${second} was written since the last call; if it was never put`),
      });
      expect(stored).toEqual(["1", "3"]);
    },
  );

  test("names", () => {
    const read = (name: string) => readRotatedName(name, ["web1-7.log", "web1.log"]);
    expect(read("web1.log.2.gz")).toEqual({ rotation: "2", scheme: "web1.log.#", isOfLog: true, isRotated: true });
    expect(read("web1-2026-11-28.log")).toMatchObject({ rotation: "2026-11-28", isOfLog: false, isRotated: true });
    expect(read("web1-8.log")).toMatchObject({ rotation: "8", scheme: "web1-#.log", isRotated: false });
    expect(read("web2-20261128.log")).toMatchObject({ scheme: "web#-#.log", isRotated: false });
    expect(read("web12.log.1")).toMatchObject({ isOfLog: false, isRotated: false });
    expect(read("web1.log.bak")).toMatchObject({ rotation: null, isOfLog: true, isRotated: false });
    expect(read("web1.log.~1~")).toMatchObject({ isOfLog: true, isRotated: false });
  });
});

test("a log that is a symbolic link to another folder is followed there", async () => {
  const real = join(folder, "real");
  mkdirSync(real);
  writeFileSync(join(real, "app.log"), "1\n");
  symlinkSync("real/app.log", log);
  await put();
  appendFileSync(log, "2\n");
  renameSync(join(real, "app.log"), join(real, "app.log.1"));
  expect((await put()).result).toBe(1); // the link leads to no file
  appendFileSync(join(real, "app.log.1"), "3\n");
  writeFileSync(log, "4\n");
  expect((await put()).result).toBe(2);
  expect(stored).toEqual(["1", "2", "3", "4"]);
});

test("a renamed log is new although it repeats the last line, or all", async () => {
  writeFileSync(log, "start\nok\n");
  await put();
  appendFileSync(log, "2\nok\n");
  renameSync(log, `${log}.1`);
  writeFileSync(log, "3\nok\n");
  expect((await put()).result).toBe(4);
  renameSync(log, `${log}-20261129`);
  writeFileSync(log, "3\nok\n4\n");
  expect((await put()).result).toBe(3);
  expect(stored).toEqual(["start", "ok", "2", "ok", "3", "ok", "3", "ok", "4"]);
});

describe("a file of which it is unclear what was put is refused, and the advice works", () => {
  test.each([
    ["a changed line", "1\ntwo\n3\n"],
    ["without its first lines", "3\n4\n"],
    ["without its last lines", "1\n2\n"],
  ])("%s", async (_, content) => {
    writeFileSync(log, "1\n2\n3\n");
    await put();
    const changed = join(folder, "new");
    writeFileSync(changed, content);
    renameSync(changed, log);
    const { result } = await put();
    expect(result).toStartWith(
      `BAD_DATA Cannot go on with the lines of ${log}: its first 3 messages are not those that were put, ` +
        "and it may contain messages that were. " +
        `To go on with an empty file: mv ${log} ${log}.changed && touch ${log}; then, `,
    );
    renameSync(log, `${log}.changed`);
    writeFileSync(log, "");
    expect((await put()).result).toBe(0);
    appendFileSync(log, "1\n");
    expect((await put()).result).toBe(1);
    expect(stored).toEqual(["1", "2", "3", "1"]);
  });

  test("a backup beside a file that begins with the same lines", async () => {
    writeFileSync(log, "1\n");
    await put();
    renameSync(log, `${log}.~1~`);
    writeFileSync(log, "1\n2\n");
    expect((await put()).result).toStartWith("BAD_DATA");
    expect(stored).toEqual(["1"]);
  });
});

test("a copy of a file that had no lines at the last call is named, and one from before is not", async () => {
  writeFileSync(`${log}.1`, "0\n");
  writeFileSync(log, "");
  expect(await put()).toEqual({ result: 0, said: nothingLeft });
  appendFileSync(log, "1\n");
  copyAndTruncate();
  appendFileSync(log, "2\n");
  utimesSync(`${log}.2`, 1, 1);
  expect(await put()).toEqual({
    result: "1, not all",
    said: `baton: ${log}.1 was written since the last call; if it was never put, to put it: ` +
      `baton publish news --lines - <${log}.1\n`,
  });
  expect(await put()).toEqual({ result: 0, said: nothingLeft });
});

test("a copy that replaces the file, with all its lines, is continued", async () => {
  writeFileSync(log, "1\n");
  await put();
  writeFileSync(join(folder, "new"), "1\n2\n");
  renameSync(join(folder, "new"), log);
  expect(await put()).toEqual({ result: 1, said: "" });
  expect(stored).toEqual(["1", "2"]);
});

test("what a file is that is not the old one", () => {
  const place = { name: "", taken: 3, digest: "", file: { ino: 1, modifiedMs: 0, starts: [] } };
  const now = { ino: 2, isEmpty: false, hasMessages: true, startsAlike: false, hasLast: false };
  const empty = { ...now, isEmpty: true, hasMessages: false };
  const old = { isRotation: false };
  expect(decideReplacedFile(place, now, null)).toBe("new");
  expect(decideReplacedFile(place, empty, null)).toBe("new");
  expect(decideReplacedFile(place, empty, old)).toBe("no messages yet");
  expect(decideReplacedFile(place, { ...now, hasMessages: false }, null)).toBe("no messages yet");
  for (const alike of [{ startsAlike: true }, { hasLast: true }]) {
    expect(decideReplacedFile(place, { ...now, ...alike }, old)).toBe("unclear");
    expect(decideReplacedFile(place, { ...now, ...alike }, { isRotation: true })).toBe("new");
    expect(decideReplacedFile({ ...place, taken: 0 }, { ...now, ...alike }, old)).toBe("new");
    const seen = { ...place, file: { ...place.file, emptyIno: 2 } };
    expect(decideReplacedFile(seen, { ...now, ...alike }, old)).toBe("new");
  }
  expect(decideReplacedFile({ ...place, file: undefined }, now, null)).toBe("unclear");
});

const seed = testSeed();
test(`each line is put once, whatever happens (BATON_SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  for (let round = 0; round < 40; round++) {
    rmSync(folder, { recursive: true });
    begin();
    await client.openState().then((state) => state[Symbol.dispose]());
    let lines = 0;
    let half = "";
    let isRead = false;
    const rotate = round % 2 === 0 ? renameAway : copyAndTruncate;
    const hasLateLines = round % 4 === 0;
    const story: string[] = [];
    writeFileSync(log, "");
    await put();
    const append = () => {
      const text = `line ${++lines}`;
      const cut = below(4) === 0 ? below(text.length) : 0;
      appendFileSync(log, `${half}${text.slice(0, cut)}`);
      half = `${text.slice(cut)}\n`;
      if (cut === 0) {
        appendFileSync(log, half);
        half = "";
      }
    };
    for (let step = 0; step < 40; step++) {
      const what = below(11);
      if (what < 5) {
        story.push("append");
        for (let count = below(6); count >= 0; count--) append();
      } else if (what < 6 && (isRead || (rotate === renameAway && existsSync(log)))) {
        story.push("rotate");
        appendFileSync(log, half);
        half = "";
        rotate();
        isRead = false;
        if (rotate === renameAway && below(2) === 0) rmSync(log);
      } else if (what < 7 && hasLateLines && existsSync(`${log}.1`)) {
        story.push("late");
        appendFileSync(`${log}.1`, `line ${++lines}\n`);
      } else {
        const kill = below(3) === 0 ? { write: 1 + below(8), isWritten: below(2) === 0 } : undefined;
        const fate = () => (["done, unheard", "lost"] as const)[below(6)] ?? "done";
        const { result } = await put({ fate, ...kill === undefined ? {} : { kill } });
        story.push(`put ${JSON.stringify(kill)}: ${result}`);
        if (typeof result === "number") isRead = existsSync(log) && readFileSync(log, "utf8").includes("\n");
        else expect(result, story.join("\n")).not.toMatch(/Cannot (go on|read)/);
      }
    }
    appendFileSync(log, `${half}end\n`);
    const { result } = await put();
    expect(`${result}`, story.join("\n")).toMatch(hasLateLines ? /^\d+(, not all)?$/ : /^\d+$/);
    const expected = Array.from({ length: lines }, (_, at) => `line ${at + 1}`);
    // Late lines come after newer ones; otherwise the order is kept.
    const inOrder = (all: readonly string[]) => hasLateLines ? all.toSorted() : all;
    expect(inOrder(stored), story.join("\n")).toEqual(inOrder([...expected, "end"]));
  }
});

test(`lines that repeat: none is lost or put twice before a file is refused (BATON_SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  for (let round = 0; round < 40; round++) {
    rmSync(folder, { recursive: true });
    begin();
    await client.openState().then((state) => state[Symbol.dispose]());
    const written: string[] = [];
    let isRead = false;
    writeFileSync(log, "");
    for (let step = 0; step < 40; step++) {
      const what = below(10);
      if (what < 5) {
        for (let count = below(4); count >= 0; count--) {
          written.push(["tick", "tock"][below(2)] as string);
          appendFileSync(log, `${written.at(-1)}\n`);
        }
      } else if (what < 6 && isRead) {
        renameAway();
        isRead = false;
      } else {
        const { result } = await put();
        if (typeof result === "string") break;
        isRead = readFileSync(log, "utf8") !== "";
        if (isRead) expect(stored).toEqual(written);
      }
    }
    expect(stored).toEqual(written.slice(0, stored.length));
  }
});
