/** Numbered files beside a log, as in app.log.1: the newest one has the lowest number, or the highest one. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { findNumberOrder, sortRotatedFiles } from "../../../../commands/pubsub/resumed_file.ts";
import { seededRandom, testSeed } from "../../../support/random.ts";
import { fileOfLog, nothingLeft, ResumedLog } from "../../../support/resumed_log.ts";

setDefaultTimeout(60_000);

let folder = "";
let log = "";
let client: ResumedLog;
let stored: readonly string[] = [];
const put = () => client.put();

/** Begins with a new state and server. */
function begin(): void {
  client = new ResumedLog(folder);
  log = client.path;
  stored = client.stored;
}

beforeEach(() => {
  folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "baton-numbers-"));
  begin();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("the newest rotated file has the highest number", () => {
  /** Compresses a file without its time. */
  const compress = (path: string) => {
    writeFileSync(`${path}.gz`, gzipSync(readFileSync(path)));
    rmSync(path);
  };

  test("each file that came after the old one is put", async () => {
    for (const [at, name] of [".1", ".2"].entries()) {
      writeFileSync(log, `${at}\n`);
      await put();
      renameSync(log, `${log}${name}`);
    }
    writeFileSync(log, "2\n");
    expect((await put()).result).toBe(1);
    renameSync(log, `${log}.3`);
    for (const name of [".4", ".5"]) writeFileSync(`${log}${name}`, `${name}\n`);
    writeFileSync(log, "6\n");
    expect((await put()).result).toBe(3);
    expect(await put()).toEqual({ result: 0, said: nothingLeft });
    expect(stored).toEqual(["0", "1", "2", ".4", ".5", "6"]);
  });

  test.each([["as soon as they are renamed", 0], ["at the next rotation", 1]])(
    "files are compressed %s: none is put twice",
    async (_, delay) => {
      for (let at = 1; at <= 6; at++) {
        writeFileSync(log, `${at}\n`);
        expect((await put()).result).toBe(at === 1 ? 1 : 2);
        appendFileSync(log, `${at}, later\n`);
        renameSync(log, `${log}.${at}`);
        if (at > delay) compress(`${log}.${at - delay}`);
        // The time of a file that gzip has written can be later than that of the next log.
        if (at > delay) utimesSync(`${log}.${at - delay}.gz`, 4e9, 4e9 + at);
      }
      writeFileSync(log, "7\n");
      expect((await put()).result).toBe(2);
      expect(stored).toEqual([...[1, 2, 3, 4, 5, 6].flatMap((at) => [`${at}`, `${at}, later`]), "7"]);
    },
  );

  test("a compressed copy of the old file gets another number: it is named, and not put", async () => {
    writeFileSync(log, "1\n");
    await put();
    renameSync(log, `${log}.1`);
    writeFileSync(`${log}.2.gz`, gzipSync("1\n"));
    writeFileSync(`${log}.3`, "2\n");
    writeFileSync(log, "3\n");
    expect(await put()).toMatchObject({
      result: "2, not all",
      said: expect.stringContaining(`${log}.2.gz was written since the last call; if it was never put, to put it: `),
    });
    expect(stored).toEqual(["1", "2", "3"]);
  });

  test("the state of an earlier version does not know the order: the files are named, and not put", async () => {
    writeFileSync(log, "1\n");
    await put();
    await client.changeMark((mark) => {
      expect(mark.earlier).toEqual([]);
      const { earlier: _, ...others } = mark;
      return others;
    });
    renameSync(log, `${log}.1`);
    writeFileSync(`${log}.2`, "2\n");
    writeFileSync(log, "3\n");
    expect(await put()).toMatchObject({
      result: "1, not all",
      said: expect.stringContaining(`${log}.2 was written since the last call; if it was never put, to put it: `),
    });
    expect(stored).toEqual(["1", "3"]);
  });
});

