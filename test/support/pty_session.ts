/**
 * A program on a pseudo terminal, by Python's pty module: keys to it, what it draws, and how the terminal was left.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { eventually } from "./eventually.ts";

const python = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";

/**
 * Starts the program of argv on a terminal of its own; commands come as lines on stdin, what it prints goes to stdout.
 */
const program = `
import fcntl, json, os, pty, select, struct, sys, termios
def size(fd, rows, columns): fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
pid, fd = pty.fork()
if pid == 0:
    size(0, 24, 80)
    os.execvp(sys.argv[1], sys.argv[1:])
size(fd, 24, 80)
def modes():
    flags = termios.tcgetattr(fd)[3]
    return {"echo": bool(flags & termios.ECHO), "lines": bool(flags & termios.ICANON)}
def report(what): os.write(2, (json.dumps(what) + "\\n").encode())
report({"pid": pid})
pending = b""
ended = None
while True:
    ready, _, _ = select.select([fd, 0], [], [], 0.05)
    if fd in ready:
        try: data = os.read(fd, 65536)
        except OSError: data = b""
        if data: os.write(1, data)
    if 0 in ready:
        data = os.read(0, 65536)
        if not data: break
        pending += data
        while b"\\n" in pending:
            line, pending = pending.split(b"\\n", 1)
            order = json.loads(line)
            if "keys" in order: os.write(fd, order["keys"].encode())
            if "signal" in order: os.kill(pid, order["signal"])
            if "modes" in order: report({"modes": modes()})
    if ended is None:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            ended = status
            try:
                while select.select([fd], [], [], 0.1)[0]:
                    data = os.read(fd, 65536)
                    if not data: break
                    os.write(1, data)
            except OSError: pass
            how = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"code": os.WEXITSTATUS(status)}
            try: left = modes()
            except Exception: left = None
            report({"ended": how, "modes": left})
            break
`;

export interface TerminalModes {
  readonly echo: boolean;
  readonly lines: boolean;
}

export interface PtyReport {
  readonly pid?: number;
  readonly ended?: { readonly code?: number; readonly signal?: number };
  readonly modes?: TerminalModes | null;
}

export class PtySession implements AsyncDisposable {
  readonly #child;
  readonly #closed: Promise<void>;
  readonly reports: PtyReport[] = [];
  /** Everything that the program has written. */
  output = "";

  constructor(
    argv: readonly string[],
    { env, cwd }: { readonly env: Readonly<Record<string, string>>; readonly cwd: string },
  ) {
    this.#child = spawn(python, ["-c", program, ...argv], { env: { TERM: "xterm", ...env }, cwd, stdio: "pipe" });
    this.#child.stdout.setEncoding("utf8").on("data", (text: string) => this.output += text);
    let errors = "";
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      const lines = (errors + text).split("\n");
      errors = lines.pop() ?? "";
      for (const line of lines) this.reports.push(JSON.parse(line) as PtyReport);
    });
    this.#closed = new Promise((resolve) => this.#child.on("close", () => resolve()));
  }

  press(keys: string): void {
    this.#order({ keys });
  }

  signal(number: number): void {
    this.#order({ signal: number });
  }

  /** Forgets what was written so far. */
  forget(): void {
    this.output = "";
  }

  async shows(text: string | RegExp): Promise<void> {
    const isShown = () => typeof text === "string" ? this.output.includes(text) : text.test(this.output);
    await eventually(isShown, {
      what: `${text} on the terminal, not ${JSON.stringify(this.output)}`,
      withinMs: 20_000,
    });
  }

  /** Each of the texts, one after the other. */
  async showsAll(...texts: readonly string[]): Promise<void> {
    const endOf = () => texts.reduce((at, text) => at === -1 ? -1 : this.output.indexOf(text, at), 0);
    await eventually(() => endOf() !== -1, {
      what: `${texts.join(" … ")} on the terminal, not ${JSON.stringify(this.output)}`,
      withinMs: 20_000,
    });
  }

  /** The modes of the terminal now. */
  async modes(): Promise<TerminalModes> {
    const before = this.reports.length;
    this.#order({ modes: true });
    return await eventually(() => this.reports.slice(before).find(({ modes }) => modes)?.modes ?? null, {
      what: "the modes of the terminal",
    });
  }

  async ended(): Promise<PtyReport> {
    const report = await eventually(() => this.reports.find(({ ended }) => ended !== undefined) ?? null, {
      what: `the program to end: ${JSON.stringify(this.output.slice(-2000))}`,
      withinMs: 20_000,
    });
    await this.#closed;
    return report;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pid = this.reports.find((report) => report.pid !== undefined)?.pid;
    if (pid !== undefined && !this.reports.some(({ ended }) => ended !== undefined)) this.#order({ signal: 9 });
    this.#child.stdin.end();
    await this.#closed;
  }

  #order(order: object): void {
    this.#child.stdin.write(`${JSON.stringify(order)}\n`);
  }
}
