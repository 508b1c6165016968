/** The operator's way back from an older copy of a server's disk, in the topic ownership model. */
import { decideTopicRestore } from "../../../src/pubsub/ownership/topic_decision.ts";
import { topicNodeAfterForget, topicNodeAfterReturn } from "../../../src/pubsub/ownership/topic_node.ts";
import type { Transition } from "../../support/explore.ts";
import { type Mistake, type OwnershipState, type Server, serverName, withServer } from "./pubsub_ownership_world.ts";

/**
 * By an operator, who holds the server's name: topic and generation in one step: the generation is written last and
 * read first.
 */
export function restore(state: OwnershipState, who: number, { server, out, has }: {
  readonly server: Server;
  readonly out: Transition<OwnershipState>[];
  readonly has: (mistake: Mistake) => boolean;
}): void {
  const { node } = state;
  if (state.present[who] !== "none") return;
  const step = (next: OwnershipState) =>
    void out.push({ kind: "step", label: `${serverName(who)} is restored`, state: next });
  const young = withServer(state, who, { isOld: false });
  const decision = node === null ? null : decideTopicRestore(serverName(who), node.value, server);
  if (node === null || decision === null || decision.do === "keep") return step(young);
  if (decision.do === "leave") return;
  const version = node.version + 1;
  // What nobody has any more may have been answered: the operator has accepted that.
  const client = { ...state.client, acked: "", moved: 0, returned: "" };
  const others = young.servers.map((other, index) => index === who ? other : { ...other, request: null });
  const accepted = { ...young, client, servers: others, isForgotten: true };
  if (decision.do === "give up") {
    const back = topicNodeAfterReturn(node.value);
    const value = back ?? topicNodeAfterForget(node.value, "r");
    if (value === null) throw new Error("No sequence numbers are left");
    return step({ ...(back === null ? accepted : young), node: { value, version } });
  }
  const { copy } = server;
  if (copy === null) throw new Error("Nothing to restore");
  const value = {
    ...decision.next,
    ...(has("restores without raising numbers") ? { baseOffset: node.value.baseOffset } : {}),
    ...(has("restores at the same epoch") ? { ...node.value, baseOffset: decision.next.baseOffset } : {}),
  };
  // What the copy had keeps its numbers, and is left out here: a message's number is its place behind the baseOffset.
  const raised = { ...copy, baseOffset: value.baseOffset, log: "", cursor: value.baseOffset, seen: "" };
  step(withServer({ ...accepted, node: { value, version } }, who, { copy: raised }));
}

/** The disk as it is now is kept, or takes the place of what has come since. `down`: the server without its process. */
export function putBack(state: OwnershipState, who: number, { server, out, down }: {
  readonly server: Server;
  readonly out: Transition<OwnershipState>[];
  readonly down: OwnershipState;
}): void {
  const { copy, staged, dropped, backup } = server;
  const name = serverName(who);
  if (backup === null && copy !== null) {
    const kept = withServer(state, who, { backup: { copy, staged, dropped } });
    out.push({ kind: "fault", label: `${name} is backed up`, state: kept });
  }
  if (backup === null) return;
  const old = withServer(down, who, { ...backup, isOld: true, wasOld: true, backup: null });
  out.push({ kind: "fault", label: `${name} is put back`, state: old });
}
