/** A real ZooKeeper whose sequence counters a test can move; see test/fixtures/CounterEdgeServer.java. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { zooKeeperJar } from "./peers.ts";

export interface CounterEdgeServer extends AsyncDisposable {
  readonly servers: string;
  /** The next sequential child of `path` gets this number. */
  setCounter(path: string, counter: number): Promise<void>;
}

export async function startCounterEdgeServer(): Promise<CounterEdgeServer> {
  const folder = mkdtempSync(join(tmpdir(), "baton-counter-"));
  const program = join(import.meta.dir, "../fixtures/CounterEdgeServer.java");
  // It ends with its stdin, and so with this process, however that ends.
  const server = spawn("java", ["-Xmx128m", "-cp", zooKeeperJar, program, folder], { stdio: ["pipe", "pipe", "pipe"] });
  let said = "";
  server.stderr.on("data", (chunk: Uint8Array) => said = (said + chunk.toString()).slice(-2000));
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const line = async () => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error(`The counter edge server ended: ${said}`);
    return value;
  };
  const [, port] = /^port (\d+)$/.exec(await line()) ?? [];
  if (port === undefined) throw new Error("The counter edge server did not say its port");
  return {
    servers: `127.0.0.1:${port}`,
    async setCounter(path, counter) {
      server.stdin.write(`${path} ${counter}\n`);
      const answer = await line();
      if (answer !== "set") throw new Error(`The counter of ${path} was not set: ${answer}`);
    },
    async [Symbol.asyncDispose]() {
      const ended = new Promise((resolve) => server.once("exit", resolve));
      server.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
