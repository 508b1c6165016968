/** A shell session at a coordination service of its own, which ends with it. */
import type { Backend, BackendOptions, RunningBackend } from "./backend.ts";
import { BatonSession } from "./baton_session.ts";

export class BackendSession extends BatonSession {
  readonly backend: RunningBackend;

  static async start(
    kind: Backend,
    env: Readonly<Record<string, string>> = {},
    options: BackendOptions = {},
  ): Promise<BackendSession> {
    return new BackendSession(await kind.start(options), env);
  }

  private constructor(backend: RunningBackend, env: Readonly<Record<string, string>>) {
    super({ BATON_SERVERS: backend.servers, ...env });
    this.backend = backend;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await this.backend.close();
  }
}
