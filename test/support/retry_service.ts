/** `baton retry-processor serve` with a store of its own, in front of a backend. */
import type { BatonSession, Running } from "./baton_session.ts";
import { eventually } from "./eventually.ts";

let services = 0;

export class RetryService {
  readonly name = `service${++services}`;
  readonly #session: BatonSession;
  running: Running | null = null;
  url = "";

  constructor(session: BatonSession) {
    this.#session = session;
  }

  async start(backend: string, options = ""): Promise<this> {
    this.running = this.#session.start(
      `exec "$baton" retry-processor serve --store ${this.name} --url ${backend} --interval 50ms ${options}`,
    );
    const where = await eventually(() => /serves .* at ([^ ]+),/.exec(this.running?.stderr() ?? "")?.[1], {
      withinMs: 15_000,
      what: "serve to listen",
    });
    this.url = `http://${where}`;
    return this;
  }

  async stop(signal: NodeJS.Signals = "SIGTERM") {
    this.running?.child.kill(signal);
    return await this.running?.ended;
  }

  get folder(): string {
    return this.#session.path(this.name);
  }

  async states(): Promise<Record<string, number>> {
    const { stdout } = await this.#session.run(`"$baton" retry-processor stats --json --store ${this.name}`);
    const { states } = JSON.parse(stdout) as { states: Record<string, { count: number }> };
    return Object.fromEntries(
      Object.entries(states).filter(([, { count }]) => count > 0).map(([state, { count }]) => [state, count]),
    );
  }

  post(path: string, body: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.url}${path}`, { method: "POST", body, headers });
  }
}
