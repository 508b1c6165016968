/** Replaces a file in one step, so that a reader sees either the old or the new content. */
import { closeSync, fchmodSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import process from "node:process";
import { BatonError, systemCallErrorReason } from "../errors.ts";
import { refuseLinksOfOthers } from "./open_output.ts";

interface ReplaceFileOptions {
  readonly what?: string;
  /** The mode of the file, whatever the umask is. */
  readonly mode?: number;
}

/** Writes a new file and renames it. `what` names the file in messages. Throws CANNOT_CREATE. */
export function replaceFile(path: string, text: string, { what = path, mode }: ReplaceFileOptions = {}): void {
  const draft = `${resolve(path)}.${process.pid}.new`;
  try {
    refuseLinksOfOthers(dirname(draft));
    rmSync(draft, { force: true });
    const fd = openSync(draft, "wx"); // fails if the file is a link, which another user of the folder may have made
    try {
      if (mode !== undefined) fchmodSync(fd, mode);
      writeFileSync(fd, text);
    } finally {
      closeSync(fd);
    }
    renameSync(draft, path);
  } catch (thrown) {
    rmSync(draft, { force: true });
    throw new BatonError("CANNOT_CREATE", `Cannot write ${what}: ${systemCallErrorReason(thrown)}`, { cause: thrown });
  }
}
