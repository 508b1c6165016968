import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { BatonError } from "../../../../../src/base/errors.ts";
import {
  createKeeperFolders,
  findKeeperLocation,
} from "../../../../../src/coordination/keeper/lifecycle/keeper_location.ts";

let root = "";
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-place-")));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const uid = process.geteuid?.() ?? -1;
const nobody = () => ({
  machineKeeperSocketPath: join(root, "none/keeper.sock"),
  userDatabase: userDatabase(join(root, "home")),
  fallbackFolder: join(root, "tmp"),
});

function userDatabase(home: string): string {
  const path = join(root, "passwd");
  writeFileSync(path, `root2:x:${uid + 1}:0::/wrong:/bin/sh\nme:x:${uid}:0:somebody:${home}:/bin/sh\n`);
  return path;
}

function codeOf(act: () => unknown): string {
  try {
    act();
    return "nothing was thrown";
  } catch (error) {
    return error instanceof BatonError ? error.code : String(error);
  }
}

describe("the user's place", () => {
  test("follows from the user database, whatever HOME and the XDG variables say", () => {
    mkdirSync(join(root, "home"));
    const places = [{}, { HOME: "/elsewhere", XDG_STATE_HOME: "/elsewhere", XDG_RUNTIME_DIR: "/elsewhere" }]
      .map((env) => findKeeperLocation(env, nobody()));
    expect(places[0]).toEqual(places[1]);
    expect(places[0]?.dir?.startsWith(join(root, "home/.local/state/baton/keeper/"))).toBe(true);
    expect(places[0]?.scope).toBe("user");
  });

  test("is in /var/tmp for a user without a home", () => {
    const { fallbackFolder: _, ...rest } = nobody();
    expect(findKeeperLocation({}, rest).dir?.startsWith(`/var/tmp/baton-${uid}/`)).toBe(true);
  });

  test("stays where it is when a home appears, and when it becomes unusable", () => {
    const without = findKeeperLocation({}, nobody());
    expect(without.dir?.startsWith(join(root, "tmp/"))).toBe(true);
    mkdirSync(without.dir ?? "", { recursive: true, mode: 0o700 });
    mkdirSync(join(root, "home"));
    expect(findKeeperLocation({}, nobody())).toEqual(without);
    rmSync(join(root, "tmp"), { recursive: true });
    const atHome = findKeeperLocation({}, nobody());
    mkdirSync(atHome.dir ?? "", { recursive: true, mode: 0o700 });
    chmodSync(join(root, "home"), 0o500);
    expect(findKeeperLocation({}, nobody())).toEqual(atHome);
  });

  test("has its socket beside the data, or under a short name when that path is too long for a socket", () => {
    const short = findKeeperLocation({ BATON_KEEPER_DIR: join(root, "k") });
    expect(short.socketPath).toBe(join(root, "k/keeper.sock"));
    const long = findKeeperLocation({ BATON_KEEPER_DIR: join(root, "k".repeat(100)) });
    expect(long.dir).toBe(join(root, "k".repeat(100)));
    expect(Buffer.byteLength(long.socketPath)).toBeLessThanOrEqual(103);
    expect(long.socketPath).not.toBe(findKeeperLocation({ BATON_KEEPER_DIR: join(root, "l".repeat(100)) }).socketPath);
  });
});

describe("a place that is not safe is refused", () => {
  const place = () => findKeeperLocation({ BATON_KEEPER_DIR: join(root, "k") });

  test("when it lets others in", () => {
    mkdirSync(join(root, "k"));
    chmodSync(join(root, "k"), 0o750);
    expect(codeOf(place)).toBe("CONFIG");
    chmodSync(join(root, "k"), 0o700);
    expect(codeOf(place)).toBe("nothing was thrown");
  });

  test("when it is a link, or no folder", () => {
    mkdirSync(join(root, "real"), { mode: 0o700 });
    symlinkSync(join(root, "real"), join(root, "k"));
    expect(codeOf(place)).toBe("CONFIG");
    rmSync(join(root, "k"));
    writeFileSync(join(root, "k"), "");
    expect(codeOf(place)).toBe("CONFIG");
  });

  test("when it is not an absolute path", () => {
    expect(codeOf(() => findKeeperLocation({ BATON_KEEPER_DIR: "k" }))).toBe("CONFIG");
  });

  test("also when it was made between the look and the use", () => {
    const { dir, socketPath } = place();
    mkdirSync(join(root, "real"), { mode: 0o700 });
    symlinkSync(join(root, "real"), join(root, "k"));
    expect(codeOf(() => createKeeperFolders({ dir: dir ?? "", socketPath }))).toBe("CONFIG");
  });
});

describe("the machine's keeper", () => {
  const socketPath = () => join(root, "run/keeper.sock");
  const look = () =>
    findKeeperLocation({}, { machineKeeperSocketPath: socketPath(), userDatabase: userDatabase(root) });

  async function serve(): Promise<Disposable> {
    mkdirSync(join(root, "run"), { mode: 0o755 });
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(socketPath(), resolve));
    return { [Symbol.dispose]: () => server.close() };
  }

  test.skipIf(uid !== 0)("is preferred when root alone can have made it", async () => {
    using _ = await serve();
    expect(look()).toEqual({ dir: null, socketPath: socketPath(), scope: "machine" });
  });

  test.skipIf(uid !== 0)("stays the one while its socket is away: it is being restarted", () => {
    mkdirSync(join(root, "run"), { mode: 0o755 });
    expect(look().scope).toBe("machine");
  });

  test("is refused when others can replace it", async () => {
    using _ = await serve();
    chmodSync(join(root, "run"), 0o777);
    expect(codeOf(look)).toBe("CONFIG");
  });

  test("is not looked at when BATON_KEEPER_DIR names a place", async () => {
    using _ = await serve();
    expect(findKeeperLocation({ BATON_KEEPER_DIR: join(root, "k") }).scope).toBe("user");
  });
});
