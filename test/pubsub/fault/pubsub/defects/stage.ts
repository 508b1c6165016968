/** Servers and the clients of a scene, whose requests and answers become a history for the judge. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectToZooKeeper } from "../../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../../../src/protocols/zookeeper/zookeeper.ts";
import { PubsubPath } from "../../../../../src/pubsub/ownership/pubsub_path.ts";
import type { PubsubMessageOf } from "../../../../../src/pubsub/wire/pubsub_messages.ts";
import { eventually } from "../../../../support/eventually.ts";
import { FaultyServer } from "../../../../support/faulty_server.ts";
import { PubsubTalker, type Status } from "../../../../support/pubsub_talker.ts";
import type { Invocation, Result } from "../history.ts";
import { HistoryWriter, readHistory } from "../history_file.ts";
import { type BaselineLimits, judge, type Verdict } from "../judge.ts";
import { gotOf, markedBody, putOf } from "../marked_body.ts";

export const topic = "news";
const patienceMs = 30_000;

export interface PutWords {
  readonly topic?: string;
  /** Names its client's session; a plain client's, which has none, is 0. */
  readonly session?: number;
  readonly bytes?: number;
  /**
   * Which of its client's lives puts it, where that is not told by a session: there is no order between two of them.
   */
  readonly life?: number;
  /** The same again. */
  readonly resumed?: boolean;
  /** The answer does not arrive. */
  readonly unheard?: boolean;
}

export class Stage implements AsyncDisposable {
  readonly path: PubsubPath;
  readonly zk: ZooKeeper;
  readonly say: PubsubTalker;
  readonly writer: HistoryWriter;
  readonly #servers = new Map<string, FaultyServer>();
  readonly #folder = mkdtempSync(join(tmpdir(), "baton-scene-"));
  readonly #backendServers: string;
  readonly #root: string;
  readonly #command: readonly string[] | undefined;
  /** By client and topic: the last message it had. */
  readonly #places = new Map<string, number>();

  /** `command` runs the program; the one under test when left out. */
  static async open(servers: string, root: string, command?: readonly string[]): Promise<Stage> {
    const zk = await connectToZooKeeper({ servers: parseZooKeeperServers(servers) });
    const path = new PubsubPath(root);
    return new Stage({ servers, root, path, zk, command, say: await PubsubTalker.start(zk, path) });
  }

