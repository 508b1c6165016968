/** A client of the topic ownership model: one publisher of each message, one subscriber. */
import type { Client, OwnershipState, Request } from "./pubsub_ownership_world.ts";

/** What the answer makes its client believe, and whether that client has been told otherwise before. */
export function told(
  { client, wrong }: OwnershipState,
  request: Exclude<Request, { kind: "let in" }>,
): Pick<OwnershipState, "client" | "wrong"> {
  const { seq, id } = request;
  const isGiven = client.given.some(([other, what]) => other === seq && what === id);
  const given: Client["given"] = isGiven || id === ""
    ? client.given
    : [...client.given, [seq, id] as const].sort(([a], [b]) => a - b);
  if (request.kind === "put") {
    const acked = client.acked.includes(id) ? client.acked : [...client.acked, id].sort().join("");
    return { client: { ...client, acked, given }, wrong };
  }
  // The answer to an earlier get: its client waits for it no longer.
  if (request.last !== client.received) return { client, wrong };
  const moved = Math.max(client.moved, request.last);
  if (id === "") return { client: { ...client, moved }, wrong };
  const again = client.returned.includes(id) ? `Message ${id} is returned again` : wrong;
  return { client: { ...client, moved, received: seq, returned: client.returned + id, given }, wrong: again };
}
