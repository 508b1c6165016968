/** A message's body as a file that a command can have for its stdin: without a name, gone with its last descriptor. */
import { closeSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BatonError, messageOf } from "../../errors.ts";
import { newGuid } from "../../support/guid.ts";
import { openUnnamedFile, writeWhole } from "./unnamed_file.ts";

/** Its descriptor, with its place at the beginning; the caller closes it. Throws IO. */
export function openBodyFile(body: Uint8Array): number {
  try {
    return openUnnamedFile(body) ?? openNamed(body);
  } catch (error) {
    const message = `Cannot write ${body.byteLength} bytes to a file of ${tmpdir()} for a command's stdin: ${
      messageOf(error)
    }`;
    throw new BatonError("IO", message, { cause: error });
  }
}

function openNamed(body: Uint8Array): number {
  const path = join(tmpdir(), `baton-${newGuid()}`);
  const fd = openSync(path, "wx+", 0o600);
  rmSync(path);
  try {
    writeWhole(fd, body);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}
