/** `baton explain`: prints a time line of a lock, and explains why calls wait for it. */
import { printJson } from "../../../src/base/terminal/io.ts";
import { type SettingTable, toggleSetting } from "../../../src/base/config/setting.ts";
import { connectionSettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { lockHoldStartMs } from "../../../src/coordination/history/busy_notice.ts";
import { findObjectKinds, lockHolderRow, lockWaiterRow } from "../../../src/coordination/admin/object_details.ts";
import { readHistoryReport } from "../../../src/coordination/history/history_report.ts";
import { parseContenderNode, parseHolderNode } from "../../../src/coordination/lock/lock_nodes.ts";
import { electionPath, lockPath } from "../../../src/coordination/nodes/node_paths.ts";
import { poolPath } from "../../../src/coordination/pool/pool_path.ts";
import { lockStatus } from "../../../src/coordination/lock/lock_status.ts";
import { readChildNames, readExistingNodes } from "../../../src/coordination/nodes/node_requests.ts";
import { readTickSchedules } from "../../../src/coordination/tick/tick_report.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { defineCommand } from "../../command.ts";
import { runInCoordinationSession } from "../../coordination_session.ts";
import { exitCodes } from "../../../src/base/exit_codes.ts";
import type { ExplainJson } from "../../json_shapes/lock_shapes.ts";
import { type ExplainedLockFacts, explainLock } from "./explain_lock.ts";
import { formatIsoTime } from "./history_view.ts";
import { describeOtherKindsWithName, requireOneName } from "../../name_arguments.ts";
import { formatUtcSecond } from "../../../src/base/support/instant.ts";
import { shellQuoteIfNeeded } from "../../../src/base/support/shell_quote.ts";
import { printable } from "../../../src/base/support/text.ts";

const settings = {
  json: toggleSetting("--json", { help: "print one JSON object" }),
  ...connectionSettings,
} satisfies SettingTable;

export const explainCommand = defineCommand({
  name: "explain",
  summary: "print why a lock waits or was stopped",
  usage: "NAME [options]",
  details: [
    "Prints a time line of the lock: the last holds that were recorded (baton lock --history or --tick), the " +
    "holders and the waiting calls, the last call that found it busy, and the next ticks. Then one paragraph says " +
    "why it waits, and lines say what cannot be known. Times are UTC, by the servers' clock. Exits with 1 if " +
    "nothing is known of the lock.",
  ],
  examples: [
    ["baton explain backup", "why does backup not run?"],
    ["baton explain backup --json", "the same, for programs"],
  ],
  settings,
  completes: "locks",
  runsNothing: true,
  async run(call) {
    const { values, io } = call;
    const name = requireOneName("explain", call.names);
    const { root } = values;
    const { state, events, sentence, unknown } = await runInCoordinationSession(call, async (zk) => {
      const explanation = explainLock(await readFacts(zk, name, root));
      if (explanation.events.length > 0) return explanation;
      const others = describeOtherKindsWithName(await findObjectKinds(zk, name, root), { kind: "lock", name });
      const nothing = `No lock with the name "${name}" is in use, and no hold of it is recorded`;
      return { ...explanation, sentence: `${nothing}${others || await describeEnded(zk, name, root)}` };
    });
    const isKnown = events.length > 0;
    if (values.json) {
      printJson<ExplainJson>(io, {
        version: 1,
        name,
        state,
        events: events.map(({ atMs, what, text }) => ({ at: formatIsoTime(atMs), what, event: text })),
        explanation: sentence,
        unknown: [...unknown],
      });
    } else {
      for (const { atMs, text } of events) io.out(`${formatUtcSecond(atMs)}  ${printable(text)}\n`);
      io.out(`${printable(sentence)}\n`);
      for (const what of unknown) io.out(`  not known: ${printable(what)}\n`);
    }
    return isKnown ? exitCodes.SUCCESS : exitCodes.FALSE;
  },
});

/** Returns the end of a message that mentions a pool or an election of this name that is not in use. */
async function describeEnded(zk: ZooKeeper, name: string, root: string): Promise<string> {
  const shown = shellQuoteIfNeeded(name);
  if (await zk.exists(poolPath(name, { root }).own) !== null) {
    return `; there is a pool of this name: baton pool status ${shown}`;
  }
  for (const kind of ["pool", "election"] as const) {
    const { records } = await readHistoryReport(zk, name, { kind, root });
    if (records.length > 0) {
      return `; ${
        kind === "pool" ? "a pool" : "an election"
      } of this name has ended: baton history --kind ${kind} ${shown}`;
    }
  }
  if (await zk.exists(electionPath(name, root).lock) === null) return "";
  return "; an election of this name has no candidates: baton elect records its leaders only with --history";
}

async function readFacts(zk: ZooKeeper, name: string, root: string): Promise<ExplainedLockFacts> {
  const status = await lockStatus(zk, name, { root });
  const starts = await readTimes(zk, name, root);
  const [history, schedules] = await Promise.all([
    readHistoryReport(zk, name, { kind: "lock", root }),
    readTickSchedules(zk, name, root),
  ]);
  return {
    name,
    nowMs: Date.now(),
    limit: status.limit,
    history,
    schedules,
    holders: status.holders.map(lockHolderRow).map((one) => ({ ...one, since: starts.get(`h ${one.id}`) ?? null })),
    waiters: status.waiters.map(lockWaiterRow).map((one) => ({ ...one, since: starts.get(`q ${one.id}`) ?? null })),
  };
}

/**
 * Returns the times, by the servers' clock, at which each hold and each wait began. A key is `h` (hold) or `q` (wait),
 * followed by the ID.
 */
async function readTimes(zk: ZooKeeper, name: string, root: string): Promise<ReadonlyMap<string, string>> {
  const path = lockPath(name, root);
  const holders = (await readChildNames(zk, path.holders)).map(parseHolderNode).filter((node) => node !== null);
  const contenders = (await readChildNames(zk, path.queue)).map(parseContenderNode).filter((node) => node !== null);
  const [held, queued] = await Promise.all([
    readExistingNodes(zk, path.holders, holders),
    readExistingNodes(zk, path.queue, contenders),
  ]);
  return new Map([
    ...held.map((read): [string, string] => [`h ${read.node.guid}`, formatIsoTime(lockHoldStartMs(read))]),
    ...queued.map(({ node, stat }): [string, string] => [`q ${node.guid}`, formatIsoTime(Number(stat.ctime))]),
  ]);
}
