/**
 * The clients of a campaign that are no client sessions: processes of the binary, one that puts and one for each way to
 * get; and two that know the paper alone.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { cliExec, cliFiles, type CliOptions, cliPrint, cliPublish, cliSubscribe } from "./cli_client.ts";
import { plainConsume, plainPublish } from "./plain_clients.ts";
import { HistoryWriter } from "./history_file.ts";

export interface CliCrewOptions extends Omit<CliOptions, "writer" | "phase" | "over" | "mayKill"> {
  readonly history: string;
  /** For clients that know the paper and nothing more. */
  readonly plainTopic: string;
  /** One more client subscribes here, and asks for nothing before everybody else has had all. */
  readonly sleeperTopic: string;
  /** Nobody: where messages are given up, what these clients are told of it is not in the history. */
  readonly isEmpty: boolean;
}

const sleeper = "cli-sleeper";

export class CliCrew {
  phase: ReturnType<CliOptions["phase"]> = "work";
  /** Whether its processes may be killed. */
  isHurt = true;
  /** Resolves when everything is put. */
  published: Promise<unknown> = Promise.resolve();
  /** Resolves when everything was had. */
  drained: Promise<unknown> = Promise.resolve();
  readonly #options: CliCrewOptions;
  readonly #over = new AbortController();
  #asleep: CliOptions | null = null;
  readonly #writer: HistoryWriter;

  constructor(options: CliCrewOptions) {
    this.#options = options;
    this.#writer = new HistoryWriter(join(options.history, "cli.jsonl"));
  }

  /** Resolves when all are subscribed, and at work. */
  async begin(): Promise<void> {
    if (this.#options.isEmpty) return;
    const ways = { "cli-print": cliPrint, "cli-files": cliFiles, "cli-exec": cliExec };
    const readers = Object.entries(ways).map(([client, get]) => ({ client, get, options: this.#optionsOf(client) }));
    await Promise.all(readers.map(({ client, options }) => cliSubscribe(client, options)));
    await cliSubscribe(sleeper, this.#sleeperOptions());
    this.drained = Promise.all(readers.map(({ client, get, options }) => get(client, options)));
    const { plainTopic: topic, proxies, random, troubled } = this.#options;
    const plain = {
      topic,
      proxies,
      random,
      troubled,
      writer: this.#writer,
      phase: () => this.phase,
      over: this.#over.signal,
    };
    const { drained } = await plainConsume("plain-get", plain);
    this.drained = Promise.all([this.drained, drained]);
    const putting = cliPublish("cli-put", this.#optionsOf("cli-put"));
    this.published = Promise.all([putting, plainPublish("plain-put", plain)]);
    this.drained.catch(() => {}); // heard of where it is waited for
    this.published.catch(() => {});
  }

  /** Has all that was put for it since `begin`. */
  async wakeSleeper(): Promise<void> {
    if (!this.#options.isEmpty) await cliPrint(sleeper, this.#sleeperOptions());
  }

  #sleeperOptions(): CliOptions {
    return this.#asleep ??= { ...this.#optionsOf(sleeper), topic: this.#options.sleeperTopic };
  }

  async close(): Promise<void> {
    this.phase = "drain";
    this.#over.abort(new Error("closed"));
    await Promise.allSettled([this.published, this.drained]);
    this.#writer[Symbol.dispose]();
  }

  #optionsOf(client: string): CliOptions {
    const folder = join(this.#options.folder, client);
    mkdirSync(folder);
    return {
      ...this.#options,
      folder,
      writer: this.#writer,
      phase: () => this.phase,
      over: this.#over.signal,
      mayKill: () => this.isHurt,
    };
  }
}
