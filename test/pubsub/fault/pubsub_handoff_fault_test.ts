/**
 * A handoff between server processes, either of which is killed before each of its steps: what it writes, syncs, sends
 * and has received. What was not synced may be lost with it. One owner is left, and no message is missing or there
 * twice. `BATON_DOSE=full` goes through every step of both sides, on the keeper and on ZooKeeper.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { readTopicList } from "../../../src/pubsub/ownership/topic_nodes.ts";
import { PubsubPath } from "../../../src/pubsub/ownership/pubsub_path.ts";
import { verifyTopicStore } from "../../../src/pubsub/store/sqlite/verify_topic_store.ts";
import { type Backend, keeper, type RunningBackend, zooKeeper } from "../../support/backends.ts";
import { isFullDose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { FaultyServer } from "../../support/faulty_server.ts";
import { describeWithPeer, hasPeer } from "../../support/peers.ts";
import { bytesOf, PubsubTalker, textOf } from "../../support/pubsub_talker.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { type CallKind, durableSteps } from "../../support/storage_faults/storage_faults.ts";

setDefaultTimeout(1_800_000);

const seed = testSeed();
const topic = "t";
const steps: readonly CallKind[] = [...durableSteps, "send", "receive"];
const patienceMs = 60_000;
const path = new PubsubPath("/baton");

interface Message {
  readonly id: number;
  readonly body: string;
}

/** Two servers, one topic, and what is known of its messages. */
class Pair implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "baton-handoff-"));
  readonly #backend: RunningBackend;
  readonly #zk: ZooKeeper;
  readonly #say: PubsubTalker;
  readonly servers: ReadonlyMap<string, FaultyServer>;
  readonly #put: Message[] = [];
  readonly #owners = new Map<number, string>();
  /** Of the last round. */
  lastStep = "";
  /** The last message that alice had. */
  #last = -1;

  static async start({ start }: Backend): Promise<Pair> {
    const backend = await start();
    const zk = await connectToZooKeeper({ servers: parseZooKeeperServers(backend.servers) });
    const pair = new Pair(backend, zk, await PubsubTalker.start(zk, path));
    for (const server of pair.servers.values()) await server.start();
    for (const sender of ["alice", "carol"]) await pair.#ask({ name: "SUBSCRIBE", sender, topic });
    for (let count = 0; count < 20; count++) await pair.put();
    return pair;
  }

  private constructor(backend: RunningBackend, zk: ZooKeeper, say: PubsubTalker) {
    this.#backend = backend;
    this.#zk = zk;
    this.#say = say;
    say.attemptMs = 400;
    const start = (id: string) => new FaultyServer(id, this.#folder, backend.servers, { sockets: true });
    this.servers = new Map(["s1", "s2"].map((id) => [id, start(id)]));
  }

  async put(): Promise<void> {
    const counter = this.#put.length + 1;
    const body = `body ${counter}`;
    const headers = { session: { number: 1, key: "k" }, firstUnacked: counter };
    const status = await this.#ask({ name: "PUT", sender: "p", topic, counter, body: bytesOf(body), headers });
    const id = status.headers?.ids?.[0]?.first ?? status.messageId ?? -1;
    expect(id).toBeGreaterThan(this.#put.at(-1)?.id ?? 0);
    this.#put.push({ id, body });
  }

  /** All that `sender` has not had, as was put. */
  async get(sender: string, last: number): Promise<void> {
    const headers = { max: 1000 };
    const { status, batch = [], headers: said } = await this.#ask({ name: "GET", sender, topic, last, headers });
    expect([sender, status]).toEqual([sender, "OK"]);
    const ids = (said?.ids ?? []).flatMap(({ first, last }) =>
      Array.from({ length: last - first + 1 }, (_, place) => first + place)
    );
    const had = batch.map((body, place) => ({ id: ids[place], body: textOf(body) }));
    expect(had).toEqual(this.#put.filter(({ id }) => id > last));
    if (sender === "alice") this.#last = ids.at(-1) ?? last;
  }

  /** Whether the server was killed before the handoff was over. */
  async round(side: "owner" | "receiver", step: number, random: () => number): Promise<boolean> {
    const { owner: from } = await this.#settled();
    const to = from === "s1" ? "s2" : "s1";
    const target = this.servers.get(side === "owner" ? from : to) as FaultyServer;
    target.faults.killAt(step, steps);
    await eventually(async () => !target.alive || await this.#merge(from, to, target), {
      withinMs: patienceMs,
      what: `${from} to hand the topic to ${to}`,
    });
    const isKilled = target.faults.disarm() || !target.alive;
    this.lastStep = target.faults.lastStep;
    if (isKilled) {
      await target.ended();
      target.faults.losePower(random() < 0.3 ? undefined : random);
      target.faults.killAt(0);
      expect(await target.start()).toBe(true);
    } else target.faults.killAt(0);
    await this.put();
    await this.get("alice", this.#last);
    await this.#settled();
    return isKilled;
  }

  /** Whether the handoff is over. The owner may not know of the other one yet, or be there no more. */
  async #merge(from: string, to: string, target: FaultyServer): Promise<boolean> {
    const { id, endpoint } = await this.#say.endpoint(topic);
    if (id === to) return true;
    const merge = { name: "MERGE", sender: "op", topic, address: to, headers: {} } as const;
    let isOver = false;
    const answered = this.#say.say(endpoint, merge, patienceMs).then(({ status }) => status === "OK", () => false);
    const isDead = eventually(() => isOver || !target.alive, { withinMs: patienceMs });
    const isDone = await Promise.race([answered, isDead]);
    isOver = true;
    return isDone && id === from;
  }

  /** Who owns the topic, once one does and has stored it, and the other one says so. */
  async #settled(): Promise<{ owner: string; epoch: number }> {
    return await eventually(async () => {
      for await (const { node } of readTopicList(this.#zk, path)) {
        const { owner, epoch, state } = node;
        const known = this.#owners.get(epoch) ?? owner;
        if (known !== owner) throw new Error(`epoch ${epoch} was ${known}'s, and is ${owner}'s`);
        this.#owners.set(epoch, owner);
        return state === "stored" && { owner, epoch };
      }
      return null;
    }, { withinMs: patienceMs, what: "the topic to have an owner" });
  }

  /** Everything from the beginning, and the stores as they are on the disk. */
  async finish(): Promise<void> {
    await this.get("carol", -1);
    for (const server of this.servers.values()) {
      await server.stop();
      expect(verifyTopicStore(server.dataDir).problems).toEqual([]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#say[Symbol.asyncDispose]();
    for (const server of this.servers.values()) await server[Symbol.asyncDispose]();
    await this.#zk.close();
    await this.#backend.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #ask(message: Parameters<PubsubTalker["ask"]>[0]) {
    return this.#say.ask(message, patienceMs);
  }
}

for (const backend of isFullDose && hasPeer("zookeeper") ? [keeper, zooKeeper] : [keeper]) {
  describeWithPeer(
    "cc",
    `a handoff between processes that are killed, on ${backend.name} [BATON_SEED=${seed}]`,
    () => {
      killedAtEachStep(backend);
    },
  );
}

function killedAtEachStep(backend: Backend): void {
  const random = seededRandom(seed);
  let pair: Pair;
  beforeAll(async () => void (pair = await Pair.start(backend)));
  afterAll(() => pair[Symbol.asyncDispose]());

  for (const side of ["owner", "receiver"] as const) {
    test(`the ${side} is killed before each step: one owner is left, and every message`, async () => {
      let killed = 0;
      const kinds = new Map<string, number>();
      const stride = isFullDose ? 1 : 6;
      let survived = 0;
      for (let step = 1 + Math.floor(random() * stride); survived < (isFullDose ? 3 : 2); step += stride) {
        if (await pair.round(side, step, random)) {
          survived = 0;
          killed++;
          kinds.set(pair.lastStep, (kinds.get(pair.lastStep) ?? 0) + 1);
        } else survived++;
      }
      const list = [...kinds].map(([kind, count]) => `${count} before ${kind}`).join(", ");
      console.log(`the ${side} was killed at ${killed} steps: ${list}`);
      expect(killed).toBeGreaterThan(isFullDose ? 30 : 2);
    });
  }

  test("what is left is whole", () => pair.finish());
}
