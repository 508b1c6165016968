/** What must be true of a start and of an end, judged by what only somebody outside can know. */
import { parseBarrierParticipantNode } from "../../../src/coordination/barrier/barrier_state.ts";
import type { BarrierWorld, BarrierWorldState } from "./barrier_world.ts";

/**
 * Early release: a start in which some member was not a live process at any moment after the last of them had entered.
 * And: it was not expired, and nobody of the generation before was still running or leaving.
 */
export function judgeStart(
  state: BarrierWorldState,
  world: BarrierWorld,
  members: readonly string[],
): string | null {
  if (members.length !== world.options.parties || new Set(members).size !== members.length) {
    return `${members.length} are started: ${members.join(", ")}`;
  }
  for (const member of members) {
    const node = state.server.nodes.find(({ name }) => parseBarrierParticipantNode(name)?.guid === member);
    if (node === undefined) return `${member} is started and is not there`;
    const known = state.dead[node.owner];
    if (known !== undefined && !members.every((other) => known.includes(other))) {
      return `Early release: ${member} had ended before ${members.join(", ")} had all entered`;
    }
  }
  for (const member of state.server.state.started?.members ?? []) {
    if (world.hasEntered(member, state.server)) return `A start while ${member} of the one before has not left`;
  }
  return null;
}

/** They leave together. */
export function judgeEnd(state: BarrierWorldState, members: readonly string[]): string | null {
  const other = state.server.nodes.map(({ name }) => parseBarrierParticipantNode(name)?.guid ?? "").find((guid) =>
    members.includes(guid)
  );
  return other === undefined ? null : `Somebody has seen all leave, and ${other} has not`;
}
