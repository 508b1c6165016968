/**
 * The two pipes between `baton hold` and its holder process, which runs on when `baton hold` has ended: lines of JSON.
 * `baton hold` sends a HolderRequest first, and last `holderConfirmedLine` when the script has received the variables,
 * or `holderStopLine` when the lock is no longer wanted. The end of its pipe before the confirmation means "stop", too.
 */
import process from "node:process";
import type { ErrorCode } from "../../base/errors.ts";
import type { ProcessIdentity } from "../../base/process/proc/process_table.ts";

export const holderConfirmedLine = "confirmed\n";
export const holderStopLine = "stop\n";

export interface HolderRequest<Options> {
  /** The command line, resolved. */
  readonly options: Options;
  readonly script: ProcessIdentity;
  /**
   * Variables that the holder process does not have in its own environment: a mark there would make it one of the
   * command's processes.
   */
  readonly env: Readonly<Record<string, string>>;
  /** Width of the terminal on which the wait is shown; null when there is none. */
  readonly columns: number | null;
}

export type HolderMessage<Ending> =
  /** Text for the stderr of `baton hold`. */
  | { readonly kind: "stderr"; readonly text: string; readonly form?: "message" | "display" | undefined }
  /** The same for text that the next frame replaces, such as a line that shows the wait. */
  | { readonly kind: "frame"; readonly text: string }
  /** The lock is held and the guard watches: the variables may be printed. */
  | {
    readonly kind: "held";
    readonly variables: Readonly<Record<string, string | null>>;
    readonly tokens: readonly string[];
    readonly waitedMs: number;
  }
  /** The lock was not acquired, or was lost before the variables were printed. */
  | { readonly kind: "failed"; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: "ended"; readonly ending: Ending };

/** A request is a command line with its settings; a longer line is no request. */
const requestCharsMax = 1 << 20;

/** How the holder writes to `baton hold`, without waiting for it. */
export interface HolderOutput {
  out(text: string): void;
  frame(stream: "stdout", text: string): boolean;
}

/** The holder process's side of the pipes. After the confirmation neither side sends anything. */
export class HolderPipe<Ending> {
  readonly #request = Promise.withResolvers<string>();
  readonly #abandoned = new AbortController();
  /** The first line. Never resolves when there is none; `abandoned` aborts then. */
  readonly request = this.#request.promise;
  /** Aborts when `baton hold` has ended, or says that the lock is no longer wanted. Never after the confirmation. */
  readonly abandoned = this.#abandoned.signal;
  readonly #output: HolderOutput;
  #text = "";
  #isRequested = false;
  /** The script has received the variables. */
  isConfirmed = false;

  constructor(output: HolderOutput, input: NodeJS.ReadStream = process.stdin) {
    this.#output = output;
    input.setEncoding("utf8");
    input.on("data", (text: string) => this.#read(text));
    for (const end of ["end", "close", "error"]) input.on(end, () => this.#abandon());
  }

  send(message: HolderMessage<Ending>): void {
    try {
      this.#output.out(JSON.stringify(message) + "\n");
    } catch {
      // `baton hold` has ended: `abandoned` aborts
    }
  }

  /** Sends what the next frame replaces. False: `baton hold` does not read now. */
  sendFrame(text: string): boolean {
    const message: HolderMessage<Ending> = { kind: "frame", text };
    try {
      return this.#output.frame("stdout", JSON.stringify(message) + "\n");
    } catch {
      return false;
    }
  }

  #read(text: string): void {
    this.#text += text;
    if (this.#text.length > requestCharsMax) return this.#abandon();
    for (let end = this.#text.indexOf("\n"); end >= 0; end = this.#text.indexOf("\n")) {
      const line = this.#text.slice(0, end + 1);
      this.#text = this.#text.slice(end + 1);
      this.#onLine(line);
    }
  }

  #onLine(line: string): void {
    if (!this.#isRequested) {
      this.#isRequested = true;
      this.#request.resolve(line);
    } else if (line === holderConfirmedLine && !this.#abandoned.signal.aborted) {
      this.isConfirmed = true;
    } else this.#abandon();
  }

  #abandon(): void {
    if (!this.isConfirmed) this.#abandoned.abort();
  }
}
