import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, chownSync, lchownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { BatonError } from "../../../../../src/base/errors.ts";
import {
  createKeeperFolders,
  findKeeperLocation,
} from "../../../../../src/coordination/keeper/lifecycle/keeper_location.ts";

let root = "";
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-folder-")));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const uid = process.geteuid?.() ?? -1;
const stranger = 65534;

function make(path: string, mode = 0o700, owner = uid): string {
  mkdirSync(join(root, path), { recursive: true });
  chmodSync(join(root, path), mode);
  if (owner !== uid) chownSync(join(root, path), owner, owner);
  return path;
}

function place() {
  const userDatabase = join(root, "passwd");
  writeFileSync(userDatabase, `me:x:${uid}:0:somebody:${join(root, "home")}:/bin/sh\n`);
  const options = {
    machineKeeperSocketPath: join(root, "none/keeper.sock"),
    userDatabase,
    fallbackFolder: join(root, "tmp"),
  };
  return findKeeperLocation({}, options);
}

/** What is said when the place is looked for, and the same when it is made after it was found in order. */
function refusal(prepare: () => void): string {
  const said: string[] = [];
  let found: ReturnType<typeof place> | null = null;
  try {
    found = place();
  } catch {
    // then the second look is enough
  }
  prepare();
  for (const act of [place, () => found !== null && createKeeperFolders({ ...found, dir: found.dir ?? "" })]) {
    try {
      act();
      said.push("fine");
    } catch (error) {
      said.push(error instanceof BatonError && error.code === "CONFIG" ? error.message : `unexpected: ${error}`);
    }
  }
  expect(said[1]).toBe(said[0] ?? "");
  return said[0] ?? "";
}

const under = (folder: string, wrong: string) =>
  `The keeper's folder ${join(root, folder)} is not safe to use: ${wrong}`;

test.skipIf(uid !== 0)("the folder in /var/tmp that somebody else made first", () => {
  expect(refusal(() => make("tmp", 0o777, stranger))).toBe(
    under("tmp", `it belongs to user ${stranger}, not to ${uid}`),
  );
});

test.skipIf(uid !== 0)("a folder of somebody else's on the way to one's own", () => {
  make("tmp");
  expect(refusal(() => make("tmp/keeper", 0o755, stranger))).toContain(`${stranger}`);
});

test("a folder below /var/tmp that lets others in", () => {
  expect(refusal(() => make("tmp", 0o755))).toBe(
    under("tmp", "its mode is 755, which gives other users access: chmod 700"),
  );
});

test("a link below /var/tmp, wherever it leads", () => {
  make("real");
  expect(refusal(() => symlinkSync(join(root, "real"), join(root, "tmp")))).toBe(under("tmp", "it is a link"));
});

test("a /var/tmp in which everybody may rename everything; the bit that forbids it makes it safe", () => {
  expect(refusal(() => chmodSync(root, 0o777))).toContain("its mode is 777, so other users can rename its files");
  chmodSync(root, 0o1777);
  expect(place().dir?.startsWith(join(root, "tmp/keeper/"))).toBe(true);
});

test.each([0o755, 0o775, 0o700])("an ordinary home with folders of mode %o", (mode) => {
  make("home", mode);
  for (const folder of ["home/.local", "home/.local/state"]) make(folder, mode);
  const found = place();
  expect(found.dir?.startsWith(join(root, "home/.local/state/baton/keeper/"))).toBe(true);
  createKeeperFolders({ ...found, dir: found.dir ?? "" });
  expect(place()).toEqual(found);
});

test("a home whose .local is a link to another disk", () => {
  make("home");
  make("disk/local");
  symlinkSync(join(root, "disk/local"), join(root, "home/.local"));
  const found = place();
  createKeeperFolders({ ...found, dir: found.dir ?? "" });
  expect(place()).toEqual(found);
});

test.each([".local", ".local/state", ".local/state/baton", ".local/state/baton/keeper"])(
  "a home whose %s everybody may write to",
  (folder) => {
    make("home");
    const path = join("home", folder);
    expect(refusal(() => make(path, 0o777))).toBe(
      under(path, "its mode is 777, so other users can rename its files: chmod o-w"),
    );
  },
);

