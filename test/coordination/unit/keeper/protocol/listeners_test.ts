/** Against real files and sockets: what is in the way of them is the point. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { KeeperListeners } from "../../../../../src/coordination/keeper/protocol/listeners.ts";
import type { Address } from "../../../../../src/base/sockets/connection.ts";
import { dial } from "../../../../../src/base/sockets/dial.ts";
import { listen } from "../../../../../src/base/sockets/listen.ts";

let root = "";
let said: string[] = [];
let listeners: KeeperListeners;
const umask = process.umask(0o077); // as the keeper has it
beforeEach(() => {
  process.umask(0o077);
  root = mkdtempSync(join(tmpdir(), "baton-listeners-"));
  said = [];
  listeners = new KeeperListeners({
    listen,
    handshakesMax: 10,
    accept: () => () => ({ onData() {}, onClosed() {} }),
    openSocketPaths: [join(root, "run/open.sock")],
    dataDir: join(root, "data"),
    log: (sentence) => said.push(sentence),
  });
});
afterEach(async () => {
  await listeners.close();
  process.umask(umask);
  rmSync(root, { recursive: true, force: true });
});

/** Of a keeper with other data. */
class OtherListeners implements AsyncDisposable {
  readonly listeners = new KeeperListeners({
    listen,
    handshakesMax: 10,
    accept: () => () => ({ onData() {}, onClosed() {} }),
    openSocketPaths: [],
    dataDir: join(root, "other"),
    log: () => {},
  });

  async [Symbol.asyncDispose](): Promise<void> {
    await this.listeners.close();
  }
}

const at = (path: string): Address & { kind: "unix" } => ({ kind: "unix", path: join(root, path) });
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
const answers = (address: Address) =>
  dial(address, { onData() {}, onClosed() {} }).then((connection) => (connection.destroy(), true), () => false);

describe("a socket for all users", () => {
  test("is in a folder that all users may enter, when the folder is made for it", async () => {
    await listeners.open(at("run/open.sock"), undefined);
    expect([modeOf(join(root, "run")), modeOf(join(root, "run/open.sock"))]).toEqual(["755", "666"]);
  });

  test("leaves a folder that is there as it is", async () => {
    mkdirSync(join(root, "run"), { mode: 0o750 });
    const before = modeOf(join(root, "run"));
    await listeners.open(at("run/open.sock"), undefined);
    expect(modeOf(join(root, "run"))).toBe(before);
  });

  test("is for its user alone when it is any other one", async () => {
    await listeners.open(at("own/keeper.sock"), undefined);
    expect([modeOf(join(root, "own")), modeOf(join(root, "own/keeper.sock"))]).toEqual(["700", "700"]);
  });
});

test("a port that is taken is said to be taken", async () => {
  await listeners.open({ kind: "tcp", host: "127.0.0.1", port: 0 }, undefined);
  const [taken] = listeners.addresses;
  const error = await listeners.open(taken as Address, undefined).then(() => null, (thrown) => thrown);
  expect(error).toMatchObject({ code: "CANNOT_CREATE" });
  expect(error.message).toMatch(/^Cannot listen on 127\.0\.0\.1:\d+: another process already listens there$/);
});

test("a path that is too long for a socket is said to be", async () => {
  const error = await listeners.open(at("x".repeat(100)), undefined).then(() => null, (thrown) => thrown);
  expect(error).toMatchObject({ code: "CANNOT_CREATE" });
  expect(error.message).toMatch(/: a socket's path is limited to 10[37] bytes; this one has \d{3}$/);
});

describe("what stands where a socket is wanted", () => {
  const open = (address: Address) => listeners.open(address, undefined).then(() => "open", (error) => error);

  test("is not taken from another keeper that serves there with data of its own", async () => {
    await using other = new OtherListeners();
    await other.listeners.open(at("run/keeper.sock"), undefined);
    const refused = await open(at("run/keeper.sock"));
    expect(refused).toMatchObject({ code: "CANNOT_CREATE" });
    expect(refused.message).toContain("run/keeper.sock: another process already listens there");
    expect(await answers(at("run/keeper.sock"))).toBe(true);
  });

  test("is taken from a keeper that has lost these data", async () => {
    await using other = new OtherListeners();
    await other.listeners.open(at("data/keeper.sock"), undefined);
    const before = statSync(join(root, "data/keeper.sock")).ino;
    expect(await open(at("data/keeper.sock"))).toBe("open");
    expect(statSync(join(root, "data/keeper.sock")).ino).not.toBe(before);
  });

  test("is replaced when it is a socket that nobody stands behind", async () => {
    await using other = new OtherListeners();
    await other.listeners.open(at("run/other.sock"), undefined);
    renameSync(join(root, "run/other.sock"), join(root, "run/keeper.sock"));
    await other.listeners.close();
    expect(await answers(at("run/keeper.sock"))).toBe(false);
    expect(await open(at("run/keeper.sock"))).toBe("open");
    expect(await answers(at("run/keeper.sock"))).toBe(true);
  });

  test("stays when it is anything else, in the keeper's own folder too", async () => {
    for (const folder of ["run", "data"]) {
      mkdirSync(join(root, folder));
      writeFileSync(join(root, folder, "notes"), "of years");
      const refused = await open(at(`${folder}/notes`));
      expect(refused.message).toContain(`${folder}/notes: the path is a file that is not a socket`);
      expect(readFileSync(join(root, folder, "notes"), "utf8")).toBe("of years");
    }
  });
});

describe("a socket that somebody removed", () => {
  test("is bound again as soon as that can be done, however often it could not, and that is said once", async () => {
    await listeners.open(at("run/keeper.sock"), undefined);
    rmSync(join(root, "run"), { recursive: true });
    symlinkSync(join(root, "nowhere"), join(root, "run")); // in the way of the folder, for root too
    for (let tries = 0; tries < 3; tries++) await listeners.restore();
    expect(await answers(at("run/keeper.sock"))).toBe(false);
    expect(said).toEqual([expect.stringContaining(`Cannot listen on unix:${root}/run/keeper.sock: `)]);
    rmSync(join(root, "run"));
    await listeners.restore();
    expect(await answers(at("run/keeper.sock"))).toBe(true);
    expect(listeners.addresses).toEqual([at("run/keeper.sock")]);
  });

  test("is away for good once the listeners are closed", async () => {
    await listeners.open(at("run/keeper.sock"), undefined);
    rmSync(join(root, "run"), { recursive: true });
    const restoring = listeners.restore();
    await listeners.close();
    await restoring;
    expect(await answers(at("run/keeper.sock"))).toBe(false);
  });
});
