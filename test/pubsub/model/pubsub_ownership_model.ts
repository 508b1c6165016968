/**
 * Topic ownership and handoff of docs/protocol/pubsub_ownership.md as an explicit-state model of one topic, deciding
 * with the product's own decideTopic. Requests and transfers stay in the network for ever: each may arrive at any time,
 * at any server, any number of times. A server acts on what it has read at any earlier time of its session.
 *
 * Models: docs/protocol/pubsub_ownership.md, src/pubsub/ownership/owned_topic.ts,
 * src/pubsub/ownership/topic_decision.ts, src/pubsub/ownership/topic_node.ts, src/pubsub/ownership/restore_server.ts,
 * src/pubsub/store/operations/owned_store.ts
 */
import {
  topicNodeAfterAssignment,
  topicNodeAfterForget,
  topicNodeAfterReassignment,
  topicNodeAfterReturn,
} from "../../../src/pubsub/ownership/topic_node.ts";
import type { Model, Transition } from "../../support/explore.ts";
import { Interned } from "../../support/interned.ts";
import { OwnershipServerModel } from "./pubsub_ownership_server_model.ts";
import {
  type Content,
  emptyContent,
  type Fault,
  type Mistake,
  type OwnershipModelOptions,
  type OwnershipState,
  type Server,
  serverName,
  stopped,
  type StoredCopy,
  type Znode,
} from "./pubsub_ownership_world.ts";

