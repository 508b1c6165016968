/**
 * Debian's Firefox without a screen, by its own protocol (WebDriver BiDi). playwright-core knows this protocol, too,
 * but sends commands that this Firefox does not have.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

export const firefoxPath = "/usr/bin/firefox-esr";

interface BidiMessage {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly level?: string; readonly text?: string };
  readonly result?: unknown;
  readonly message?: string;
}

type FirefoxProgram = Bun.Subprocess<"ignore", "ignore", "pipe">;

export class FirefoxPage implements AsyncDisposable {
  readonly #program: FirefoxProgram;
  readonly #profile: string;
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  /** The errors of scripts and styles that the page has logged. */
  readonly errors: string[] = [];
  #id = 0;
  #context = "";

  private constructor(program: FirefoxProgram, profile: string, socket: WebSocket) {
    this.#program = program;
    this.#profile = profile;
    this.#socket = socket;
    socket.onmessage = ({ data }) => this.#take(JSON.parse(String(data)) as BidiMessage);
  }

  static async start(): Promise<FirefoxPage> {
    const profile = mkdtempSync(join(tmpdir(), "baton-firefox-"));
    const words = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"];
    const env = { ...process.env, HOME: profile };
    const program = Bun.spawn([firefoxPath, ...words], { stdin: "ignore", stdout: "ignore", stderr: "pipe", env });
    const socket = new WebSocket(`${await addressFrom(program.stderr)}/session`);
    const page = new FirefoxPage(program, profile, socket);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = reject;
    });
    await page.#send("session.new", { capabilities: {} });
    await page.#send("session.subscribe", { events: ["log.entryAdded"] });
    page.#context = (await page.#send("browsingContext.create", { type: "tab" }) as { context: string }).context;
    return page;
  }

  async open(url: string, viewport: { readonly width: number; readonly height: number }): Promise<void> {
    await this.#send("browsingContext.setViewport", { context: this.#context, viewport });
    await this.#send("browsingContext.navigate", { context: this.#context, url, wait: "complete" });
  }

  /** Returns the value of an expression, which must be JSON. Waits for a promise. */
  async evaluate(expression: string): Promise<unknown> {
    const found = await this.#send("script.evaluate", {
      expression: `Promise.resolve(${expression}).then((value) => JSON.stringify(value))`,
      target: { context: this.#context },
      awaitPromise: true,
    }) as { readonly result?: { readonly value?: string }; readonly exceptionDetails?: { readonly text: string } };
    if (found.exceptionDetails !== undefined) throw new Error(found.exceptionDetails.text);
    return JSON.parse(found.result?.value ?? "null");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    this.#program.kill();
    await this.#program.exited;
    rmSync(this.#profile, { recursive: true, force: true });
  }

  #send(method: string, params: object): Promise<unknown> {
    const id = ++this.#id;
    const answer = Promise.withResolvers<unknown>();
    this.#waiting.set(id, answer);
    this.#socket.send(JSON.stringify({ id, method, params }));
    return answer.promise;
  }

  #take({ id, method, params, result, message }: BidiMessage): void {
    if (method === "log.entryAdded" && params?.level === "error") this.errors.push(params.text ?? "");
    const answer = id === undefined ? undefined : this.#waiting.get(id);
    if (id !== undefined) this.#waiting.delete(id);
    if (result === undefined) answer?.reject(new Error(message));
    else answer?.resolve(result);
  }
}

async function addressFrom(stderr: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string> {
  let text = "";
  for await (const piece of stderr.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const found = /WebDriver BiDi listening on (ws:\S+)/.exec(text)?.[1];
    if (found !== undefined) return found;
  }
  throw new Error(`Firefox has ended: ${text}`);
}
