/** A server that is one process: how it is stopped, continued and killed. What starts it is the subclass's business. */
import type { Address } from "../../src/base/sockets/connection.ts";
import type { ServerNode } from "./backend.ts";
import type { ServerProcess } from "./server_process.ts";

export abstract class ProcessNode implements ServerNode {
  abstract readonly address: Address;
  protected process: ServerProcess | null = null;

  abstract restart(): Promise<void>;

  get pid(): number {
    return this.process?.pid ?? -1;
  }

  get lastWords(): string | null {
    return this.process?.lastWords ?? null;
  }

  pause(): void {
    this.process?.signal("SIGSTOP");
  }

  resume(): void {
    this.process?.signal("SIGCONT");
  }

  async kill(): Promise<void> {
    await this.process?.kill();
  }
}
