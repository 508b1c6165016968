/** Kafka's protocol by somebody else: librdkafka, through kcat. A mock cluster, and a consumer. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "./eventually.ts";
import { ServerProcess } from "./server_process.ts";

const run = promisify(execFile);

export interface KcatMessage {
  readonly partition: number;
  readonly offset: number;
  readonly key: string;
  readonly payload: string;
  readonly headers: Record<string, string>;
}

export class MockKafka {
  readonly address: string;
  readonly #process: ServerProcess;
  readonly #folder: string;

  private constructor(address: string, process: ServerProcess, folder: string) {
    this.address = address;
    this.#process = process;
    this.#folder = folder;
  }

  /** Its topics have four partitions, are made when one of them is asked for by name, and lie in memory. */
  static async start({ brokers = 1 }: { readonly brokers?: number } = {}): Promise<MockKafka> {
    const folder = mkdtempSync(join(tmpdir(), "baton-kcat-"));
    // A producer that never has anything to say: its cluster lives as long as it does.
    const line = `tail -f /dev/null | kcat -P -b none -t none -X test.mock.num.brokers=${brokers} -d mock`;
    const process = new ServerProcess(["sh", "-c", line], { folder });
    const address = await eventually(() => /bootstrap\.servers=([\d.]+:\d+)/.exec(process.output)?.[1], {
      what: "the address of kcat's mock cluster",
      withinMs: 20_000,
    });
    return new MockKafka(address, process, folder);
  }

  get port(): number {
    return Number(this.address.split(":")[1]);
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#process.signal(signal);
  }

  /**
   * All that is in the topic, read by kcat with its checksums checked. The cluster is listened to meanwhile: it tells
   * all it does.
   */
  async read(topic: string): Promise<KcatMessage[]> {
    const checked = ["-X", "check.crcs=true", "-X", "fetch.wait.max.ms=10"];
    const args = ["-C", "-b", this.address, "-t", topic, "-e", "-q", "-J", ...checked];
    const { stdout } = await run("kcat", args, { timeout: 20_000, maxBuffer: 1 << 26 });
    return stdout.split("\n").filter((line) => line !== "").map((line) => {
      const { partition, offset, key, payload, headers = [] } = JSON.parse(line);
      const pairs: [string, string][] = [];
      for (let at = 0; at + 1 < headers.length; at += 2) pairs.push([headers[at], headers[at + 1]]);
      return { partition, offset, key, payload, headers: Object.fromEntries(pairs) };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.signal("SIGCONT");
    await this.#process.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
