/**
 * The lock protocol of docs/protocol/lock.md as an explicit-state model, deciding with the recipe's own
 * lockQueuePosition.
 *
 * Stale reads: a session sees a prefix of the history that only grows, so a stale read is the same read done earlier,
 * and interleaving covers it, except after a lost reply: then the new connection may be behind the session's own write
 * until a write of its own. That is what `view` is for. With `staleReads` every read has an explicit view, which shows
 * the same at more cost.
 *
 * Models: docs/protocol/lock.md, src/coordination/lock/lock_contender.ts, src/coordination/lock/uncontended_lock.ts,
 * src/coordination/lock/grant_claim.ts, src/coordination/lock/lock_nodes.ts, src/coordination/lock/queue_position.ts,
 * src/coordination/election/election_history.ts, src/base/process/lease.ts
 */
import { exclusiveLockGrantsMax, isCompatibleLockMode } from "../../../src/coordination/lock/queue_position.ts";
import { parseHolderNode } from "../../../src/coordination/lock/lock_nodes.ts";
import type { Model, Transition } from "../../support/explore.ts";
import { ContenderModel } from "./lock_contender_model.ts";
import { Interned } from "../../support/interned.ts";
import { emptyLedger, type Ledger, ledgerViolation, textOf as textOfLedger } from "./ledger_model.ts";
import * as servers from "./lock_server_model.ts";
import type { Server } from "./lock_server_model.ts";
import { type Contender, type LockModelOptions, type LockState, LockWorld, started, type Step } from "./lock_world.ts";

