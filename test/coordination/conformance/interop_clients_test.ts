/**
 * zkCli.sh, kazoo and Curator, unchanged, on every server. What their lines should say is in test/fixtures/interop, as
 * observed on Apache ZooKeeper 3.8.0.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Backend, backends, describeBackend, type RunningBackend } from "../../support/backends.ts";
import { CuratorPrograms, runKazooRecipes, runZkCli } from "../../support/interop_clients.ts";
import { currentKazoo, describeWithPeer, hasPeer } from "../../support/peers.ts";

const within = 120_000;
const timing = { tickTimeMs: 200, sessionTimeoutMinMs: 600, sessionTimeoutMaxMs: 20_000, containerCheckMs: 1500 };
const expected = (name: string): string[] =>
  readFileSync(join(import.meta.dirname, "../../fixtures/interop", name), "utf8").split("\n").filter((line) =>
    line !== ""
  );

interface Programs {
  readonly programs: Promise<CuratorPrograms> | null;
  readonly currentPrograms: Promise<CuratorPrograms> | null;
}

/** One server with all the programs at work on it at once: most of their time is waiting. */
class Runs {
  readonly #server: RunningBackend;
  readonly zkCli: ReturnType<typeof runZkCli> | null;
  readonly kazoo: Promise<string[]> | null;
  readonly currentKazoo: Promise<string[]> | null;
  readonly curator: Promise<string[]> | null;
  readonly currentCurator: Promise<string[]> | null;

  private constructor(server: RunningBackend, { programs, currentPrograms }: Programs) {
    const { servers } = server;
    this.#server = server;
    this.zkCli = hasPeer("zookeeper") ? runZkCli(servers) : null;
    // Its recipes make nodes in the root, which zkCli.sh lists.
    this.kazoo = hasPeer("kazoo") ? settled(this.zkCli).then(() => runKazooRecipes(servers, "/kazoo")) : null;
    this.currentKazoo = hasPeer("kazoo211")
      ? settled(this.kazoo ?? this.zkCli).then(() => runKazooRecipes(servers, "/kazoo211", currentKazoo))
      : null;
    this.curator = programs && settled(this.zkCli).then(async () => (await programs).run("CuratorRecipes", servers));
    this.currentCurator = currentPrograms &&
      settled(this.curator).then(async () =>
        (await currentPrograms).run("CuratorRecipes", servers, "/current-curator")
      );
    for (const run of [this.zkCli, this.kazoo, this.currentKazoo, this.curator, this.currentCurator]) {
      run?.catch(() => {}); // its test has the promise
    }
  }

  static async start(backend: Backend, programs: Programs): Promise<Runs> {
    return new Runs(await backend.start(timing), programs);
  }

  async close(): Promise<void> {
    await Promise.all([this.zkCli, this.kazoo, this.currentKazoo, this.curator, this.currentCurator].map(settled));
    await this.#server.close();
  }
}

async function settled(promise: Promise<unknown> | null): Promise<void> {
  await promise?.catch(() => {});
}

const programs = hasPeer("curator") ? CuratorPrograms.compile("CuratorRecipes") : null;
const currentPrograms = hasPeer("curator59") ? CuratorPrograms.compileCurrent("CuratorRecipes") : null;
for (const compiled of [programs, currentPrograms]) compiled?.catch(() => {}); // told by the tests that need it
const started = new Map<Backend, Promise<Runs>>();

beforeAll(async () => {
  const installed = backends.filter(({ peer }) => peer === null || hasPeer(peer));
  for (const backend of installed) started.set(backend, Runs.start(backend, { programs, currentPrograms }));
  await Promise.allSettled(started.values());
}, within);
afterAll(async () => {
  for (const run of started.values()) await (await run).close();
  (await programs)?.close();
  (await currentPrograms)?.close();
}, within);

for (const backend of backends) {
  describeBackend(backend, () => {
    const runs = async () => {
      const run = await started.get(backend);
      if (run === undefined) throw new Error(`${backend.name} has not been started`);
      return run;
    };

    describeWithPeer("zookeeper", "zkCli.sh", () => {
      test("answers each of its commands as on Apache ZooKeeper", async () => {
        const { answers, messages, events } = (await (await runs()).zkCli) ?? { answers: [], messages: [], events: [] };
        expect(answers.map(toKnownDifferences)).toEqual(expected("zkcli_answers.txt"));
        expect(messages.map(toKnownDifferences)).toEqual(expected("zkcli_messages.txt"));
        expect(events).toEqual(expected("zkcli_events.txt"));
      }, within);
    });

    describeWithPeer("kazoo", "kazoo", () => {
      test("runs all its recipes", async () => {
        expect(await (await runs()).kazoo).toEqual(expected("kazoo_recipes.txt"));
      }, within);
    });

    describeWithPeer("kazoo211", "kazoo 2.11.0", () => {
      test("runs all its recipes", async () => {
        expect(await (await runs()).currentKazoo).toEqual(expected("kazoo_recipes.txt"));
      }, within);
    });

    describeWithPeer("curator", "Curator", () => {
      test("runs all its recipes", async () => {
        expect(await (await runs()).curator).toEqual(expected("curator_recipes.txt"));
      }, within);
    });

    describeWithPeer("curator59", "Curator 5.9.0", () => {
      test("runs all its recipes", async () => {
        const lines = await (await runs()).currentCurator;
        expect(lines?.map((line) => line.replace("-current-curator-", "-curator-"))).toEqual(
          expected("curator_recipes.txt"),
        );
      }, within);
    });
  });
}

/** docs/protocol/keeper.md names them: a keeper counts no quotas and knows no reconfiguration. */
function toKnownDifferences(line: string): string {
  return line.replace(/^Output stat for .*/, "QUOTA COUNTED").replace(
    /^KeeperErrorCode = (?:Unimplemented|Reconfig is disabled)$/,
    "NO RECONFIG",
  );
}

describe("what is expected of them", () => {
  test.each(["kazoo_recipes.txt", "curator_recipes.txt"])("has no failure: %s", (name) => {
    expect(expected(name).filter((line) => line.includes("FAILED"))).toEqual([]);
  });
});
