/** A shell on its own terminal, which types lines and records what the terminal shows, with the time. */
import type { TerminalOutput } from "./terminal_screen.ts";

export interface RecordedTerminalOptions {
  readonly columns: number;
  readonly rows: number;
  readonly env: Readonly<Record<string, string>>;
  readonly folder: string;
  readonly startMs: number;
}

/** Time between two typed characters, in milliseconds. */
const typingMs = 40;
const heldGetMsMax = 30_000;

export class RecordedTerminal implements AsyncDisposable {
  readonly output: TerminalOutput[] = [];
  readonly #terminal: Bun.Terminal;
  readonly #shell: Bun.Subprocess;
  readonly #decoder = new TextDecoder();
  #changed = Promise.withResolvers<void>();

  constructor({ columns, rows, env, folder, startMs }: RecordedTerminalOptions) {
    this.#terminal = new Bun.Terminal({
      cols: columns,
      rows,
      name: "xterm",
      data: (_terminal, bytes) => {
        const text = this.#decoder.decode(bytes, { stream: true });
        this.output.push({ atMs: performance.now() - startMs, text });
        this.#changed.resolve();
        this.#changed = Promise.withResolvers();
      },
    });
    this.#shell = Bun.spawn(["/bin/sh", "-i", "+m"], {
      terminal: this.#terminal,
      cwd: folder,
      env: { TERM: "xterm", ...env },
    });
  }

  get text(): string {
    return this.output.map(({ text }) => text).join("");
  }

  /** Types a line as a user does. */
  async type(line: string): Promise<void> {
    for (const character of line) {
      this.#terminal.write(character);
      await Bun.sleep(typingMs);
    }
    this.#terminal.write("\r");
  }

  /** Resolves with the match when the text since `from` (a length of `text`) matches. Rejects after 30 s. */
  async shows(pattern: RegExp, from = 0): Promise<RegExpExecArray> {
    const deadline = AbortSignal.timeout(heldGetMsMax);
    for (;;) {
      const match = pattern.exec(this.text.slice(from));
      if (match !== null) return match;
      const expired = new Promise<never>((_resolve, reject) => {
        const fail = () => reject(new Error(`the terminal does not show ${pattern}, but ${JSON.stringify(this.text)}`));
        if (deadline.aborted) fail();
        deadline.addEventListener("abort", fail, { once: true });
      });
      await Promise.race([this.#changed.promise, expired]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#terminal.write("\x04");
    const killed = setTimeout(() => this.#shell.kill("SIGKILL"), 10_000);
    await this.#shell.exited;
    clearTimeout(killed);
    this.#terminal.close();
  }
}