test.skipIf(uid !== 0)("a home with a folder of somebody else's in it, or a link to one", () => {
  make("home");
  expect(refusal(() => make("home/.local", 0o755, stranger))).toContain(`it belongs to user ${stranger}`);
  rmSync(join(root, "home/.local"), { recursive: true });
  expect(refusal(() => {
    make("theirs", 0o755, stranger);
    symlinkSync(join(root, "theirs"), join(root, "home/.local"));
  })).toContain(`it belongs to user ${stranger}`);
});

/** The refusal of BATON_KEEPER_DIR, and the same when the folder is made after it was found in order. */
function refusalOf(dir: string, prepare: () => void = () => {}): string {
  const look = () => findKeeperLocation({ BATON_KEEPER_DIR: dir });
  const before = (() => {
    try {
      return look();
    } catch {
      return null;
    }
  })();
  prepare();
  for (const act of [look, () => before !== null && createKeeperFolders({ ...before, dir })]) {
    try {
      act();
    } catch (error) {
      return error instanceof BatonError && error.code === "CONFIG" ? error.message : `unexpected: ${error}`;
    }
  }
  return "fine";
}

test("BATON_KEEPER_DIR may be anywhere where no other user can rename it", () => {
  expect(refusalOf(join(root, "a/b/keeper"))).toBe("fine"); // below /tmp, which has the sticky bit
  expect(refusalOf(join(root, "c/keeper"), () => make("c", 0o1777))).toBe("fine");
  symlinkSync(join(root, make("real")), join(root, "way"));
  expect(refusalOf(join(root, "way/keeper"))).toBe("fine");
  const own = process.getegid?.() ?? -1;
  chownSync(join(root, make("group", 0o770)), uid, own);
  expect(refusalOf(join(root, "group/keeper"))).toBe("fine");
});

test("BATON_KEEPER_DIR below a folder that all may write is refused, directly and higher up", () => {
  const wrong = under("open", "its mode is 777, so other users can rename its files: chmod o-w");
  expect(refusalOf(join(root, "open/keeper"), () => make("open", 0o777))).toBe(wrong);
  expect(refusalOf(join(root, "open/a/b/keeper"), () => make("open/a/b"))).toBe(wrong);
  // Of two links the second one can be replaced, although both ends are safe.
  symlinkSync(join(root, make("real")), join(root, "open/next"));
  symlinkSync("open/next", join(root, "way"));
  expect(refusalOf(join(root, "way/keeper"))).toBe(wrong);
});

test.skipIf(uid !== 0)("BATON_KEEPER_DIR below another user's folder, and below a group's, is refused", () => {
  const theirs = under("theirs", `it belongs to user ${stranger}, not to ${uid}`);
  expect(refusalOf(join(root, "theirs/keeper"), () => make("theirs", 0o755, stranger))).toBe(theirs);
  expect(refusalOf(join(root, "theirs/a/keeper"), () => make("theirs/a"))).toBe(theirs);
  chownSync(join(root, make("staff", 0o775)), uid, 50);
  expect(refusalOf(join(root, "staff/keeper"))).toBe(
    under("staff", "its mode is 775, so other users can rename its files: chmod go-w"),
  );
});

test.skipIf(uid !== 0)(
  "BATON_KEEPER_DIR through a link is refused if what it leads to, or the link, is another user's",
  () => {
    make("theirs", 0o755, stranger);
    make("theirs/inner");
    symlinkSync(join(root, "theirs/inner"), join(root, "way"));
    expect(refusalOf(join(root, "way/keeper"))).toBe(under("theirs", `it belongs to user ${stranger}, not to ${uid}`));
    symlinkSync(join(root, make("mine")), join(root, "link"));
    lchownSync(join(root, "link"), stranger, stranger);
    expect(refusalOf(join(root, "link/keeper"))).toBe(under("link", `it belongs to user ${stranger}, not to ${uid}`));
  },
);
