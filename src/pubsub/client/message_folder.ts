/**
 * Writes each message to a file exactly once, even if the process is killed at any moment and another program removes
 * the files. The steps change the folder and the client's state in turn:
 *
 *   1 write <seq>.part and flush it   2 flush the folder   3 store the intent   4 rename to <seq>   5 flush the folder
 *   6 store the cursor
 *
 * After a kill between steps 3 and 6, the intent is above the cursor. Recovery then renames every .part file that is
 * left; a message without a .part file was delivered already. After a kill in step 1, a .part file may contain half a
 * message, so such files are removed before step 3.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { BatonError, errorMessage, systemCallErrorReason } from "../../base/errors.ts";
import { refuseLinksOfOthers } from "../../base/support/open_output.ts";
import { flushParentFolders, flushPath, writeFlushedFile } from "../../base/storage/durable_file.ts";
import type { ClientState } from "./client_state.ts";

/** The name of the file that tells which client and topic own the folder. */
const ownerFileName = ".baton-pubsub";

export interface MessageFolderEntry {
  readonly id: number;
  readonly body: Uint8Array;
}

export interface MessageFolderOptions {
  readonly state: ClientState;
  readonly topic: string;
  /** Called before each step, for tests. */
  readonly onStep?: (step: string) => void;
}

export class MessageFolder {
  readonly path: string;
  readonly #options: MessageFolderOptions;
  /**
   * The IDs of the .part files that an earlier process left, in ascending order. The client may have skipped these
   * messages since then.
   */
  #leftParts: readonly number[];

  /** Creates or opens the folder. Throws USAGE if another client ID or topic owns it, CANNOT_CREATE, or IO. */
  constructor(path: string, options: MessageFolderOptions) {
    this.path = makeMessageFolder(path);
    this.#options = options;
    claimFolder(this.path, options.state.id, options.topic);
    this.#leftParts = this.#rethrowAsIo(() => findParts(this.path, 0, Infinity));
  }

  /**
   * Delivers the messages in the order of their IDs. If a write fails, delivers the messages that were written, and
   * throws IO; the others are delivered again later. The disk thus needs no space for all messages if another program
   * removes the files.
   */
  deliver(messages: readonly MessageFolderEntry[]): void {
    const { written, failure } = this.#write(messages);
    const last = written.at(-1);
    if (last !== undefined) this.#moveIntoPlace(written, last.id);
    if (failure !== null) throw failure;
  }

  /** Writes .part files. Stops at the first failure, and returns it. */
  #write(
    messages: readonly MessageFolderEntry[],
  ): { readonly written: readonly MessageFolderEntry[]; readonly failure: unknown } {
    const { onStep = () => {} } = this.#options;
    const written: MessageFolderEntry[] = [];
    try {
      for (const message of messages) {
        onStep(`write ${message.id}`);
        this.#rethrowAsIo(() => writePart(join(this.path, `${message.id}.part`), message.body));
        written.push(message);
      }
    } catch (failure) {
      return { written, failure };
    }
    return { written, failure: null };
  }

  #moveIntoPlace(messages: readonly MessageFolderEntry[], last: number): void {
    const { state, topic, onStep = () => {} } = this.#options;
    onStep("flush parts");
    this.#rethrowAsIo(() => {
      this.#removeLeftParts(messages, last);
      flushPath(this.path);
    });
    const { cursor } = state.subscriberPosition(topic);
    onStep("intent");
    state.setPosition(topic, { cursor, intent: last, folder: this.path });
    this.#rethrowAsIo(() => {
      for (const { id } of messages) {
        onStep(`rename ${id}`);
        renameSync(join(this.path, `${id}.part`), join(this.path, `${id}`));
      }
      onStep("flush names");
      flushPath(this.path);
    });
    onStep("cursor");
    state.setPosition(topic, { cursor: last, intent: last, folder: null });
    onStep("done");
  }

  /**
   * Removes .part files up to the ID `last` that this delivery did not write. Keeps files with higher IDs, because a
   * process that took over the client with another state may be renaming them now.
   */
  #removeLeftParts(messages: readonly MessageFolderEntry[], last: number): void {
    const written = new Set(messages.map(({ id }) => id));
    for (const id of this.#leftParts) {
      if (id <= last && !written.has(id)) rmSync(join(this.path, `${id}.part`), { force: true });
    }
    this.#leftParts = this.#leftParts.filter((id) => id > last);
  }

  #rethrowAsIo<T>(work: () => T): T {
    try {
      return work();
    } catch (thrown) {
      throw new BatonError("IO", `Cannot write messages to the folder ${this.path}: ${systemCallErrorReason(thrown)}`, {
        cause: thrown,
      });
    }
  }
}

