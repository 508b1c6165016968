/** A program on a terminal of its own: what it shows, and what is typed. */
import { eventually } from "./eventually.ts";

export interface TerminalOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly columns?: number;
  readonly rows?: number;
}

export class TerminalSession implements AsyncDisposable {
  readonly #terminal: Bun.Terminal;
  readonly #child: Bun.Subprocess;
  readonly #decoder = new TextDecoder();
  #shown = "";

  constructor(command: readonly string[], { env, cwd, columns = 100, rows = 50 }: TerminalOptions) {
    this.#terminal = new Bun.Terminal({
      cols: columns,
      rows,
      name: "xterm",
      data: (_terminal, bytes) => void (this.#shown += this.#decoder.decode(bytes, { stream: true })),
    });
    // A shell needs the terminal as its controlling terminal.
    this.#child = Bun.spawn(["setsid", "--ctty", "--wait", ...command], {
      terminal: this.#terminal,
      cwd,
      env: { TERM: "xterm", ...env },
    });
  }

  /** All that was written to the terminal, escape codes included. */
  get shown(): string {
    return this.#shown;
  }

  /** The same without escape codes. */
  get text(): string {
    // deno-lint-ignore no-control-regex -- escape codes are control characters
    return this.#shown.replaceAll(/\x1b\[[0-9;?>=]*[A-Za-z]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[=>()][A-Z0-9]?/g, "")
      .replaceAll("\x07", "");
  }

  /** Types `keys`; what was shown before is forgotten. */
  type(keys: string): void {
    this.#shown = "";
    this.#terminal.write(keys);
  }

  /** Resolves when the visible text contains `part`. */
  async shows(part: string | RegExp): Promise<string> {
    const isShown = () => typeof part === "string" ? this.text.includes(part) : part.test(this.text);
    const found = eventually(isShown, { what: `${part} on the terminal`, withinMs: 30_000 });
    await found.catch((thrown: unknown) => {
      throw new Error(`The terminal shows ${JSON.stringify(this.text)}, not ${part}`, { cause: thrown });
    });
    return this.text;
  }

  /** The exit code, and what was shown up to the end; wait with shows() for the last bytes. */
  async ended(): Promise<{ readonly code: number | null; readonly shown: string }> {
    const code = await this.#child.exited;
    this.#terminal.close();
    return { code, shown: this.#shown };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
    this.#terminal.close();
  }
}
