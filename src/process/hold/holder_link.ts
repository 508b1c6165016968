/** The holder's side of its two pipes to `baton hold`. After the hand-over nothing comes or goes any more. */
import process from "node:process";
import { writeWhole } from "../../support/write_whole.ts";
import { type HolderMessage, takenLine } from "./holder_messages.ts";

/** A request is a command line with its settings; a longer one is no request. */
const requestCharsMax = 1 << 20;

export class HolderLink<Ending> {
  /** The first line. Never resolves when there is none; `gone` aborts then. */
  readonly request: Promise<string>;
  /** Resolves when the script has been told what it holds. */
  readonly taken: Promise<void>;

  readonly #gone = new AbortController();
  readonly #resolveRequest: (line: string) => void;
  readonly #resolveTaken: () => void;
  #text = "";
  #isRequested = false;
  #isTaken = false;

  constructor(input: NodeJS.ReadStream = process.stdin) {
    const request = Promise.withResolvers<string>();
    const taken = Promise.withResolvers<void>();
    [this.request, this.#resolveRequest] = [request.promise, request.resolve];
    [this.taken, this.#resolveTaken] = [taken.promise, taken.resolve];
    input.setEncoding("utf8");
    input.on("data", (text: string) => this.#read(text));
    for (const end of ["end", "close", "error"]) input.on(end, () => this.#leave());
  }

  /** Aborts when nobody waits for the lock any more. Never after it was taken. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  get isTaken(): boolean {
    return this.#isTaken;
  }

  say(message: HolderMessage<Ending>): void {
    try {
      writeWhole(1, JSON.stringify(message) + "\n");
    } catch {
      // nobody there: `gone` says so
    }
  }

  #read(text: string): void {
    this.#text += text;
    if (this.#text.length > requestCharsMax) return this.#leave();
    for (let end = this.#text.indexOf("\n"); end >= 0; end = this.#text.indexOf("\n")) {
      const line = this.#text.slice(0, end + 1);
      this.#text = this.#text.slice(end + 1);
      this.#heard(line);
    }
  }

  #heard(line: string): void {
    if (!this.#isRequested) {
      this.#isRequested = true;
      this.#resolveRequest(line);
    } else if (line === takenLine && !this.#gone.signal.aborted) {
      this.#isTaken = true;
      this.#resolveTaken();
    } else this.#leave();
  }

  #leave(): void {
    if (!this.#isTaken) this.#gone.abort();
  }
}