  private constructor({ servers, root, path, zk, say, command }: {
    readonly servers: string;
    readonly root: string;
    readonly path: PubsubPath;
    readonly zk: ZooKeeper;
    readonly say: PubsubTalker;
    readonly command: readonly string[] | undefined;
  }) {
    this.#backendServers = servers;
    this.#root = root;
    this.path = path;
    this.zk = zk;
    this.say = say;
    this.#command = command;
    mkdirSync(join(this.#folder, "history"));
    this.writer = new HistoryWriter(join(this.#folder, "history", "scene.jsonl"));
  }

  async start(id = "s1"): Promise<FaultyServer> {
    const words = ["--root", this.#root];
    const server = new FaultyServer(id, this.#folder, this.#backendServers, { words, command: this.#command });
    this.#servers.set(id, server);
    if (!(await server.start())) throw new Error(`${id} did not start: ${server.output}`);
    return server;
  }

  async subscribe(client: string): Promise<void> {
    const n = this.writer.invoke({ client, session: 0, do: "subscribe", topic });
    const { status, sender: by } = await this.say.ask({ name: "SUBSCRIBE", sender: client, topic }, patienceMs);
    this.writer.return(n, { outcome: status === "OK" ? "ok" : "fail", status, by });
  }

  /** Asks until it is answered, or asks the server at `to` once. */
  async put(client: string, counter: number, name: string, words: PutWords & { to?: string } = {}): Promise<Status> {
    const { session = 0, life = session, bytes = 0, resumed = false, unheard = false, to } = words;
    const body = markedBody(name, bytes);
    const token = session === 0 ? {} : { session: { number: session, key: `${client} ${session}` }, firstUnacked: 1 };
    const headers: NonNullable<PubsubMessageOf<"PUT">["headers"]> = { version: 1, ...token };
    const message = { name: "PUT", sender: client, topic, counter, body, headers } as const;
    const operation: Invocation = { client, session: life, do: "put", topic, counter, puts: [putOf(body)] };
    const n = this.writer.invoke(resumed ? { ...operation, resumed } : operation);
    const answer = to === undefined
      ? await this.say.ask(message, patienceMs)
      : await this.say.say(to, message, patienceMs);
    this.writer.return(n, unheard ? { outcome: "unknown" } : resultOf(answer));
    return answer;
  }

  /** One message, or none: what comes behind the place that the client remembers, and is had then. */
  async get(client: string, { max = 1 }: { readonly max?: number } = {}): Promise<string[]> {
    const last = this.#places.get(client) ?? -1;
    const n = this.writer.invoke({ client, session: 0, do: "get", topic, last });
    const headers = { max };
    const answer = await this.say.ask({ name: "GET", sender: client, topic, last, headers }, patienceMs);
    const result = resultOf(answer);
    this.writer.return(n, result);
    const upTo = result.got?.at(-1)?.[0];
    if (upTo === undefined) return [];
    this.writer.saw(n, { upTo });
    this.writer.had(n, upTo);
    this.#places.set(client, upTo);
    return (result.got ?? []).map(([, name]) => name);
  }

  async getAll(client: string): Promise<void> {
    while ((await this.get(client, { max: 100 })).length > 0);
  }

  /** The client does not know any more what it had. */
  loseState(client: string): void {
    this.writer.state(client, "lost");
    this.#places.delete(client);
  }

  async endpointOf(id: string): Promise<string> {
    return await eventually(async () => {
      const { data } = await this.zk.getData(this.path.server(id));
      return (JSON.parse(new TextDecoder().decode(data)) as { endpoint?: string }).endpoint;
    }, { what: `${id} to be announced` });
  }

  async merge(to: string): Promise<void> {
    await eventually(async () => {
      const { id, endpoint } = await this.say.endpoint(topic);
      if (id === to) return true;
      const merge = { name: "MERGE", sender: "op", topic, address: to, headers: {} } as const;
      return (await this.say.say(endpoint, merge, patienceMs)).status === "OK";
    }, { withinMs: patienceMs, what: `"${topic}" to be at ${to}` });
  }

  /** The topic's node as it is now, for the judge. */
  async seeNode(): Promise<void> {
    const { data, stat } = await this.zk.getData(this.path.topic(topic));
    const { owner, epoch, state, incarnation } = JSON.parse(new TextDecoder().decode(data)) as Record<
      string,
      string | number
    >;
    const node = {
      topic,
      owner: String(owner),
      epoch: Number(epoch),
      state: String(state),
      incarnation: String(incarnation),
    };
    this.writer.node({ ...node, version: stat.version });
  }

  diskBytes({ dataDir }: FaultyServer): number {
    const files = readdirSync(dataDir).map((name) => statSync(join(dataDir, name)));
    return files.reduce((sum, { blocks }) => sum + blocks * 512, 0);
  }

  judge(limits?: BaselineLimits): Verdict {
    return judge(readHistory(join(this.#folder, "history")), limits);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.say[Symbol.asyncDispose]();
    for (const server of this.#servers.values()) await server[Symbol.asyncDispose]();
    await this.zk.close();
    this.writer[Symbol.dispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function resultOf({ status, sender: by, body, batch, messageId = 0, headers }: Status): Result {
  const outcome = status === "OK" || status === "NO_MESSAGE" ? "ok" : "fail";
  if (status !== "OK") return { outcome, status, by };
  const ranges = headers?.ids ?? [{ first: messageId, last: messageId }];
  const ids = ranges.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, at) => first + at));
  const bodies = batch ?? (body === undefined ? [] : [body]);
  if (bodies.length === 0) return { outcome, status, by, ids };
  return { outcome, status, by, got: bodies.map((content, place) => gotOf(ids[place] ?? 0, content)) };
}
