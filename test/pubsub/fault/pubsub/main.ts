/**
 * The full dose:
 * `scripts/fault pubsub [--rounds N | --minutes M] [--messages N] [--faults N] [--seed S] [--on keeper|ensemble]…
 * [--rate N] [--lanes N] [--only FAULT] [--retain messages|size|age] [--store postgres [--database KIND]…] [--keep]`.
 * A round is a campaign with a service of its own; each backend has its rounds. With `--store postgres` servers share a
 * database; KIND is one of synchronous, asynchronous (fail-overs), full-disk, mixed (one server has a data directory,
 * and topics move between both): rounds take turns. `scripts/fault pubsub --defects` instead puts the defects of the
 * paper's program back and has the judge find each.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { keeper, zooKeeperEnsemble } from "../../../support/backends.ts";
import { hasPeer } from "../../../support/peers.ts";
import { installedBackends } from "../../../support/dose_arguments.ts";
import { doseLength, doseOptions } from "../../../support/run_rounds.ts";
import { canMountDisk } from "../../../support/small_disk.ts";
import { type DatabasePlan, runPubsubCampaign } from "./campaign.ts";
import { runDefects } from "./defects/run_defects.ts";
import { fullCrew, fullSessionTimeoutMs } from "./dose.ts";
import { verdictText } from "./judge.ts";
import { type Retention, retentions } from "./retention.ts";

const { values } = parseArgs({
  options: {
    ...doseOptions,
    messages: { type: "string", default: "200000" },
    faults: { type: "string", default: "200" },
    on: { type: "string", multiple: true, default: ["keeper", "ensemble"] },
    rate: { type: "string", default: "20000" },
    lanes: { type: "string", default: "3" },
    "session-timeout": { type: "string", default: String(fullSessionTimeoutMs) },
    only: { type: "string" },
    retain: { type: "string" },
    store: { type: "string", default: "folder" },
    database: { type: "string", multiple: true },
    keep: { type: "boolean", default: false },
    defects: { type: "boolean", default: false },
  },
});
if (values.defects) process.exit(await tellDefects() ? 0 : 1);
const names = { keeper: keeper.name, ensemble: zooKeeperEnsemble.name } as const;
const wanted = values.on.map((name) => names[name as keyof typeof names] ?? name);
const backends = installedBackends([keeper, zooKeeperEnsemble], wanted);
/** For the library below the servers' disks. */
function hasCompiler(): boolean {
  if (hasPeer("cc")) return true;
  console.error("MISSING PEER: cc; the disks' faults are left out");
  return false;
}
const seed = Number(values.seed);
const databases = databasesOf(values.store, values.database);
const { rounds, isOver } = doseLength(values, 1);
let isGood = true;
for (let round = 0; round < rounds && !isOver(); round++) {
  for (const backend of backends) {
    if (isOver()) break;
    const database = databases[round % databases.length];
    const where = `${backend.name}${database === undefined ? "" : `, ${database.name} database`}`;
    console.log(`round ${round} on ${where}, --seed ${seed + round}`);
    const result = await runPubsubCampaign({
      ...{ backend, seed: seed + round, sessionTimeoutMs: Number(values["session-timeout"]), ...fullCrew },
      ...{ messages: Number(values.messages), faults: Number(values.faults) },
      ...{ rate: Number(values.rate), lanes: Number(values.lanes), keepFolder: values.keep },
      hasStorageFaults: hasCompiler(),
      retention: retentionOf(values.retain),
      ...(database === undefined ? {} : { database }),
      ...(values.only === undefined ? {} : { only: values.only }),
      say: (line) => console.log(`  ${line}`),
    });
    const faults = [...result.faults].sort().map(([name, count]) => `  ${String(count).padStart(5)}  ${name}`);
    console.log([verdictText(result.verdict), ...faults].join("\n"));
    for (const failure of result.failures) console.log(`FAIL ${failure}`);
    if (result.folder !== null) console.log(`the history is in ${result.folder}`);
    console.log(`${Math.round(result.seconds)} s, on ${where}, --seed ${seed + round}\n`);
    isGood &&= result.folder === null;
  }
}
process.exit(isGood ? 0 : 1);

/** In their order; none: servers have data directories. */
function databasesOf(
  store: string,
  kinds: readonly string[] | undefined,
): (DatabasePlan & { readonly name: string })[] {
  if (store === "folder") return [];
  if (store !== "postgres") throw new Error(`--store ${store}: it is folder or postgres`);
  const known = {
    synchronous: { replication: "synchronous", isOnSmallDisk: false },
    asynchronous: { replication: "asynchronous", isOnSmallDisk: false },
    "full-disk": { replication: "none", isOnSmallDisk: true },
    mixed: { replication: "synchronous", isOnSmallDisk: false, isMixed: true },
  } as const satisfies Record<string, DatabasePlan>;
  const canMount = canMountDisk("rounds whose disk is full are left out");
  return (kinds ?? Object.keys(known)).flatMap((name) => {
    const plan = known[name as keyof typeof known];
    if (plan === undefined) throw new Error(`--database ${name}: it is one of ${Object.keys(known).join(", ")}`);
    return plan.isOnSmallDisk && !canMount ? [] : [{ name, ...plan }];
  });
}

function retentionOf(name: string | undefined): Retention | null {
  const found = Object.entries(retentions).find(([known]) => known === name)?.[1] ?? null;
  if (found !== null || name === undefined) return found;
  throw new Error(`--retain ${name}: it is one of ${Object.keys(retentions).join(", ")}`);
}

async function tellDefects(): Promise<boolean> {
  const results = await runDefects({ controls: true, parallel: 2 });
  for (const { number, what, caught, alarm } of results) {
    console.log(`${number}, ${what}: ${caught === null ? "NOT CAUGHT" : `caught, ${caught}`}`);
    if (alarm !== null) console.log(`   FALSE ALARM ${alarm}`);
  }
  const caught = results.filter((result) => result.caught !== null).length;
  console.log(`${caught} of ${results.length} caught`);
  return results.every((result) => result.caught !== null && result.alarm === null);
}
