/**
 * The two pipes between `baton hold` and its holder process, which continues after the end of `baton hold`. Both send
 * lines of JSON. `baton hold` first sends a HolderRequest. Later it sends `holderConfirmedLine` when the script has
 * received the variables, or `holderStopLine` when the script no longer wants the lock. If its pipe ends before the
 * confirmation, that also means "stop".
 */
import process from "node:process";
import type { ErrorCode } from "../../base/errors.ts";
import type { ProcessIdentity } from "../../base/process/proc/process_table.ts";

export const holderConfirmedLine = "confirmed\n";
export const holderStopLine = "stop\n";

export interface HolderRequest<Options> {
  /** The parsed command line. */
  readonly options: Options;
  readonly script: ProcessIdentity;
  /**
   * Variables that the holder process must not have in its own environment. If it had BATON_LOCK_COOKIE, it would count
   * as one of the command's processes.
   */
  readonly env: Readonly<Record<string, string>>;
  /** The width of the terminal that shows the wait; null if there is no terminal. */
  readonly columns: number | null;
}

export type HolderMessage<Ending> =
  /** A text for the stderr of `baton hold`. */
  | { readonly kind: "stderr"; readonly text: string; readonly form?: "message" | "display" | undefined }
  /** A text for the stderr of `baton hold` that the next frame replaces, such as a line that shows the wait. */
  | { readonly kind: "frame"; readonly text: string }
  /** The lock is held and the guard process is watching; `baton hold` may print the variables. */
  | {
    readonly kind: "held";
    readonly variables: Readonly<Record<string, string | null>>;
    readonly tokens: readonly string[];
    readonly waitedMs: number;
  }
  /** The lock was not acquired, or was lost before the variables were printed. */
  | { readonly kind: "failed"; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: "ended"; readonly ending: Ending };

/** The longest request. A request is a command line with its settings, so a longer line cannot be a request. */
const requestCharsMax = 1 << 20;

/** Writes to `baton hold` without waiting for it. */
export interface HolderOutput {
  out(text: string): void;
  frame(stream: "stdout", text: string): boolean;
}

/** The holder process's end of the pipes. After the confirmation, neither side sends anything. */
export class HolderPipe<Ending> {
  readonly #request = Promise.withResolvers<string>();
  readonly #abandoned = new AbortController();
  /** Resolves with the first line. If there is no line, this promise never resolves, but `abandoned` aborts. */
  readonly request = this.#request.promise;
  /** Aborts when `baton hold` has ended or no longer wants the lock, but not after the confirmation. */
  readonly abandoned = this.#abandoned.signal;
  readonly #output: HolderOutput;
  #text = "";
  #isRequested = false;
  /** True if the script has received the variables. */
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
      // `baton hold` has ended, so `abandoned` aborts
    }
  }

  /** Sends a frame. Returns false if `baton hold` is not reading now. */
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
