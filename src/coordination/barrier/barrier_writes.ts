/** The transaction of each decision. All of them look at the own node, so that nobody acts in a container made anew. */
import type { Acl, MultiRequest } from "../../zookeeper/zookeeper.ts";
import { createFlag } from "../../wire/jute/zookeeper_operations.ts";
import { brokenState, openedState, startedState } from "./barrier_decision.ts";
import { type ParticipantNode, responseName } from "./barrier_nodes.ts";
import type { BarrierChange } from "./barrier_participant.ts";
import type { BarrierPath } from "./barrier_path.ts";
import { type BarrierState, formatBarrierState } from "./barrier_state.ts";
import type { BarrierView } from "./barrier_view.ts";

export interface ChangeFacts {
  readonly path: BarrierPath;
  readonly view: BarrierView;
  readonly mine: ParticipantNode;
  /** The own nodes: the party's and its answers. */
  readonly own: readonly string[];
  readonly acl: Acl[];
  /** Who was lost, for "break". */
  readonly told: { readonly lost: readonly string[]; readonly why: string } | null;
  /** The own node in the gathering that is open now, for "move". */
  readonly creation: MultiRequest | null;
}

export function changesFor(decision: BarrierChange, facts: ChangeFacts): MultiRequest[] {
  const { path: { barrier }, view, mine, own, acl, told, creation } = facts;
  const { state, version } = view;
  const at = (name: string) => `${barrier}/${name}`;
  const set = (next: BarrierState): MultiRequest => ({
    type: "setData",
    path: barrier,
    data: formatBarrierState(next),
    version,
  });
  const there = (name: string): MultiRequest => ({ type: "check", path: at(name), version: -1 });
  const gone = (name: string): MultiRequest => ({ type: "delete", path: at(name), version: -1 });
  switch (decision.do) {
    case "answer": {
      const answer = at(responseName(decision.round, mine.guid));
      const data = new Uint8Array();
      return [there(mine.name), { type: "create", path: answer, data, acl, flags: createFlag.ephemeral }];
    }
    case "open":
      return [set(openedState(state, { guid: mine.guid, version, members: decision.members })), there(mine.name)];
    case "start": {
      const next = startedState(state, { members: decision.members, token: view.writtenBy });
      const nodes = decision.nodes.includes(mine.name) ? decision.nodes : [...decision.nodes, mine.name];
      return [set(next), ...nodes.map(there), ...decision.answers.map(gone)];
    }
    case "break":
      return [set(brokenState(state, told ?? { lost: [], why: "" })), there(mine.name)];
    case "move":
      return [
        { type: "check", path: barrier, version },
        ...own.map(gone),
        ...(creation === null ? [] : [creation]),
      ];
  }
}
