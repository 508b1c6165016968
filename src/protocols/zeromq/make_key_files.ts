/**
 * Writes a new key pair as two files: FILE for its owner, FILE.pub for other users. Makes both files durable, or
 * neither.
 */
import { randomBytes } from "node:crypto";
import { linkSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { refuseLinksOfOthers } from "../../base/support/open_output.ts";
import { flushPath, writeFlushedFile } from "../../base/storage/durable_file.ts";
import { prepareX25519Secret, x25519KeyBytes } from "../../base/support/x25519.ts";
import { formatPublicCurveCertificate, formatSecretCurveCertificate } from "./curve_certificate.ts";

export interface CurveKeyFiles {
  readonly publicKey: Uint8Array;
  readonly file: string;
  readonly publicFile: string;
}

export function newCurveSecretKey(): Uint8Array {
  return new Uint8Array(randomBytes(x25519KeyBytes));
}

/**
 * Makes both files. If `replaces` is true, replaces existing files; otherwise throws if a file exists, even if another
 * process has just created it. Throws CANNOT_CREATE, and then leaves no new file.
 */
export function makeCurveKeyFiles(file: string, { replaces }: { readonly replaces: boolean }): CurveKeyFiles {
  const secretKey = newCurveSecretKey();
  const { publicKey } = prepareX25519Secret(secretKey);
  const publicFile = `${file}.pub`;
  const pieces = [
    { path: file, text: formatSecretCurveCertificate(secretKey), mode: 0o600 },
    { path: publicFile, text: formatPublicCurveCertificate(publicKey), mode: 0o644 },
  ].map((piece) => ({ ...piece, draft: draftPath(piece.path) }));
  secretKey.fill(0);
  const made: string[] = [];
  let path = file;
  try {
    refuseLinksOfOthers(dirname(file));
    // Both new files are written before the first old file is replaced, so that no key is lost if writing the second
    // file fails.
    for (const piece of pieces) {
      path = piece.path;
      if (isFolder(path)) throw new Error("it is a folder");
    }
    for (const { draft, text, mode, ...piece } of pieces) {
      path = piece.path;
      writeFlushedFile(draft, text, { flags: "wx", mode });
    }
    for (const piece of pieces) {
      path = piece.path;
      // A link fails if the file exists; a rename replaces it.
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

function draftPath(path: string): string {
  return join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}`);
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function reasonOf(error: unknown, path: string): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EEXIST") return "it exists already; --force replaces it";
  return code === "ENOENT" ? `there is no folder ${dirname(path)}` : errorMessage(error);
}
