/** Checks that a store's files are still writable while the process has nothing to write. */
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { errorMessage } from "../errors.ts";

/**
 * Returns why the files cannot be written, or null if they can. A disk error may have made the file system read-only,
 * or an operator may have changed permissions.
 */
export function whyStoreNotWritable(folder: string, file: string): string | null {
  try {
    for (const path of [folder, join(folder, file)]) accessSync(path, constants.W_OK);
    return null;
  } catch (error) {
    return `the files of the store cannot be written: ${errorMessage(error)}`;
  }
}
