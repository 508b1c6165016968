/** Faults of the database that servers share, and of their connections to it. Each counts only if it had an effect. */
import type { StatementCut } from "../../../support/statement_cutter.ts";
import type { PostgresPair } from "../../../support/postgres_pair.ts";
import type { PubsubFault } from "./faults.ts";
import { pick, span, toOne, type World } from "./world.ts";

const cuts: readonly StatementCut[] = ["before", "sent", "after"];
/** Most of what a server does is the first one. */
const statements = ["topic_batch", "topic_batch", "topic_open", "topic_read", "topic_insert", "topic_read_messages"];
/** Those of transfers from and into another store. */
const transferStatements = [
  "topic_isArriving",
  "topic_stage\0",
  "topic_activate",
  "topic_seal",
  "topic_clients_after",
  "topic_drop",
];
const cutMsMax = 3000;
const lookMs = 10;
/** Statements wait for a lock for 10 s. */
const lockMs = 11_500;

/** Whatever stops the database as a whole is alone. `act` returns how often it had an effect. */
function onDatabase(act: (world: World, database: PostgresPair) => Promise<number>): PubsubFault["apply"] {
  return async (world) => {
    const { database } = world;
    let effect = 0;
    if (database === null) return null;
    await toOne(world, [database], async () => void (effect = await act(world, database)));
    return effect > 0 ? `database ${effect}` : null;
  };
}

function cutting(cut: StatementCut, weight: number): PubsubFault {
  return {
    name: `a statement is cut off ${cut === "before" ? "before" : cut === "sent" ? "while" : "after"} it is executed`,
    weight,
    apply: async (world) => {
      let name: string | null = null;
      const { database } = world;
      await toOne(world, database === null ? [] : world.service.servers, async ({ id, way }) => {
        if (way === null || database === null) return;
        const isMixed = world.service.servers.some((server) => server.way === null);
        const statement = pick(world, isMixed ? [...statements, ...transferStatements] : statements);
        const cutter = database.cutterOf(way);
        const before = cutter.cuts;
        cutter.arm(cut, statement);
        for (let leftMs = cutMsMax; leftMs > 0 && cutter.cuts === before; leftMs -= lookMs) await world.wait(lookMs);
        cutter.disarm();
        if (cutter.cuts > before) name = `${id} ${statement}`;
      });
      return name;
    },
  };
}

const connections: readonly PubsubFault[] = [
  ...cuts.map((cut) => cutting(cut, 5)),
  {
    name: "a server is cut off from the database",
    weight: 3,
    apply: async (world) => {
      let name: string | null = null;
      await toOne(world, world.service.servers, async ({ id, way }) => {
        if (way === null) return;
        name = id;
        for (const cutter of way.cutters) cutter.hold();
        await world.wait(span(world, 0.1, 1.5) * world.sessionTimeoutMs);
        for (const cutter of way.cutters) cutter.release();
      });
      return name;
    },
  },
  {
    name: "connections to the database are lost",
    weight: 3,
    apply: async (world) => {
      let count = 0;
      await toOne(world, world.service.servers, ({ way }) => {
        for (const cutter of way?.cutters ?? []) count += cutter.cutAll();
        return Promise.resolve();
      });
      return count > 0 ? `${count} connections` : null;
    },
  },
  { name: "statements are cancelled", weight: 4, apply: onDatabase((world, database) => cancel(world, database)) },
  { name: "connections are ended", weight: 2, apply: onDatabase((_world, database) => database.endConnections()) },
  {
    name: "statements time out behind a lock",
    weight: 1,
    isSlow: true,
    apply: onDatabase((_world, database) => database.lockRows("SELECT 1 FROM baton.topic FOR UPDATE", lockMs)),
  },
  {
    name: "a statement takes too long",
    weight: 1,
    isSlow: true,
    apply: onDatabase((_world, database) => database.stallStatement("baton.topic")),
  },
];

const servers: readonly PubsubFault[] = [
  {
    name: "database killed",
    weight: 3,
    apply: onDatabase(async (world, database) => {
      await database.restart(span(world, 0, 1500));
      return 1;
    }),
  },
  {
    name: "database stopped",
    weight: 2,
    apply: onDatabase(async (world, database) => {
      await database.stop(span(world, 0.05, 1) * world.sessionTimeoutMs);
      return 1;
    }),
  },
];

const failOver: PubsubFault = {
  name: "database failed over",
  weight: 3,
  apply: onDatabase(async (world, database) => {
    const before = await database.timeline();
    await database.failOver(database.replication === "asynchronous" ? span(world, 100, 1500) : 0);
    return await database.timeline() - before;
  }),
};

const fullDisk: PubsubFault = {
  name: "the disk of the database is full",
  weight: 4,
  apply: onDatabase((world, database) => database.fillDisk(span(world, 500, 4000))),
};

/** What can be done to this database. */
export function databaseFaults({ replication, isOnSmallDisk }: PostgresPair): readonly PubsubFault[] {
  return [
    ...connections,
    ...servers,
    ...(replication === "none" ? [] : [failOver]),
    ...(isOnSmallDisk ? [fullDisk] : []),
  ];
}

/**
 * A statement takes about a millisecond: it is met at one of many tries. With a synchronous standby the wait for it is
 * cancelled, too.
 */
async function cancel(world: World, database: PostgresPair): Promise<number> {
  let count = 0;
  for (let tries = 0; tries < 30 && count === 0; tries++) {
    count = await database.cancelStatements();
    if (count === 0) await world.wait(lookMs);
  }
  return count;
}