/**
 * Completes an interrupted delivery in the folder where it began. Throws IO if the folder is missing, because it is
 * then unknown which messages were delivered.
 */
export function recoverMessageFolder({ state, topic, onStep = () => {} }: MessageFolderOptions): void {
  const { cursor, intent, folder } = state.subscriberPosition(topic);
  if (folder === null || intent <= cursor) return;
  try {
    readFileSync(join(folder, ownerFileName));
    for (const id of findParts(folder, cursor, intent)) {
      onStep(`rename ${id}`);
      renameSync(join(folder, `${id}.part`), join(folder, `${id}`));
    }
    onStep("flush names");
    flushPath(folder);
  } catch (thrown) {
    const sentence =
      `Cannot finish the interrupted delivery into ${folder}: ${errorMessage(thrown)}; without that folder it is ` +
      `unknown which messages up to ${intent} of topic "${topic}" were delivered. Restore the folder; if it is lost, ` +
      "use seek to continue after the last message that was seen";
    throw new BatonError("IO", sentence, { cause: thrown });
  }
  onStep("cursor");
  state.setPosition(topic, { cursor: intent, intent, folder: null });
}

/** Returns the IDs, from `cursor` + 1 to `intent`, whose files were written and not renamed, in ascending order. */
function findParts(folder: string, cursor: number, intent: number): number[] {
  return readdirSync(folder)
    .map((name) => Number(/^(\d{1,16})\.part$/.exec(name)?.[1] ?? -1))
    .filter((id) => id > cursor && id <= intent)
    .sort((a, b) => a - b);
}

/**
 * Creates the folder and returns its real path, which stays valid even if a symbolic link changes. Throws
 * CANNOT_CREATE.
 */
export function makeMessageFolder(path: string): string {
  try {
    refuseLinksOfOthers(path);
    mkdirSync(path, { recursive: true });
    return realpathSync(path);
  } catch (thrown) {
    throw new BatonError("CANNOT_CREATE", `Cannot make the folder ${resolve(path)}: ${systemCallErrorReason(thrown)}`, {
      cause: thrown,
    });
  }
}

function claimFolder(path: string, client: string, topic: string): void {
  const file = join(path, ownerFileName);
  const wanted = `${JSON.stringify({ client, topic })}\n`;
  const bytes = new TextEncoder().encode(wanted);
  try {
    // Flushes the folder before the owner file exists: a process that finds the file then need not flush the folder.
    if (!existsSync(file)) flushParentFolders(path);
    writeFlushedFile(file, bytes, { flags: "wx" });
    flushPath(path);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") {
      throw new BatonError("CANNOT_CREATE", `Cannot write to the folder ${path}: ${systemCallErrorReason(thrown)}`, {
        cause: thrown,
      });
    }
    const found = readOwnerFile(file);
    if (found === wanted) return;
    // An earlier process was killed between creating and writing the file.
    if (found === "") return writeFlushedFile(file, bytes);
    throw new BatonError("USAGE", `The folder ${path} belongs to ${found.trim()}, and not to ${wanted.trim()}`);
  }
}

function readOwnerFile(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (thrown) {
    throw new BatonError("IO", `Cannot read whose folder it is in ${file}: ${systemCallErrorReason(thrown)}`, {
      cause: thrown,
    });
  }
}

/** Writes a part file. If the disk is full, removes the file. */
function writePart(path: string, body: Uint8Array): void {
  try {
    rmSync(path, { force: true });
    writeFlushedFile(path, body, { flags: "wx" }); // "wx" never follows a link that another user of the folder has made
  } catch (thrown) {
    try {
      rmSync(path, { force: true });
    } catch {
      // Reports the first error.
    }
    throw thrown;
  }
}