export class LockModel implements Model<LockState> {
  readonly initial: readonly LockState[];
  readonly #world: LockWorld;
  readonly #contenders: ContenderModel;
  readonly #serverNumbers = new Interned<Server>(servers.textOf);
  readonly #ledgerNumbers = new Interned<Ledger>(textOfLedger);
  readonly #contenderNumbers = new Interned<Contender>((c) => {
    const view = c.view === null ? -1 : this.#serverNumbers.numberOf(c.view);
    const read = c.read === null ? "" : this.#ledgerNumbers.numberOf(c.read);
    const flags = [c.watching, c.announced, c.keeps, c.disowned, c.cut].map(Number).join("");
    return [
      c.step,
      c.life,
      c.attempt,
      c.node,
      c.asked,
      c.version,
      c.grants.join("+"),
      c.queue.join("+"),
      c.oldest,
      c.token,
      c.watched,
      flags,
      c.born,
      view,
      read,
    ]
      .join();
  });

  constructor(options: LockModelOptions) {
    this.#world = new LockWorld(options);
    this.#contenders = new ContenderModel(this.#world);
    this.initial = [
      {
        server: { ...servers.usedServer, ledger: options.history ? emptyLedger : null },
        contenders: options.contenders.map(() => started),
        faultsLeft: options.faultsMax,
        wrong: null,
      },
    ];
  }

  key(state: LockState): string {
    const contenders = state.contenders.map((contender) => this.#contenderNumbers.numberOf(contender));
    const server = this.#serverNumbers.numberOf(state.server);
    return `${server},${contenders.join()},${state.faultsLeft}${state.wrong ?? ""}`;
  }

  isDone(state: LockState): boolean {
    return state.contenders.every((contender) => contender.step === "ended");
  }

  violation(state: LockState): string | null {
    if (state.wrong !== null) return state.wrong;
    const { ledger } = state.server;
    const misled = ledger === null ? null : ledgerViolation(ledger);
    if (misled !== null) return misled;
    const names = servers.namesOf(state.server.grants);
    const incompatible = this.#incompatibleGrants(names);
    if (incompatible !== null) return incompatible;
    for (const [who, contender] of state.contenders.entries()) {
      const session = this.#world.session(who, contender);
      const owns = (nodes: readonly servers.Node[] | null) => nodes?.some((node) => node.owner === session) ?? false;
      const own = state.server.grants?.find((node) => node.owner === session)?.name ?? "";
      if (contender.step === "holding") {
        if (own === "") return `${session} believes to hold and does not`;
        if (parseHolderNode(own)?.mode === "exclusive" && own !== names[0]) {
          return `${session} holds beside ${names[0]}`;
        }
      }
      if (contender.step === "ended" && (own !== "" || owns(state.server.queue))) {
        return `${session} has ended and left an orphan`;
      }
    }
    return null;
  }

  /** Exclusive grants are alone among themselves; the oldest one holds. */
  #incompatibleGrants(names: readonly string[]): string | null {
    for (const name of names) {
      const others = names.filter((other) => other !== name);
      const { mode = "exclusive", slot = null } = parseHolderNode(name) ?? {};
      if (slot !== null && others.some((other) => parseHolderNode(other)?.slot === slot)) {
        return `Two holders share slot ${slot}: ${names.join(", ")}`;
      }
      const isExclusive = names.every((other) => parseHolderNode(other)?.mode === "exclusive");
      if (!isExclusive && !isCompatibleLockMode(mode, others, this.#world.limitMax)) {
        return `Incompatible grants: ${names.join(", ")}`;
      }
      if (isExclusive && names.length > exclusiveLockGrantsMax) return `Too many grants: ${names.join(", ")}`;
    }
    return null;
  }

  /** Nothing moves by itself: then nobody may be waiting for what is there for the taking. */
  idleViolation(state: LockState): string | null {
    for (const [who, contender] of state.contenders.entries()) {
      if (contender.step === "ended" || contender.step === "holding") continue;
      const [grants, queue] = [servers.namesOf(state.server.grants), servers.namesOf(state.server.queue)];
      const position = this.#world.position(who, contender, { grants, queue });
      if (position.kind === "eligible") return `${this.#world.session(who, contender)} waits for what nobody holds`;
      if (position.kind === "granted" && (position.grant === grants[0] || !position.grant.startsWith("x"))) {
        return `${this.#world.session(who, contender)} waits for what it has been granted`;
      }
    }
    return null;
  }

  transitions(state: LockState): Transition<LockState>[] {
    const out: Transition<LockState>[] = [];
    for (const [who, contender] of state.contenders.entries()) {
      this.#contenders.moves(state, who, contender, out);
      if (state.faultsLeft > 0) this.#faultsOf(state, who, contender, out);
    }
    this.#expiries(state, out);
    if (state.faultsLeft > 0) this.#faultsOfServer(state, out);
    return out.map((transition) => this.#judgeSuccession(state, transition));
  }

  /** A grant in advance becomes the oldest one: its contender must not pass one that waits before it. */
  #judgeSuccession(before: LockState, transition: Transition<LockState>): Transition<LockState> {
    const { state } = transition;
    const [now] = state.server.grants ?? [];
    if (now === undefined || state.wrong !== null || now.name === before.server.grants?.[0]?.name) return transition;
    if (!servers.namesOf(before.server.grants).includes(now.name)) return transition;
    if (parseHolderNode(now.name)?.mode !== "exclusive") return transition;
    const who = before.contenders.findIndex((contender, at) => this.#world.session(at, contender) === now.owner);
    const node = before.contenders[who]?.node ?? "";
    const isQueued = servers.namesOf(before.server.queue).includes(node);
    const hasLostPlace = before.contenders[who]?.keeps === true && !isQueued; // somebody has deleted it
    const wrong = hasLostPlace ? null : this.#world.passedOver(before, who, node);
    return wrong === null ? transition : { ...transition, state: { ...state, wrong } };
  }

  #faultsOf(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    if (c.step === "ended") return;
    if (this.#world.may("crash")) {
      const reborn: Contender = { ...started, life: c.life + 1 };
      out.push(
        this.#world.with(state, "fault", `${this.#world.session(who, c)} crashes and starts again`, who, reborn),
      );
    }
    const leaving = /^(holding|leave|release)/.test(c.step);
    if (this.#world.may("gives up") && !leaving) {
      const step: Step = c.node === "" || !servers.namesOf((c.view ?? state.server).queue).includes(c.node)
        ? "leave"
        : "leave queue";
      out.push(this.#world.with(state, "fault", `${this.#world.session(who, c)} gives up`, who, { ...c, step }));
    }
    if (this.#world.may("cut off") && !c.cut && /^(await|read o)/.test(c.step)) {
      const cut = { ...c, cut: true, view: c.view ?? state.server };
      out.push(this.#world.with(state, "fault", `the server of ${this.#world.session(who, c)} is cut off`, who, cut));
    }
  }

  /** A session that nobody has any more expires sooner or later. */
  #expiries(state: LockState, out: Transition<LockState>[]): void {
    const living = new Set(state.contenders.map((contender, who) => this.#world.session(who, contender)));
    const nodes = [...(state.server.queue ?? []), ...(state.server.grants ?? [])];
    for (const owner of new Set(nodes.map((node) => node.owner))) {
      if (living.has(owner)) continue;
      const server = servers.withoutSession(state.server, owner);
      out.push({ kind: "step", label: `session ${owner} expires`, state: { ...state, server } });
    }
  }

  #faultsOfServer(state: LockState, out: Transition<LockState>[]): void {
    const { server } = state;
    const push = (label: string, next: Server) =>
      out.push({
        kind: "fault",
        label,
        state: this.#disowned(state, { ...state, server: next, faultsLeft: state.faultsLeft - 1 }),
      });
    if (this.#world.may("reaped")) {
      for (const next of servers.reaped(server)) push("an empty container is reaped", next);
    }
    if (this.#world.may("path deleted") && server.version !== null) {
      push("the path is deleted", servers.withoutPath(server));
    }
    if (this.#world.may("contender deleted")) {
      for (const { name } of server.queue ?? []) push(`${name} is deleted`, servers.withoutContender(server, name));
    }
    if (this.#world.may("holder deleted")) {
      for (const { name } of server.grants ?? []) push(`${name} is deleted`, servers.withoutGrant(server, name));
    }
  }

  /** A holder whose grant somebody deletes stops; that it takes a moment is what the documentation warns of. */
  #disowned(before: LockState, after: LockState): LockState {
    const contenders = after.contenders.map((contender, who) => {
      const isGranted = (server: Server) => this.#world.granted(who, contender, server) !== "";
      if (!isGranted(before.server) || isGranted(after.server)) return contender;
      return contender.step === "holding" ? { ...contender, step: "leave" as const } : { ...contender, disowned: true };
    });
    return { ...after, contenders };
  }
}
