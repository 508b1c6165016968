/** The server's side of the barrier protocol, as values: one container, what is written into it, and its children. */
import type { BarrierState } from "../../../src/coordination/barrier/barrier_state.ts";
import type { Node } from "./lock_server_model.ts";

export type { Node };

/** Without a version the container does not exist. A server is never changed: every write makes another one. */
export interface BarrierServer {
  readonly version: number | null;
  readonly state: BarrierState;
  readonly nodes: readonly Node[];
  readonly sequence: number;
}

const texts = new WeakMap<BarrierServer, string>();
export function textOf(server: BarrierServer): string {
  let text = texts.get(server);
  if (text === undefined) {
    const { version, state, nodes } = server;
    const sequence = nodes.length === 0 ? 0 : server.sequence;
    text = `${version}${version === null ? "" : textOfState(state)}[${
      nodes.map(({ name, owner }) => `${name}=${owner}`).join()
    }]${sequence}`;
    texts.set(server, text);
  }
  return text;
}

export function textOfState({ epoch, generation, round, started, broken }: BarrierState): string {
  const open = round === null ? "" : `${round.id}:${round.members.join("+")}`;
  const last = started === null ? "" : `${started.generation}:${started.members.join("+")}`;
  return `(${epoch}.${generation} ${open} ${last} ${broken?.generation ?? ""})`;
}

/** Children have no order. */
export function withNode(server: BarrierServer, node: Node): BarrierServer {
  const nodes = [...server.nodes, node].sort((left, right) => (left.name < right.name ? -1 : 1));
  return { ...server, nodes };
}

export const namesOf = (server: BarrierServer): string[] => server.nodes.map((node) => node.name);

export function withParty(
  server: BarrierServer,
  prefix: string,
  owner: string,
): BarrierServer {
  // Only the order counts, so that an empty container may begin again: fewer states.
  const sequence = server.nodes.length === 0 ? 0 : server.sequence;
  const name = prefix + String(sequence).padStart(10, "0");
  return { ...withNode(server, { name, owner }), sequence: sequence + 1 };
}

export function without(server: BarrierServer, names: readonly string[]): BarrierServer {
  return { ...server, nodes: server.nodes.filter((node) => !names.includes(node.name)) };
}

export function withoutSession(server: BarrierServer, owner: string): BarrierServer {
  return { ...server, nodes: server.nodes.filter((node) => node.owner !== owner) };
}

export function gone(server: BarrierServer): BarrierServer {
  return { ...server, version: null, nodes: [], sequence: 0 };
}
