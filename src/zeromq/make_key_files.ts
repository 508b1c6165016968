/** A new key pair as two files: FILE for its owner, FILE.pub for the others. Whole or not there at all, and on the disk. */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { BatonError, messageOf } from "../errors.ts";
import { flushPath } from "../storage/durable_file.ts";
import { x25519KeyBytes, x25519Secret } from "../support/x25519.ts";
import { publicCertificate, secretCertificate } from "./curve_certificate.ts";

export interface KeyFiles {
  readonly publicKey: Uint8Array;
  readonly file: string;
  readonly publicFile: string;
}

/** A secret key. 32 bytes. */
export function newSecretKey(): Uint8Array {
  return new Uint8Array(randomBytes(x25519KeyBytes));
}

/**
 * Makes both files. Unless `replaces`, neither may be there, whoever makes one at the same moment. Throws CANNOT_CREATE; nothing
 * new is there then.
 */
export function makeKeyFiles(file: string, { replaces }: { readonly replaces: boolean }): KeyFiles {
  const secretKey = newSecretKey();
  const { publicKey } = x25519Secret(secretKey);
  const publicFile = `${file}.pub`;
  const pieces = [
    { path: file, text: secretCertificate(secretKey), mode: 0o600 },
    { path: publicFile, text: publicCertificate(publicKey), mode: 0o644 },
  ].map((piece) => ({ ...piece, draft: draftOf(piece.path) }));
  secretKey.fill(0);
  const made: string[] = [];
  let path = file;
  try {
    // Before the first is replaced: no key is lost because the other cannot be.
    for (const piece of pieces) {
      path = piece.path;
      if (isFolder(path)) throw new Error("it is a folder");
    }
    for (const piece of pieces) {
      path = piece.path;
      write(piece);
    }
    for (const piece of pieces) {
      path = piece.path;
      // A link is refused where there is a file; a rename replaces it.
      if (replaces) renameSync(piece.draft, piece.path);
      else linkSync(piece.draft, piece.path);
      made.push(piece.path);
    }
    flushPath(dirname(file));
  } catch (error) {
    if (!replaces) { for (const one of made) rmSync(one, { force: true }); }
    throw new BatonError("CANNOT_CREATE", `Cannot make the key file ${path}: ${reasonOf(error, path)}`, {
      cause: error,
    });
  } finally {
    for (const { draft } of pieces) rmSync(draft, { force: true });
  }
  return { publicKey, file, publicFile };
}

function draftOf(path: string): string {
  return join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}`);
}

function write({ draft, text, mode }: { readonly draft: string; readonly text: string; readonly mode: number }): void {
  const fd = openSync(draft, "wx", mode);
  try {
    if (mode === 0o600) fchmodSync(fd, mode); // whatever the umask takes away
    writeFileSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function reasonOf(error: unknown, path: string): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EEXIST") return "it is there already; --force puts a new key in its place";
  return code === "ENOENT" ? `there is no folder ${dirname(path)}` : messageOf(error);
}
