/** Describes a barrier that did not start: participants, missing ones, and members of an earlier generation. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { formatDuration } from "../../support/duration.ts";
import { printable } from "../../support/text.ts";
import { cameBefore, responseName } from "./barrier_nodes.ts";
import type { BarrierPath } from "./barrier_path.ts";
import { participantNodes, type ParticipantStatus, participantStatuses, readBarrier } from "./barrier_view.ts";
import { nameOfHolder } from "../holder_info.ts";

export interface BarrierStatus {
  readonly parties: number;
  /** Participants in the order of arrival; only the first ones of many. */
  readonly gathered: readonly ParticipantStatus[];
  readonly gatheredCount: number;
  /** Members of an earlier generation that have not left yet. */
  readonly leaving: readonly ParticipantStatus[];
  /** GUIDs of participants that did not respond to the round. */
  readonly silent: readonly string[];
}

/** The maximum number of participants whose data is read. */
const detailsMax = 20;

/** Reads the status of the generation in which the participant `guid` waits. */
export async function barrierStatus(
  zk: ZooKeeper,
  path: BarrierPath,
  { parties, guid }: { readonly parties: number; readonly guid: string },
): Promise<BarrierStatus> {
  // A sync is needed: a server that lags behind would not show the latest participants.
  const [, view] = await Promise.all([zk.sync(path.barrier), readBarrier(zk, path)]);
  const nodes = participantNodes(view?.children ?? []).sort((left, right) => (cameBefore(left, right) ? -1 : 1));
  const isOpen = (node: { epoch: string; generation: number }) =>
    node.epoch === view?.state.epoch && node.generation === view.state.generation;
  const gathered = nodes.filter(isOpen);
  const round = view?.state.round ?? null;
  const silent = gathered.filter((node) =>
    round?.members.includes(node.guid) && node.guid !== guid &&
    !view?.children.includes(responseName(round.id, node.guid))
  );
  const [named, leaving] = await Promise.all([
    participantStatuses(zk, path, gathered.slice(0, detailsMax)),
    participantStatuses(zk, path, nodes.filter((node) => !isOpen(node)).slice(0, detailsMax)),
  ]);
  return { parties, gathered: named, gatheredCount: gathered.length, leaving, silent: silent.map((node) => node.guid) };
}

/** `2 of 3 are here: root@db1:812 (agent) for 12s, and this one; 1 is missing`. `nowMs` is the wall clock. */
export function describeBarrier(status: BarrierStatus, { guid, nowMs }: { guid: string; nowMs: number }): string {
  const { parties, gathered, gatheredCount, leaving, silent } = status;
  const others = gathered.filter(({ node }) => node.guid !== guid);
  const isHere = others.length < gathered.length;
  const names = listed(others, nowMs, gatheredCount - gathered.length);
  const who = [...names, ...(isHere ? ["this one"] : [])].join(", ");
  const missing = parties - gatheredCount;
  const parts = [`${gatheredCount} of ${parties} are here${who === "" ? "" : `: ${who}`}`];
  if (missing > 0) parts.push(missing === 1 ? "1 is missing" : `${missing} are missing`);
  if (leaving.length > 0) parts.push(`the previous generation has not ended: ${listed(leaving, nowMs, 0).join(", ")}`);
  const notResponding = gathered.filter(({ node }) => silent.includes(node.guid));
  if (missing <= 0 && notResponding.length > 0) {
    parts.push(`no response from ${notResponding.map(nameOfHolder).join(", ")}`);
  }
  return parts.join("; ");
}

/** The maximum number of names in a message. */
const namedMax = 8;

function listed(parties: readonly ParticipantStatus[], nowMs: number, more: number): string[] {
  const named = parties.slice(0, namedMax).map((party) => {
    // The wall clocks of two machines may differ: a negative time counts as 0.
    const since = party.sinceMs === 0 ? "" : ` for ${formatDuration(Math.max(0, nowMs - party.sinceMs))}`;
    return `${nameOfHolder(party)}${since}${party.reason === "" ? "" : ` (${printable(party.reason)})`}`;
  });
  const rest = parties.length - named.length + more;
  return rest > 0 ? [...named, `${rest} more`] : named;
}
