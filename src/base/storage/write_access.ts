/** Whether the files of a store can still be written, for a process that has nothing to write just now. */
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { errorMessage } from "../errors.ts";

/** Null: they can. A file system becomes read-only after an error of its disk, and rights may be taken away. */
export function whyStoreNotWritable(folder: string, file: string): string | null {
  try {
    for (const path of [folder, join(folder, file)]) accessSync(path, constants.W_OK);
    return null;
  } catch (error) {
    return `the files of the store cannot be written: ${errorMessage(error)}`;
  }
}
