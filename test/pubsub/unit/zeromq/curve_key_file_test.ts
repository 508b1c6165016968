import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { readCurvePublicKey, readCurveSecretKey } from "../../../../src/protocols/zeromq/curve_key_file.ts";
import { makeCurveKeyFiles } from "../../../../src/protocols/zeromq/make_key_files.ts";
import { BatonError, type ErrorCode } from "../../../../src/base/errors.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-keys-"));
afterAll(() => rmSync(folder, { recursive: true }));

let made = 0;
/** Where there is no file yet. */
function newPath(): string {
  return join(folder, `${++made}.key`);
}

function newKey(): { path: string; publicKey: Uint8Array } {
  const path = newPath();
  return { path, publicKey: makeCurveKeyFiles(path, { replaces: false }).publicKey };
}

function refusal(action: () => unknown, code: ErrorCode = "CONFIG"): string {
  try {
    action();
  } catch (error) {
    if (error instanceof BatonError && error.code === code) return error.message;
    throw error;
  }
  throw new Error("Nothing was refused");
}

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

describe("making a pair", () => {
  test("gives a secret file that its owner alone may read, and a public one, of the same pair", () => {
    const { path, publicKey } = newKey();
    expect([modeOf(path), modeOf(`${path}.pub`)]).toEqual(["600", (0o644 & ~process.umask()).toString(8)]);
    expect(readCurveSecretKey(path).publicKey).toEqual(publicKey);
    expect(readCurvePublicKey(`${path}.pub`)).toEqual(publicKey);
    expect(newKey().publicKey).not.toEqual(publicKey);
  });

  test("a umask that takes everything away does not lock the owner out", () => {
    const umask = process.umask(0o777);
    try {
      expect(modeOf(newKey().path)).toBe("600");
    } finally {
      process.umask(umask);
    }
  });

  test.each(["", ".pub"])("replaces no FILE%s, and leaves nothing new behind", (ending) => {
    const path = newPath();
    writeFileSync(`${path}${ending}`, "as it was");
    const before = readdirSync(folder).sort();
    expect(refusal(() => makeCurveKeyFiles(path, { replaces: false }), "CANNOT_CREATE")).toBe(
      `Cannot make the key file ${path}${ending}: it exists already; --force replaces it`,
    );
    expect(readdirSync(folder).sort()).toEqual(before);
    expect(readFileSync(`${path}${ending}`, "utf8")).toBe("as it was");
  });

  test("replaces both files when it is told to, whatever their modes were", () => {
    const { path, publicKey } = newKey();
    chmodSync(path, 0o666);
    const second = makeCurveKeyFiles(path, { replaces: true });
    expect(second.publicKey).not.toEqual(publicKey);
    expect(modeOf(path)).toBe("600");
    expect(readCurveSecretKey(path).publicKey).toEqual(second.publicKey);
    expect(readCurvePublicKey(`${path}.pub`)).toEqual(second.publicKey);
  });

  test("in a folder that is not there makes nothing, and says which folder", () => {
    const path = join(folder, "nowhere/a.key");
    expect(refusal(() => makeCurveKeyFiles(path, { replaces: false }), "CANNOT_CREATE")).toBe(
      `Cannot make the key file ${path}: there is no folder ${join(folder, "nowhere")}`,
    );
  });

  test("in the place of a folder makes nothing, not even with replacement", () => {
    const path = newPath();
    mkdirSync(path);
    refusal(() => makeCurveKeyFiles(path, { replaces: true }), "CANNOT_CREATE");
    expect(existsSync(`${path}.pub`)).toBe(false);
    expect(readdirSync(folder).filter((name) => name.startsWith("."))).toEqual([]);
  });
});

describe("a secret key is refused", () => {
  test.each([0o604, 0o620, 0o644, 0o666])("with a mode that lets others in: %o", (mode) => {
    const { path } = newKey();
    chmodSync(path, mode);
    expect(refusal(() => readCurveSecretKey(path))).toBe(
      `The secret key ${path} has mode ${mode.toString(8)}, which lets other users read it: chmod 600 ${path}`,
    );
    chmodSync(path, 0o400);
    readCurveSecretKey(path);
  });

  test.if(process.geteuid?.() === 0)("when it is another user's", () => {
    const { path } = newKey();
    chownSync(path, 12345, 12345);
    expect(refusal(() => readCurveSecretKey(path))).toBe(
      `The secret key ${path} belongs to user 12345, who can read and change it: it must be owned by user 0`,
    );
  });

  test("where a public key was given for it, with the file that likely has it", () => {
    const { path } = newKey();
    expect(refusal(() => readCurveSecretKey(`${path}.pub`))).toBe(
      `${path}.pub has only a public key, and the secret key is needed here; it is probably in ${path}`,
    );
  });
});

test("a secret key is not taken for a public one: it is where it should not be", () => {
  const { path } = newKey();
  expect(refusal(() => readCurvePublicKey(path))).toBe(
    `${path} has a secret key, which is for its owner alone; the public key is needed here; ` +
      `it is probably in ${path}.pub`,
  );
});

describe("what is no key file", () => {
  test("is not there", () => {
    const path = newPath();
    expect(refusal(() => readCurveSecretKey(path))).toBe(
      `Cannot read the key file ${path}: it does not exist; baton pubsub keygen ${path} makes one`,
    );
  });

  test("is a folder, or a pipe that nobody writes to, for which nobody waits", () => {
    expect(refusal(() => readCurveSecretKey(folder))).toBe(`Cannot read the key file ${folder}: it is not a file`);
    const pipe = newPath();
    Bun.spawnSync(["mkfifo", "-m", "600", pipe]);
    expect(refusal(() => readCurveSecretKey(pipe))).toContain("it is not a file");
  });

  test("is far too large", () => {
    const path = newPath();
    writeFileSync(path, new Uint8Array(70_000));
    expect(refusal(() => readCurvePublicKey(path))).toBe(`${path} is no key file: it has 70000 bytes`);
  });

  test("is not text", () => {
    const path = newPath();
    writeFileSync(path, new Uint8Array([0xff, 0xfe, 0x00, 0x80]));
    expect(refusal(() => readCurvePublicKey(path))).toContain("There is no key in");
  });
});