export class OwnershipModel implements Model<OwnershipState> {
  readonly initial: readonly OwnershipState[];
  readonly #options: OwnershipModelOptions;
  readonly #server: OwnershipServerModel;
  readonly #numbers = new Interned<object>((value) =>
    JSON.stringify(value, (_, part) => part === undefined ? "?" : part)
  );

  constructor(options: OwnershipModelOptions) {
    this.#options = options;
    this.#server = new OwnershipServerModel(options);
    const value = { owner: "s0", epoch: 1, state: "stored", incarnation: "b", baseOffset: 0, source: null } as const;
    const copy = { incarnation: "b", baseOffset: 0, epoch: 1, sealedFor: null, ...emptyContent(0) };
    const isNew = (options.proxies ?? 0) > 0 &&
      !options.faults.some((fault) => fault === "forget" || fault === "delete");
    const servers = Array.from({ length: options.servers }, (_, who): Server => ({
      ...stopped,
      copy: who === 0 && !isNew ? copy : null,
    }));
    this.initial = [{
      node: isNew ? null : { value, version: 0 },
      present: servers.map(() => "none"),
      servers,
      proxies: Array.from({ length: options.proxies ?? 0 }, () => undefined),
      transfers: [],
      ghosts: [],
      client: { acked: "", moved: 0, received: 0, returned: "", given: [] },
      faultsLeft: options.faultsMax,
      movesLeft: options.moves,
      isForgotten: false,
      isDiskLost: false,
      isTreeLost: false,
      wrong: null,
    }];
  }

  key(state: OwnershipState): string {
    const number = (value: object | null | undefined) => value ? this.#numbers.numberOf(value) : `${value}`;
    const parts = state.servers.map(number).join();
    const rest = [state.node, state.present, state.proxies, state.client].map(number).join();
    const flags = `${state.isForgotten ? 1 : 0}${state.isDiskLost ? 1 : 0}${state.isTreeLost ? 1 : 0}`;
    const network = `${state.transfers.map(number).sort().join()};${state.ghosts.map(number).join()}`;
    return `${parts};${rest};${network};${state.faultsLeft}.${state.movesLeft}${flags}${state.wrong ?? ""}`;
  }

  /** All are back, one answers, and nothing that is of no use any more lies about. */
  isDone(state: OwnershipState): boolean {
    if (state.ghosts.length > 0) return false;
    if (!state.servers.every((server) => server.isUp && server.session === "live" && server.hasLease)) return false;
    if (state.isDiskLost && this.#truth(state) === null) return true;
    return this.#answering(state).length === 1 &&
      state.servers.filter((server) => server.copy !== null || server.staged !== null).length === 1;
  }

  violation(state: OwnershipState): string | null {
    if (state.wrong !== null) return state.wrong;
    const answering = this.#answering(state);
    if (answering.length > 1) return `${answering.map(serverName).join(" and ")} answer for the topic`;
    if (state.node === null) return null;
    // What was put back is gone, whoever had it; nothing may come of that but what an operator accepts.
    if (state.servers.some(({ isOld }) => isOld)) return null;
    const truth = this.#truth(state);
    const { acked, moved, given } = state.client;
    if (truth === null) return state.isDiskLost ? null : "Its owner does not have the topic's content";
    const { log } = truth;
    if (new Set(log).size < log.length && !state.isForgotten) return `A message is there twice: ${log}`;
    for (const id of acked) if (!log.includes(id)) return `Message ${id} was answered OK and is lost`;
    if (moved > truth.cursor) return `The cursor was at ${moved}, and is at ${truth.cursor} again`;
    for (const [index, [seq, id]] of given.entries()) {
      const other = given.findIndex(([again, what]) => again === seq && what !== id);
      if (other > index) return `Sequence number ${seq} was used twice`;
    }
    return null;
  }

  idleViolation(): string | null {
    return null;
  }

  transitions(state: OwnershipState): Transition<OwnershipState>[] {
    const out: Transition<OwnershipState>[] = [];
    for (const who of state.servers.keys()) this.#server.moves(state, who, out);
    for (const who of state.proxies.keys()) this.#proxyMoves(state, who, out);
    for (const [index, ghost] of state.ghosts.entries()) {
      const ghosts = state.ghosts.filter((_, other) => other !== index);
      const matches = ghost.version === null ? state.node === null : state.node?.version === ghost.version;
      const node = matches ? { value: ghost.next, version: (ghost.version ?? -1) + 1 } : state.node;
      out.push({ kind: "choice", label: "a dead process's write arrives", state: { ...state, ghosts, node } });
      out.push({ kind: "choice", label: "a dead process's write is lost", state: { ...state, ghosts } });
    }
    if (state.faultsLeft > 0) this.#faults(state, out);
    return out;
  }

  #proxyMoves(state: OwnershipState, who: number, out: Transition<OwnershipState>[]): void {
    const known = state.proxies[who];
    const name = `proxy ${who}`;
    const withKnown = (from: OwnershipState, next: Znode | null | undefined): OwnershipState => ({
      ...from,
      proxies: from.proxies.map((other, index) => index === who ? next : other),
    });
    const isUseful = state.node === null || state.node.value.state === "new" ||
      this.#has("assigns what a dead server has stored");
    if (isUseful && known !== state.node) {
      out.push({ kind: "step", label: `${name} reads the topic`, state: withKnown(state, state.node) });
    }
    if (known === undefined) return;
    for (const target of state.servers.keys()) {
      const next = this.#assignment(state, known, serverName(target), `p${who}`);
      if (next === null) continue;
      const fits = known === null ? state.node === null : state.node?.version === known.version;
      const label = `${name} assigns the topic to ${serverName(target)}`;
      if (!fits && !this.#has("assigns without a version")) {
        out.push({ kind: "step", label: `${label}, refused`, state: withKnown(state, undefined) });
        continue;
      }
      const done = { ...state, node: { value: next, version: (state.node?.version ?? -1) + 1 } };
      out.push({ kind: "step", label, state: withKnown(done, undefined) });
    }
  }

  /** Only what nobody has stored may be given to anybody. */
  #assignment(state: OwnershipState, known: Znode | null, owner: string, incarnation: string) {
    if (known === null) return topicNodeAfterAssignment(owner, incarnation);
    const { value } = known;
    const isThere = state.present[Number(value.owner.slice(1))] === "live" && value.owner !== "";
    const epochMax = this.#may("delete") && state.isForgotten ? 5 : 3; // as often as it has to be, and an end of it
    if (isThere || value.owner === owner || value.epoch > epochMax) return null;
    if (value.state === "new") return topicNodeAfterReassignment(value, owner);
    return this.#has("assigns what a dead server has stored")
      ? { ...topicNodeAfterReassignment(value, owner), state: "new" as const, source: null }
      : null;
  }

  #faults(state: OwnershipState, out: Transition<OwnershipState>[]): void {
    const fewer = { ...state, faultsLeft: state.faultsLeft - 1 };
    const { node } = state;
    if (this.#may("forget") && node !== null && node.value.owner !== "" && !state.isForgotten) {
      const isAbsent = state.present[Number(node.value.owner.slice(1))] === "none";
      if (isAbsent || this.#has("forgets a server that is there")) out.push(this.#forget(fewer, node));
    }
    if (this.#may("delete") && node !== null && !state.isForgotten) {
      for (const who of this.#answering(state)) {
        if (state.servers[who]?.known?.version === node.version) out.push(this.#delete(fewer, node, who));
      }
    }
    if (this.#may("tree lost") && !state.isTreeLost) {
      const servers = state.servers.map((server): Server => ({
        ...server,
        session: server.session === "live" ? "over" : server.session,
        hasLease: false,
        view: undefined,
      }));
      const present = state.present.map(() => "none" as const);
      const lost = { ...fewer, node: null, present, servers, ghosts: [], isTreeLost: true };
      out.push({ kind: "fault", label: "the tree is lost", state: lost });
    }
  }

  #forget(state: OwnershipState, node: Znode): Transition<OwnershipState> {
    const label = `${node.value.owner} is forgotten`;
    const version = node.version + 1;
    const back = topicNodeAfterReturn(node.value);
    if (back !== null) return { kind: "fault", label, state: { ...state, node: { value: back, version } } };
    const incarnation = this.#has("forgets without another incarnation") ? node.value.incarnation : "f";
    const fresh = topicNodeAfterForget(node.value, incarnation);
    if (fresh === null) throw new Error("No sequence numbers are left");
    const baseOffset = this.#has("numbers messages again after a forget") ? 0 : fresh.baseOffset;
    const client = { ...state.client, acked: "", moved: 0, returned: "" };
    // What others have stored in earlier epochs and are about to answer was lost with the rest.
    const servers = state.servers.map((server, who) =>
      serverName(who) === node.value.owner ? server : { ...server, request: null }
    );
    const next = { ...state, node: { value: { ...fresh, baseOffset }, version }, client, servers, isForgotten: true };
    return { kind: "fault", label, state: next };
  }

  /**
   * By its owner: nothing more is let in, what was let in is done, the node is another content's, and then its copy
   * goes.
   */
  #delete(state: OwnershipState, node: Znode, who: number): Transition<OwnershipState> {
    const fresh = topicNodeAfterForget(node.value, "f");
    if (fresh === null) throw new Error("No sequence numbers are left");
    const written = { value: fresh, version: node.version + 1 };
    const client = { ...state.client, acked: "", moved: 0, returned: "" };
    const goesOn = this.#has("goes on answering for what it has deleted");
    const servers = state.servers.map((server, at): Server => {
      if (at !== who) return { ...server, request: null };
      if (goesOn) return server;
      const dropped = { incarnation: node.value.incarnation, epoch: fresh.epoch };
      // Known for what it was: copies of it that are left at other servers may go as well.
      return { ...server, request: null, copy: null, aside: server.copy?.log ?? null, dropped, known: written };
    });
    const label = `${serverName(who)} deletes the topic`;
    return { kind: "fault", label, state: { ...state, node: written, client, servers, isForgotten: true } };
  }

  #answering(state: OwnershipState): number[] {
    return [...state.servers.keys()].filter((who) => this.#server.answers(state, who));
  }

  /** The content that counts: what the owner named by the node has, or has yet to open. */
  #truth(state: OwnershipState): Content & { readonly baseOffset: number } | null {
    if (state.node === null) return null;
    const { owner, epoch, state: what, incarnation, baseOffset, source } = state.node.value;
    if (what === "new") return { ...emptyContent(baseOffset), baseOffset };
    const copies = state.servers.flatMap(({ copy }): StoredCopy[] => copy?.incarnation === incarnation ? [copy] : []);
    const highest = copies.toSorted((a, b) => b.epoch - a.epoch)[0];
    if (state.isTreeLost && highest !== undefined && highest.epoch > epoch) return highest;
    const server = state.servers[Number(owner.slice(1))];
    const copy = server?.copy?.incarnation === incarnation ? server.copy : null;
    if (copy?.epoch === epoch) return copy;
    if (what !== "moving") return null;
    if (source?.owner === owner) return copy?.epoch === source.epoch ? copy : null;
    const staged = server?.staged ?? null;
    return staged?.incarnation === incarnation && staged.epoch === source?.epoch ? staged : null;
  }

  #may(fault: Fault): boolean {
    return this.#options.faults.includes(fault);
  }

  #has(mistake: Mistake): boolean {
    return this.#options.mistakes?.includes(mistake) ?? false;
  }
}
