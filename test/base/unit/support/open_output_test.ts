import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  lchownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { openOutputFile, refuseLinksOfOthers } from "../../../../src/base/support/open_output.ts";

const isRoot = process.geteuid?.() === 0;
if (!isRoot) console.log("other users' links are not tested: only root can make them");
const stranger = 65534;

let folder: string;
let shared: string;
let target: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "open-output-"));
  target = join(folder, "target");
});
beforeEach(() => {
  shared = mkdtempSync(join(folder, "shared-"));
  chmodSync(shared, 0o1777);
  writeFileSync(target, "kept");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const write = (path: string, access: Parameters<typeof openOutputFile>[1] = "replace") => {
  const fd = openOutputFile(path, access);
  writeSync(fd, "new");
  closeSync(fd);
};

function linkOfStranger(to: string, path = join(shared, "out")): string {
  symlinkSync(to, path);
  lchownSync(path, stranger, stranger);
  return path;
}

describe.each(["replace", "append", "extend", "update"] as const)("to %s", (access) => {
  test("a missing file is made, and one of this user is used", () => {
    const path = join(shared, "out");
    write(path, access);
    expect(readFileSync(path, "utf8")).toBe("new");
    write(path, access);
    expect(readFileSync(path, "utf8")).toBe(access === "append" || access === "extend" ? "newnew" : "new");
  });

  test("a link of this user leads to its file, or makes it, also in a folder for all", () => {
    writeFileSync(join(shared, "there"), "");
    for (const name of ["there", "missing"]) {
      symlinkSync(name, join(shared, `to-${name}`));
      write(join(shared, `to-${name}`), access);
      expect(readFileSync(join(shared, name), "utf8")).toBe("new");
    }
  });

  test.skipIf(!isRoot)("a link of another user in a folder for all is refused, and its target stays", () => {
    expect(() => write(linkOfStranger(target), access)).toThrow(
      `"${shared}/out" is a link of user ${stranger} in a folder where other users may write; ` +
        "name a file in another folder",
    );
    expect(() => write(linkOfStranger(join(folder, "none"), join(shared, "out2")), access)).toThrow(
      "is a link of user",
    );
    expect(readFileSync(target, "utf8")).toBe("kept");
  });
});

test.skipIf(!isRoot)("a link in the middle of the path, and one behind a link of this user, is refused", () => {
  mkdirSync(join(folder, "inner"), { recursive: true });
  linkOfStranger(join(folder, "inner"), join(shared, "middle"));
  expect(() => write(join(shared, "middle", "file"))).toThrow("is a link of user");
  expect(() => refuseLinksOfOthers(join(shared, "middle"))).toThrow("is a link of user");
  symlinkSync(linkOfStranger(target), join(folder, "mine"));
  expect(() => write(join(folder, "mine"))).toThrow("is a link of user");
  expect(() => write(`${shared}/middle/../x`)).toThrow("is a link of user");
  rmSync(join(folder, "mine"));
});

test.skipIf(!isRoot)("a file and a FIFO of another user in a sticky folder are refused", () => {
  const file = join(shared, "file");
  writeFileSync(file, "theirs");
  chownSync(file, stranger, stranger);
  expect(() => write(file)).toThrow(`is a file of user ${stranger}`);
  expect(readFileSync(file, "utf8")).toBe("theirs");
  const fifo = join(shared, "fifo");
  expect(Bun.spawnSync(["mkfifo", fifo]).exitCode).toBe(0);
  chownSync(fifo, stranger, stranger);
  expect(() => write(fifo)).toThrow(`is a FIFO of user ${stranger}`);
});

test.skipIf(!isRoot)(
  "links of this user, of the folder's owner, and in folders where others may not write are followed",
  () => {
    symlinkSync(target, join(shared, "mine"));
    write(join(shared, "mine"));
    expect(readFileSync(target, "utf8")).toBe("new");
    chownSync(shared, stranger, stranger);
    write(linkOfStranger(target, join(shared, "owner")));
    chownSync(shared, 0, 0);
    chmodSync(shared, 0o755);
    write(linkOfStranger(target, join(shared, "closed")));
  },
);

test.skipIf(!isRoot)(
  "a folder that all may write to is as dangerous without the sticky bit; one of a group with it",
  () => {
    chmodSync(shared, 0o777);
    expect(() => write(linkOfStranger(target))).toThrow("is a link of user");
    chmodSync(shared, 0o1770);
    expect(() => write(join(shared, "out"))).toThrow("is a link of user");
    chmodSync(shared, 0o770);
    write(join(shared, "out"));
  },
);

test("a file of this user in a folder for all, of which there is a hard link, is refused", () => {
  linkSync(target, join(shared, "hard"));
  expect(() => write(join(shared, "hard"))).toThrow("is a file with further names (hard links) in a folder where");
  expect(readFileSync(target, "utf8")).toBe("kept");
  linkSync(target, join(folder, "hard"));
  write(join(folder, "hard"));
  expect(readFileSync(target, "utf8")).toBe("new");
});

test("a FIFO without a reader is refused without waiting; one with a reader is written to", () => {
  const fifo = join(folder, "fifo");
  expect(Bun.spawnSync(["mkfifo", fifo]).exitCode).toBe(0);
  for (const access of ["replace", "append"] as const) {
    expect(() => write(fifo, access)).toThrow(`"${fifo}" is a FIFO that no process reads`);
  }
  const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  write(fifo);
  expect(readFileSync(reader, "utf8")).toBe("new");
  closeSync(reader);
});

test("the name of stdout in other programs is no file by accident", () => {
  expect(() => write("-")).toThrow('"-" is not stdout here; for a file of this name, write ./-');
});

test("devices and open files are opened by their paths", () => {
  write("/dev/null");
  const fd = openOutputFile(target, "replace");
  write(`/proc/self/fd/${fd}`, "append");
  closeSync(fd);
  expect(readFileSync(target, "utf8")).toBe("new");
});

test("a path without an end has the system's error", () => {
  symlinkSync("loop", join(folder, "loop"));
  expect(() => write(join(folder, "loop"))).toThrow("ELOOP");
  expect(() => write(join(folder, "none", "file"))).toThrow("ENOENT");
});
