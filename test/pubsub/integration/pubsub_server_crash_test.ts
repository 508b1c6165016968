/**
 * Servers as processes, killed and held up at random while they are put to, got from, and hand topics to each other.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { PubsubPath } from "../../../src/pubsub/ownership/pubsub_path.ts";
import { verifyTopicStore } from "../../../src/pubsub/store/sqlite/verify_topic_store.ts";
import { dose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { batonCommand, startKeeperProcess } from "../../support/keeper_server.ts";
import { bytesOf, PubsubTalker, textOf } from "../../support/pubsub_talker.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { ServerProcess } from "../../support/server_process.ts";

setDefaultTimeout(600_000);

const seed = testSeed();
const faults = dose({ gate: 6, full: 100 });

/** A server's process, started again after every fault. */
class Member implements AsyncDisposable {
  readonly id: string;
  readonly dataDir: string;
  readonly #folder: string;
  readonly #servers: string;
  #process: ServerProcess | null = null;

  constructor(id: string, folder: string, servers: string) {
    this.id = id;
    this.dataDir = join(folder, id);
    this.#folder = mkdtempSync(join(folder, `cwd-${id}-`));
    this.#servers = servers;
  }

  async start(): Promise<void> {
    const words = ["pubsub", "server", "--id", this.id, "--data-dir", this.dataDir, "--servers", this.#servers];
    const server = new ServerProcess([...batonCommand(), ...words, "--session-timeout", "4s"], {
      folder: this.#folder,
    });
    this.#process = server;
    const serves = () => server.output.includes(" serves ") || !server.alive;
    await eventually(serves, { what: `${this.id} to serve; it said: ${server.output}`, withinMs: 30_000 });
    if (!server.alive) throw new Error(`${this.id} ended at its start: ${server.output}`);
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (signal === "SIGKILL") await this.#process?.kill();
    this.#process?.signal(signal);
    await this.#process?.exited;
  }

  /** Stands still until `isForgotten`, and goes on as if nothing had been. */
  async pause(isForgotten: () => Promise<boolean>): Promise<void> {
    this.#process?.signal("SIGSTOP");
    await eventually(isForgotten, { withinMs: 30_000, everyMs: 50, what: `${this.id} to lose its session` });
    this.#process?.signal("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process?.kill();
  }
}

test(`what was answered OK is stored once, although servers are killed, stopped and moved (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const folder = mkdtempSync(join(tmpdir(), "baton-pubsub-crash-"));
  const backend = await startKeeperProcess();
  const members = ["s1", "s2"].map((id) => new Member(id, folder, backend.servers));
  const zk = await connectToZooKeeper({ servers: parseZooKeeperServers(backend.servers) });
  try {
    await Promise.all(members.map((member) => member.start()));
    const path = new PubsubPath("/baton");
    await using say = await PubsubTalker.start(zk, path);
    const topics = ["news", "a/b c"];
    const patienceMs = 60_000;
    for (const topic of topics) {
      for (const sender of ["alice", "carol"]) await say.ask({ name: "SUBSCRIBE", sender, topic }, patienceMs);
    }
    let isOver = false, isAllPut = false, answered = 0;
    const acknowledged = new Map<string, string[]>(topics.map((topic) => [topic, []]));
    const publishers = ["p", "q", "r", "s"].map(async (sender, index) => {
      const topic = topics[index % 2] as string;
      const session = { number: 1, key: `key of ${sender}` };
      for (let counter = 1; !isOver; counter++) {
        const body = bytesOf(`${sender} ${counter}`);
        const headers = { session, firstUnacked: counter };
        const status = await say.ask({ name: "PUT", sender, topic, counter, body, headers }, patienceMs);
        expect([sender, counter, status.status]).toEqual([sender, counter, "OK"]);
        acknowledged.get(topic)?.push(textOf(body));
        answered++;
      }
    });
    const had = new Map<string, string[]>();
    const readers = topics.flatMap((topic) =>
      ["alice", "carol"].map(async (sender) => {
        const mine: string[] = [];
        had.set(`${sender} ${topic}`, mine);
        let last = -1;
        for (;;) {
          const wasAllPut = isAllPut;
          const headers = { max: 50, waitMs: wasAllPut ? 0 : 200 };
          const { status, batch = [], headers: said } = await say.ask(
            { name: "GET", sender, topic, last, headers },
            patienceMs,
          );
          mine.push(...batch.map(textOf));
          last = said?.ids?.at(-1)?.last ?? last;
          if (status === "NO_MESSAGE" && wasAllPut) return;
        }
      })
    );
    for (let fault = 0; fault < faults; fault++) {
      const before = answered;
      await eventually(() => answered >= before + 20 + random() * 100, { withinMs: patienceMs, what: "puts to go on" });
      const topic = topics[Math.floor(random() * 2)] as string;
      if (random() < 0.5) {
        const { endpoint, id } = await say.endpoint(topic);
        const to = id === "s1" ? "s2" : "s1";
        // Cut by what comes next, or not.
        void say.say(endpoint, { name: "MERGE", sender: "op", topic, address: to, headers: {} }, 5000).catch(() => {});
        if (random() < 0.3) await eventually(() => answered >= before + 150, { withinMs: patienceMs });
      }
      const member = members[Math.floor(random() * 2)] as Member;
      if (fault % 5 === 3) {
        await member.pause(async () => await zk.exists(path.server(member.id)) === null);
        continue;
      }
      await member.end(random() < 0.8 ? "SIGKILL" : "SIGTERM");
      await member.start();
    }
    isOver = true;
    await Promise.all(publishers);
    isAllPut = true;
    await Promise.all(readers);
    for (const topic of topics) {
      const sent = acknowledged.get(topic) ?? [];
      const of = had.get(`alice ${topic}`) ?? [];
      expect(of.length).toBe(new Set(of).size);
      expect([...of].sort()).toEqual([...sent].sort());
      expect(had.get(`carol ${topic}`)).toEqual(of);
      for (const sender of ["p", "q", "r", "s"]) {
        const own = of.filter((body) => body.startsWith(`${sender} `)).map((body) => Number(body.slice(2)));
        expect(own).toEqual(own.map((_, place) => place + 1));
      }
    }
    for (const member of members) await member.end("SIGTERM");
    for (const member of members) expect(verifyTopicStore(member.dataDir).problems).toEqual([]);
    console.log(`${answered} puts, ${faults} faults`);
  } finally {
    for (const member of members) await member[Symbol.asyncDispose]();
    await zk.close();
    await backend.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
