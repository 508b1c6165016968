/** One message store as scripts use it: `@retry` stands for the command, the store is named by the environment. */
import type { BatonSession, Ended, Running } from "./baton_session.ts";
import { doneMessages } from "./done_messages.ts";

let stores = 0;

export class RetryShell {
  readonly name = `store${++stores}`;
  readonly env: Readonly<Record<string, string>>;
  readonly #session: BatonSession;

  constructor(session: BatonSession, env: Readonly<Record<string, string>> = {}) {
    this.#session = session;
    this.env = { BATON_RETRY_STORE: this.name, ...env };
  }

  get folder(): string {
    return this.#session.path(this.name);
  }

  run(script: string): Promise<Ended> {
    return this.#session.run(written(script), this.env);
  }

  start(script: string): Running {
    return this.#session.start(written(script), this.env);
  }

  async json(words: string) {
    return JSON.parse((await this.run(`@retry ${words} --json`)).stdout);
  }

  done(): number {
    return doneMessages(this.folder);
  }
}

/** What a script means by `@retry` and `@client`. */
export function written(script: string): string {
  return script.replaceAll("@retry", '"$baton" retry-processor').replaceAll("@client", '"$baton" pubsub client');
}