test.each<[string, { earlier: [string, number][] | null; now: [string, number][]; old: string; order: unknown }]>([
  ["no file before the old one, lower numbers", { earlier: [], now: [[".1", 1]], old: ".2", order: "down" }],
  ["no file before the old one, higher numbers", { earlier: [], now: [[".2", 1]], old: ".1", order: "up" }],
  ["no file before the old one, both", { earlier: [], now: [[".1", 1], [".3.gz", 2]], old: ".2", order: null }],
  ["a file got a higher number", { earlier: [[".1", 1]], now: [[".3", 1]], old: ".2", order: "down" }],
  ["a file kept its number", { earlier: [[".1", 1]], now: [[".1", 1]], old: ".2", order: "up" }],
  ["the numbers begin anew", { earlier: [[".2", 1]], now: [[".1", 1]], old: ".2", order: "up" }],
  ["a file is left over", { earlier: [[".1", 1], [".9", 2]], now: [[".3", 1], [".9", 2]], old: ".2", order: "down" }],
  ["a copy stays", { earlier: [[".0", 1], [".1", 2]], now: [[".0", 1], [".3", 2]], old: ".2", order: null }],
  ["a file was replaced", { earlier: [[".1", 1]], now: [[".1.gz", 2]], old: ".2", order: null }],
  ["the old one has a number from before", { earlier: [[".2", 1]], now: [[".1", 2]], old: ".2", order: "down" }],
  ["an earlier version", { earlier: null, now: [[".1", 1]], old: ".2", order: null }],
  ["the old one has a date", { earlier: [[".1", 1]], now: [[".1", 1]], old: "-20261129", order: null }],
])("the order of the numbers: %s", (_, { earlier, now, old, order }) => {
  const files = now.map(([suffix, ino]) => fileOfLog(suffix, ino, ino));
  const before = earlier?.map(([suffix, ino]) => ({
    number: Number(suffix.slice(1)),
    ino,
    bornMs: 0,
    modifiedMs: ino,
    size: 0,
  }));
  expect(findNumberOrder(files, fileOfLog(old, 99, 0), { earlier: before })).toBe(order as never);
  const reused = before?.map((file) => ({ ...file, size: 1 }));
  if (order === "up" && before?.length === 1) {
    expect(findNumberOrder(files, fileOfLog(".9", 99, 0), { earlier: reused })).toBeNull();
    expect(findNumberOrder(files, fileOfLog(".9", 99, 0), { earlier: reused, read: new Set([1]) })).toBe("up");
  }
});

test("numbered files whose order is unknown are doubtful if they were written since", () => {
  const others = [".1", ".3", ".4.gz"].map((suffix, ino) => fileOfLog(suffix, ino, 8 + ino));
  const sorted = sortRotatedFiles(others, fileOfLog(".2", 9, 9), 9, null);
  expect([sorted.newer, sorted.doubtful].map((files) => files.map(({ path }) => path))).toEqual([[], [".4.gz", ".3"]]);
});

const seed = testSeed();
test(`numbered files: no line is put twice, and a file that is not put is named (BATON_SEED=${seed})`, async () => {
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  for (let round = 0; round < 48; round++) {
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    begin();
    const isUpward = round % 2 === 0;
    const isCopied = below(4) === 0;
    const delay = below(3);
    const keeps = (["time", "seconds", "nothing"] as const)[below(3)];
    const most = 3 + below(6);
    let lines = 0;
    let rotations = 0;
    let deleted = 0;
    const story = [JSON.stringify({ isUpward, isCopied, delay, keeps, most })];
    const nameOf = (age: number) => `${log}.${isUpward ? rotations - age : age + 1}`;
    const rotate = () => {
      rotations++;
      for (let age = rotations - 1; age > 0 && !isUpward; age--) {
        for (const end of ["", ".gz"]) {
          if (existsSync(`${nameOf(age - 1)}${end}`)) renameSync(`${nameOf(age - 1)}${end}`, `${nameOf(age)}${end}`);
        }
      }
      if (isCopied) copyFileSync(log, nameOf(0));
      else renameSync(log, nameOf(0));
      writeFileSync(log, "");
      const plain = nameOf(delay);
      if (delay < 2 && existsSync(plain)) {
        const { mtimeMs } = statSync(plain);
        writeFileSync(`${plain}.gz`, gzipSync(readFileSync(plain)));
        const time = keeps === "time" ? mtimeMs / 1000 : Math.floor(mtimeMs / 1000);
        if (keeps !== "nothing") utimesSync(`${plain}.gz`, time, time);
        rmSync(plain);
      }
      for (const end of ["", ".gz"]) rmSync(`${nameOf(most)}${end}`, { force: true });
    };
    const named = new Set<string>();
    const call = async () => {
      const { result, said } = await put();
      story.push(`put: ${result} ${said}`);
      for (const [path] of said.matchAll(/\S+(?= was written since)/g)) {
        const content = readFileSync(path);
        for (const line of `${path.endsWith(".gz") ? gunzipSync(content) : content}`.split("\n")) named.add(line);
      }
      if (typeof result === "string") expect(result, story.join("\n")).toEndWith("not all");
      if (/not in its folder/.test(said)) deleted++;
    };
    writeFileSync(log, "first\n");
    await call();
    for (let step = 0; step < 40; step++) {
      const what = below(10);
      if (what < 4) {
        for (let count = below(4); count >= 0; count--) appendFileSync(log, `line ${++lines}\n`);
      } else if (what < 7 && readFileSync(log, "utf8") !== "") {
        story.push("rotate");
        rotate();
      } else await call();
    }
    appendFileSync(log, "last\n");
    await call();
    expect(stored, story.join("\n")).toEqual([...new Set(stored)]);
    const missing = Array.from({ length: lines }, (_, at) => `line ${at + 1}`).filter((line) => !stored.includes(line));
    if (deleted === 0) expect(missing.filter((line) => !named.has(line)), story.join("\n")).toEqual([]);
  }
});
