/** A server of the topic ownership model: its session, what it does about the topic, what it answers. */
import { decideTopic, decideTopicTransfer, type TopicAction } from "../../../src/pubsub/ownership/topic_decision.ts";
import { type TopicNode, topicNodeAfterTakeBack } from "../../../src/pubsub/ownership/topic_node.ts";
import type { Transition, TransitionKind } from "../../support/explore.ts";
import { told } from "./pubsub_ownership_client_model.ts";
import { putBack, restore } from "./pubsub_ownership_restore_model.ts";
import {
  emptyContent,
  type Fault,
  type Mistake,
  type OwnershipModelOptions,
  type OwnershipState,
  type Request,
  type Server,
  serverName,
  stopped,
  type StoredCopy,
  type Transfer,
  transferOf,
  withPresence,
  withServer,
  type Znode,
} from "./pubsub_ownership_world.ts";

type Out = Transition<OwnershipState>[];

export class OwnershipServerModel {
  readonly #options: OwnershipModelOptions;

  constructor(options: OwnershipModelOptions) {
    this.#options = options;
  }

  moves(state: OwnershipState, who: number, out: Out): void {
    const server = state.servers[who] as Server;
    this.#sessionMoves(state, who, server, out);
    if (!server.isUp) return;
    if (state.faultsLeft > 0) this.#faults(state, who, server, out);
    this.#requests(state, who, server, out);
    if (server.late !== null && server.copy !== null) {
      const copy = { ...server.copy, epoch: server.late, sealedFor: null };
      push(out, "step", `${serverName(who)} has opened its copy`, withServer(state, who, { copy, late: null }));
    }
    if (server.session === "none" && !this.#has("reads before it announces itself")) return;
    const seen = server.view === undefined ? state.node : server.view;
    if (server.known !== seen && server.session !== "over") {
      push(out, "step", `${serverName(who)} reads the topic`, withServer(state, who, { known: seen }));
    }
    if (server.session === "none") return;
    if (server.known !== undefined) this.#act(state, who, server, server.known, out);
    this.#receive(state, who, server, out);
  }

  /** Whether it would begin to answer a request now. */
  answers(state: OwnershipState, who: number): boolean {
    const server = state.servers[who] as Server;
    if (!server.isUp || server.copy === null || server.copy.sealedFor !== null) return false;
    const isHeard = this.#has("does not look at its lease")
      ? server.session !== "none"
      : server.session === "live" && server.hasLease;
    if (!isHeard) return false;
    if (this.#has("answers for whatever it has stored")) return true;
    return server.known !== undefined && this.#decide(who, server, server.known).do === "serve";
  }

  #decide(who: number, { copy, staged }: Server, known: Znode | null): TopicAction {
    const node = known?.value ?? null;
    const action = decideTopic({ me: serverName(who), node, copy, staged, shared: null });
    if (action.do === "missing" && this.#has("creates whatever is missing")) return { do: "create" };
    const isUnconfirmed = this.#has("stages without reading, and opens without a state");
    if (isUnconfirmed && node !== null && node.owner === serverName(who) && staged !== null) {
      const isNext = staged.epoch === node.epoch - 1 && staged.incarnation === node.incarnation;
      if (copy === null && isNext) return { do: "activate", what: "staged" };
    }
    const dropsEarly = this.#has("drops before the new owner has confirmed");
    if (dropsEarly && node !== null && node.owner !== serverName(who) && copy !== null && copy.epoch < node.epoch) {
      return { do: "drop", epoch: node.epoch };
    }
    return action;
  }

  #act(state: OwnershipState, who: number, server: Server, known: Znode | null, out: Out): void {
    const { copy, staged } = server;
    const action = this.#decide(who, server, known);
    const name = serverName(who);
    const node = known?.value;
    const store = (label: string, to: Partial<Server>) =>
      push(out, "step", `${name} ${label}`, withServer(state, who, to));
    switch (action.do) {
      case "register": {
        if (this.#has("registers nothing")) return;
        const isOpen = this.#has("registers a sealed copy as open");
        return this.#write(state, who, isOpen ? { ...action.next, state: "stored" } : action.next, "register", out);
      }
      case "write":
        return this.#write(state, who, action.next, action.why, out);
      case "create": {
        if (node === undefined) return;
        const fresh = {
          incarnation: node.incarnation,
          baseOffset: node.baseOffset,
          epoch: node.epoch,
          sealedFor: null,
        };
        return store("creates the topic", { copy: { ...fresh, ...emptyContent(node.baseOffset) } });
      }
      case "activate": {
        if (node === undefined) return;
        const from = action.what === "copy" ? copy : staged;
        if (from === null) throw new Error("Nothing to activate");
        const { incarnation, baseOffset, log, cursor, seen } = from;
        if (action.what === "copy" && server.late === null) this.#openLate(state, who, node.epoch, out);
        const opened = { incarnation, baseOffset, log, cursor, seen, epoch: node.epoch, sealedFor: null };
        return store(`activates its ${action.what}`, { copy: opened, staged: action.what === "copy" ? staged : null });
      }
      case "drop": {
        const remembered = { incarnation: copy?.incarnation ?? "", epoch: action.epoch };
        const dropped = this.#has("does not remember what it dropped") ? null : remembered;
        const isElsewhere = state.isDiskLost || state.servers.some(({ wasOld }) => wasOld) ||
          state.servers.some((other, index) =>
            index !== who && [other.copy?.log, other.aside].some((log) => log?.startsWith(copy?.log ?? ""))
          );
        const wrong = isElsewhere ? state.wrong : `${name} drops what nobody else has`;
        const next = withServer({ ...state, wrong }, who, { copy: null, dropped });
        return push(out, "step", `${name} drops its copy`, next);
      }
      case "discard":
        return store("discards what it staged", { staged: null });
      case "set aside":
        return store("sets its copy aside", { copy: null, aside: copy?.log ?? null });
      case "hand off":
        return this.#handOff(state, who, server, action, out);
      case "serve":
        return this.#merge(state, who, server, out);
    }
  }

  /** The session ends while the store is at work, and the next one begins before it is done. */
  #openLate(state: OwnershipState, who: number, late: number, out: Out): void {
    if (!this.#has("begins a session while the last one is at work")) return;
    const over = withPresence(withServer(state, who, { late, session: "over", hasLease: false }), who, "none");
    push(out, "choice", `${serverName(who)}'s session ends while it opens its copy`, over);
  }

  /** An operator asks for the topic to be moved: it is sealed for good at this epoch. */
  #merge(state: OwnershipState, who: number, server: Server, out: Out): void {
    if (state.movesLeft === 0 || server.copy === null || !this.answers(state, who)) return;
    for (const to of state.servers.keys()) {
      if (to === who) continue;
      if (this.#has("sends more than messages ahead") && server.early === null) {
        const { cursor, seen } = server.copy;
        push(out, "choice", `${serverName(who)} sends ahead`, withServer(state, who, { early: { cursor, seen } }));
        continue;
      }
      const copy = { ...server.copy, sealedFor: serverName(to) };
      const sealed = withServer({ ...state, movesLeft: state.movesLeft - 1 }, who, { copy });
      push(out, "choice", `${serverName(who)} seals for ${serverName(to)}`, sealed);
      if (!this.#has("sends before it has sealed")) continue;
      const sent = [...state.transfers, transferOf(copy, who)];
      if (state.transfers.length > 0) continue;
      push(out, "choice", `${serverName(who)} sends to ${serverName(to)}`, { ...state, transfers: sent });
    }
  }

  #handOff(
    state: OwnershipState,
    who: number,
    server: Server,
    action: TopicAction & { do: "hand off" },
    out: Out,
  ): void {
    if (server.copy === null || server.known === null || server.known === undefined) return;
    // The messages that went ahead are a part of those that are sealed: nothing of them is ever changed.
    const transfer = { ...transferOf(server.copy, who), ...server.early };
    const isSent = state.transfers.some(({ to, owner, epoch, incarnation }) =>
      to === transfer.to && owner === transfer.owner && epoch === transfer.epoch && incarnation === transfer.incarnation
    );
    if (!isSent) {
      const transfers = [...state.transfers, transfer];
      push(out, "step", `${serverName(who)} sends to ${action.to}`, { ...state, transfers });
    }
    if (this.#has("takes back without a write")) {
      const copy = { ...server.copy, sealedFor: null };
      push(out, "step", `${serverName(who)} opens what it has sealed`, withServer(state, who, { copy }));
    } else if (action.mayTakeBack || this.#has("takes back in a tree that was made again")) {
      this.#write(state, who, topicNodeAfterTakeBack(server.known.value), "take back", out);
    }
  }

  /** The outcomes of a write: answered, refused, its answer lost, its process lost before or after it is done. */
  #write(state: OwnershipState, who: number, next: TopicNode, why: string, out: Out): void {
    const server = state.servers[who] as Server;
    const label = `${serverName(who)} writes ${next.owner} ${next.epoch} ${next.state} (${why})`;
    const version = server.known?.version ?? null;
    const isBlind = (why === "take" && this.#has("takes without a version")) ||
      (why === "take back" && this.#has("takes back without a version"));
    // A session that has ended writes nothing.
    const fits = server.session === "live" &&
      (isBlind || (version === null ? state.node === null : state.node?.version === version));
    if (!fits) {
      if (server.session === "live") {
        push(out, "step", `${label}, refused`, withServer(state, who, { known: undefined }));
      }
    } else {
      const confirmsAtOnce = this.#has("stages without reading, and opens without a state") && why === "take";
      const value = confirmsAtOnce ? { ...next, state: "stored" as const, source: null } : next;
      const node = { value, version: (state.node?.version ?? -1) + 1 };
      push(out, "step", label, withServer({ ...state, node }, who, { known: node, view: undefined }));
      if (this.#may("lost reply") && state.faultsLeft > 0) {
        const unanswered = { known: undefined, view: server.view === undefined ? state.node : server.view };
        const fewer = { ...state, node, faultsLeft: state.faultsLeft - 1 };
        push(out, "fault", `${label}, done, unanswered`, withServer(fewer, who, unanswered));
      }
    }
    if (this.#may("crash in a write") && state.faultsLeft > 0 && state.ghosts.length === 0 && !isBlind) {
      const ghosts = [...state.ghosts, { version, next }];
      push(out, "fault", `${label}, and crashes`, this.#crashed({ ...state, ghosts }, who, server));
    }
  }

  #receive(state: OwnershipState, who: number, server: Server, out: Out): void {
    for (const transfer of state.transfers) {
      if (transfer.to !== serverName(who) || !this.#isWelcome(server, transfer)) continue;
      const { to: _, ...content } = transfer;
      const staged = {
        ...content,
        cursor: this.#has("leaves the cursors behind") ? content.baseOffset : content.cursor,
        seen: this.#has("leaves the publishers' windows behind") ? "" : content.seen,
      };
      const label = `${serverName(who)} stages what ${transfer.owner} sealed at ${transfer.epoch}`;
      let next = withServer(state, who, { staged });
      if (this.#has("a transfer replaces what is stored") && server.copy !== null) {
        const { owner: _owner, ...replaced } = staged;
        next = withServer(state, who, { copy: { ...replaced, epoch: server.copy.epoch, sealedFor: null } });
      }
      if (this.#has("drops its copy when the receiver has it")) {
        next = withServer(next, Number(transfer.owner.slice(1)), { copy: null });
      }
      push(out, "step", label, next);
    }
  }

  #isWelcome(server: Server, { owner, epoch, incarnation, log, cursor }: Transfer): boolean {
    const { copy, staged, dropped, known } = server;
    const isSame = staged?.incarnation === incarnation && staged.epoch === epoch && staged.log === log &&
      staged.cursor === cursor;
    if (this.#has("stages whatever comes") || this.#has("stages without reading, and opens without a state")) {
      return !isSame;
    }
    if (this.#has("a transfer replaces what is stored") && copy !== null) return copy.log !== log;
    if (known === undefined) return false;
    return decideTopicTransfer({ incarnation, owner, epoch }, { node: known?.value ?? null, copy, staged, dropped }) ===
      "stage";
  }

  /** Everything that clients have ever asked may be asked again, here. */
  #requests(state: OwnershipState, who: number, server: Server, out: Out): void {
    const { request, copy } = server;
    if (request !== null) {
      if (request.kind !== "let in") return this.#answer(state, who, server, request, out);
      if (copy === null) return;
      return this.#store(state, who, copy, request.id, out);
    }
    if (copy === null || !this.answers(state, who)) return;
    const end = copy.baseOffset + copy.log.length;
    for (const id of this.#options.puts) {
      const isOver = state.client.acked.includes(id) && copy.seen.includes(id);
      if (isOver) continue;
      if (this.#has("stores what was let in before the seal")) {
        push(
          out,
          "choice",
          `${serverName(who)} lets in ${id}`,
          withServer(state, who, { request: { kind: "let in", id } }),
        );
      } else this.#store(state, who, copy, id, out);
    }
    if (this.#options.gets !== true) return;
    for (const last of new Set([0, ...state.client.given.map(([seq]) => seq)])) {
      if (last > state.client.received) continue;
      const cursor = Math.max(copy.cursor, Math.min(last, end));
      const id = copy.log[cursor - copy.baseOffset] ?? "";
      if (id === "" && cursor === copy.cursor) continue;
      const get: Request = { kind: "get", last, seq: cursor + 1, id };
      push(
        out,
        "choice",
        `${serverName(who)} is asked for what follows ${last}`,
        withServer(state, who, { copy: { ...copy, cursor }, request: get }),
      );
    }
  }

  #store(state: OwnershipState, who: number, copy: StoredCopy, id: string, out: Out): void {
    const isKnown = copy.seen.includes(id);
    const log = isKnown ? copy.log : copy.log + id;
    const seen = isKnown ? copy.seen : [...copy.seen, id].sort().join("");
    const request: Request = { kind: "put", id, seq: copy.baseOffset + log.indexOf(id) + 1 };
    push(
      out,
      "choice",
      `${serverName(who)} stores ${id}`,
      withServer(state, who, { copy: { ...copy, log, seen }, request }),
    );
  }

  #answer(
    state: OwnershipState,
    who: number,
    server: Server,
    request: Exclude<Request, { kind: "let in" }>,
    out: Out,
  ): void {
    const isHeard = server.session === "live" && server.hasLease;
    const isBlind = this.#has("does not look at its lease") || this.#has("looks at its lease before the work only");
    const done = withServer(state, who, { request: null });
    push(out, "step", `${serverName(who)} does not answer`, done);
    if (!isHeard && !isBlind) return;
    push(out, "step", `${serverName(who)} answers OK to its ${request.kind}`, { ...done, ...told(state, request) });
  }

  #sessionMoves(state: OwnershipState, who: number, server: Server, out: Out): void {
    const name = serverName(who);
    if (state.present[who] === "dead") {
      push(out, "step", `${name}'s old session expires`, withPresence(state, who, "none"));
    }
    if (!server.isUp && server.isOld && !this.#has("serves what was put back")) {
      return restore(state, who, { server, out, has: (mistake) => this.#has(mistake) });
    }
    if (!server.isUp) return push(out, "step", `${name} starts again`, withServer(state, who, this.#restarted(server)));
    if (server.session === "none") {
      const keeps = this.#has("reads before it announces itself") ||
        this.#has("keeps what it has read when its session ends");
      const known = keeps ? server.known : undefined;
      const announced = { session: "live", hasLease: true, view: undefined, known } as const;
      push(out, "step", `${name} announces itself`, withPresence(withServer(state, who, announced), who, "live"));
    } else if (server.session === "over") {
      const kept = this.#has("keeps what it has read when its session ends") ? server.known : undefined;
      const request = this.#has("looks at any lease before the OK") ? server.request : null;
      const ended = { session: "none", hasLease: false, view: undefined, known: kept, request } as const;
      push(out, "step", `${name} notices that its session has ended`, withServer(state, who, ended));
    } else if (!server.hasLease) {
      push(out, "step", `${name} has a lease again`, withServer(state, who, { hasLease: true }));
      const over = withPresence(withServer(state, who, { session: "over" }), who, "none");
      push(out, "choice", `${name}'s session ends`, over);
    }
    if (server.view !== undefined) push(out, "step", `${name} catches up`, withServer(state, who, { view: undefined }));
  }

  #restarted(server: Server): Partial<Server> {
    const copy = this.#has("opens a sealed copy after a restart") && server.copy !== null
      ? { ...server.copy, sealedFor: null }
      : server.copy;
    return { isUp: true, copy, isOld: false };
  }

  #faults(state: OwnershipState, who: number, server: Server, out: Out): void {
    const name = serverName(who);
    const fewer = { ...state, faultsLeft: state.faultsLeft - 1 };
    if (this.#may("crash")) push(out, "fault", `${name} crashes`, this.#crashed(state, who, server));
    if (this.#may("disk lost")) {
      const empty = { ...this.#crashed(state, who, server), isDiskLost: true };
      push(out, "fault", `${name} loses its disk`, withServer(empty, who, { copy: null, staged: null, dropped: null }));
    }
    if (this.#may("put back")) putBack(fewer, who, { server, out, down: this.#crashed(state, who, server) });
    if (server.session !== "live") return;
    if (this.#may("lease") && server.hasLease) {
      push(out, "fault", `${name} has no lease`, withServer(fewer, who, { hasLease: false }));
    }
    if (this.#may("lag") && server.view === undefined) {
      push(out, "fault", `${name} sees no changes`, withServer(fewer, who, { view: state.node }));
    }
  }

  #crashed(state: OwnershipState, who: number, server: Server): OwnershipState {
    const { copy, dropped, aside, backup, isOld, wasOld } = server;
    const staged = this.#has("stages in memory only") ? null : server.staged;
    const down = withServer(state, who, {
      ...stopped,
      isUp: false,
      copy,
      staged,
      dropped,
      aside,
      backup,
      isOld,
      wasOld,
    });
    const next = server.session === "live" ? withPresence(down, who, "dead") : down;
    return { ...next, faultsLeft: state.faultsLeft - 1 };
  }

  #may(fault: Fault): boolean {
    return this.#options.faults.includes(fault);
  }

  #has(mistake: Mistake): boolean {
    return this.#options.mistakes?.includes(mistake) ?? false;
  }
}

const push = (out: Out, kind: TransitionKind, label: string, state: OwnershipState): void =>
  void out.push({ kind, label, state });
