/**
 * What a contender of the lock's model does: one step of src/coordination/lock/lock_contender.ts at a time, rightly or
 * with a mistake.
 */
import { contenderNodePrefix, parseHolderNode } from "../../../src/coordination/lock/lock_nodes.ts";
import { lockRequestAfterGrantChange, mayActAfterLostResponse } from "../../../src/coordination/lock/queue_position.ts";
import type { Transition } from "../../support/explore.ts";
import { withGrantOf, withTelling } from "./ledger_model.ts";
import * as servers from "./lock_server_model.ts";
import type { Server } from "./lock_server_model.ts";
import { type Contender, type LockState, type LockWorld, started } from "./lock_world.ts";

export class ContenderModel {
  readonly #world: LockWorld;

  constructor(world: LockWorld) {
    this.#world = world;
  }

  /** Whether tokens matter. */
  get #counts(): boolean {
    return (this.#world.options.tokens ?? false) || (this.#world.options.history ?? false);
  }

  moves(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const read = (label: string, change: Partial<Contender>) =>
      out.push(
        this.#world.with(
          state,
          "step",
          `${this.#world.session(who, c)} ${label}`,
          who,
          this.#world.seen(state, c, change),
        ),
      );
    const view = c.view ?? state.server;
    if (c.cut) this.#reconnect(state, who, c, out);
    else if (c.view !== null && this.#world.reads(c.step) && servers.textOf(c.view) !== servers.textOf(state.server)) {
      const caughtUp = { ...c, view: this.#world.options.staleReads ? state.server : null };
      out.push(this.#world.with(state, "step", `${this.#world.session(who, c)} catches up`, who, caughtUp));
    }
    if (c.cut && !this.#world.reads(c.step)) return;
    switch (c.step) {
      case "contend":
        return this.#contend(state, who, c, out);
      case "read version":
        if (view.version === null) return void read("finds no lock", this.#world.again(c));
        return void read(
          "reads the version",
          this.#world.after("version", {
            version: view.version,
            read: (this.#world.has("keeps the history that it read first") ? c.read : null) ?? view.ledger,
          }),
        );
      case "read grants":
        return void read("reads the grants", this.#world.after("grants", { grants: servers.namesOf(view.grants) }));
      case "read queue":
        return void read("reads the queue", this.#decide(who, c, view));
      case "watch predecessor": {
        const there = servers.namesOf(view.queue).includes(c.watched);
        return void read(
          there ? "watches its predecessor" : "finds no predecessor",
          there ? { step: "await predecessor" } : { step: this.#world.firstRead, watched: "", watching: true },
        );
      }
      case "await predecessor":
        // A grant in advance writes to the queue node, which wakes those that watch it.
        if (servers.namesOf(view.queue).includes(c.watched) && !this.#world.hasGrant(view, c.watched)) return;
        return void read("hears of its predecessor", { step: this.#world.firstRead, watched: "", watching: true });
      case "await grants":
        return this.#awaitGrants(who, c, view, read);
      case "read ages":
        return this.#readAges(who, c, view, read);
      case "withdraw":
        return this.#withdraw(state, who, c, out);
      case "read older": {
        const grants = this.#olderGrants(who, c, view);
        if (this.#firstOlderRead === "read older") {
          return void read("reads the older grants", { step: "read own", grants });
        }
        return this.#followOlder(state, who, { ...c, grants }, out);
      }
      case "read own":
        if (this.#world.granted(who, c, view) === "") {
          return void read("finds no own grant", { step: this.#world.firstRead, grants: [], watching: false });
        }
        if (this.#firstOlderRead === "read own") return void read("reads its own grant", { step: "read older" });
        return this.#followOlder(state, who, c, out);
      case "await older": {
        const isThere = this.#world.granted(who, c, view) !== "";
        if (!isThere && !this.#world.has("does not look at its own grant when the older ones are gone")) {
          return void read("hears of its own grant", { step: this.#world.firstRead, grants: [], watching: false });
        }
        if (this.#olderGrants(who, c, view).length > 0) return;
        return this.#hold(state, who, c, out);
      }
      case "announce":
        return this.#announce(state, who, c, out);
      case "grant":
        return this.#grant(state, who, c, out);
      case "advance":
        return this.#advance(state, who, c, out);
      case "look first":
        return this.#lookFirst(state, who, c, out);
      case "recover":
        return this.#recover(state, who, c, out);
      case "recover queue": {
        const node = this.#world.own(who, c, view);
        return void read(
          "looks into the queue",
          node === "" ? this.#world.again(c) : { node, step: this.#world.firstRead },
        );
      }
      case "holding":
        return this.#release(state, who, c, out);
      case "leave": {
        const caughtUp = {
          ...c,
          node: this.#world.own(who, c, state.server),
          step: "leave queue" as const,
          view: null,
        };
        return void out.push(
          this.#world.with(state, "step", `${this.#world.session(who, c)} looks for itself`, who, caughtUp),
        );
      }
      case "release queue":
        return this.#world.write(state, who, c, out, {
          label: "releases its place in the queue",
          server: servers.withoutContender(state.server, c.node),
          change: { step: "ended" },
          lost: c.step,
        });
      case "leave queue": {
        const next = this.#world.has("leaves only the queue when it gives up") ? "ended" : "leave grants";
        return this.#world.write(state, who, c, out, {
          label: "leaves the queue",
          server: servers.withoutContender(state.server, c.node),
          change: { step: next },
          lost: c.step,
        });
      }
      case "leave grants":
        return this.#world.write(state, who, c, out, {
          label: "leaves the grants",
          server: servers.withoutGrant(state.server, c.asked),
          change: { step: "ended" },
          lost: c.step,
        });
      case "ended":
        return;
    }
  }

  #contend(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { mode, priority = 100, takesNew = false } = this.#world.contender(who);
    const isNew = this.#world.has("takes a new lock without making it")
      ? state.server.grants === null
      : state.server.version === null;
    if (takesNew && isNew) return this.#takeNew(state, who, c, out);
    const prefix = contenderNodePrefix(priority, mode, this.#world.guid(who, c));
    const made = servers.withContender(
      state.server,
      prefix,
      this.#world.session(who, c),
      this.#world.options.sequenceSticks ?? false,
    );
    const server = this.#counts ? { ...made.server, zxid: state.server.zxid + 1 } : made.server;
    const born = this.#world.has("takes the token from its queue node") ? server.zxid : 0;
    this.#world.write(state, who, c, out, {
      label: "contends",
      server,
      change: { step: this.#world.firstRead, node: made.name, born, announced: false, watched: "", watching: false },
      lost: this.#world.has("does not look after a lost reply") ? "contend" : "look first",
    });
  }

  /** One write makes the lock, held; where there is one already it is refused, and the queue is the way. */
  #takeNew(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { server } = state;
    const asked = this.#world.grantName(who, c, []);
    const zxid = server.zxid + 1;
    const made: Server = {
      ...server,
      version: server.version ?? 0,
      grants: [{ name: asked, owner: this.#world.session(who, c) }],
      ...(this.#counts ? { zxid, token: Math.max(zxid, server.token) } : {}),
    };
    this.#world.write(state, who, { ...c, asked }, out, {
      label: "takes the new lock",
      server: made,
      change: { step: "holding" },
      lost: this.#world.has("does not look after a lost reply") ? "contend" : "recover",
      wrong: zxid > server.token ? null : `Token ${zxid} after ${server.token}`,
    });
  }

  #decide(who: number, c: Contender, view: Server, oldest?: string): Partial<Contender> {
    const queue = oldest === undefined ? servers.namesOf(view.queue) : c.queue;
    const known = oldest === undefined ? {} : { oldest };
    let position = this.#world.position(who, c, { grants: c.grants, queue, ...known });
    const isPatient = this.#world.has("does not withdraw grants");
    if (isPatient && /unclear|outranks/.test(position.kind)) position = { kind: "blocked", passed: true };
    const common = { queue: [], oldest: "" };
    switch (position.kind) {
      case "granted": {
        const grants = c.grants.filter((name) => name !== position.grant);
        return { ...common, step: this.#firstOlderRead, grants, asked: position.grant, keeps: true, token: 0 };
      }
      case "gone":
        return { ...common, ...this.#world.again(c) };
      case "eligible":
        return { ...common, step: "grant", watching: false, asked: this.#world.grantName(who, c, c.grants) };
      case "next":
        return { ...common, step: "advance", watching: false, asked: this.#world.grantName(who, c, c.grants) };
      case "unclear":
        return { step: "read ages", queue, watching: false };
      case "outranks":
        return { step: "withdraw", grants: position.grants, queue: [], oldest: position.oldest, watching: false };
      case "queued": {
        const step = position.passed && !c.announced ? "announce" : "watch predecessor";
        return { ...common, step, watched: position.watch };
      }
      case "blocked": {
        // Without a watch left by this read the grants are read once more, which leaves one.
        const wait = c.watching ? "await grants" : this.#world.firstRead;
        const step = position.passed && !c.announced ? "announce" : wait;
        return { ...common, step, watching: true, watched: "" };
      }
    }
  }

  get #firstOlderRead(): "read own" | "read older" {
    return this.#world.has("reads its own grant before the older ones") ? "read own" : "read older";
  }

  #followOlder(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    if (c.grants.length === 0) return this.#hold(state, who, c, out);
    const waiting = this.#world.seen(state, c, { step: "await older" });
    out.push(this.#world.with(state, "step", `${this.#world.session(who, c)} waits for older grants`, who, waiting));
  }

  #olderGrants(who: number, c: Contender, view: Server): readonly string[] {
    const names = servers.namesOf(view.grants);
    const others = c.grants.filter((name) => names.includes(name));
    if (this.#world.has("takes every other grant for an older one")) return others;
    if (this.#world.contender(who).mode !== "exclusive") return [];
    const own = names.indexOf(this.#world.granted(who, c, view));
    return own === -1 ? others : others.filter((name) => names.indexOf(name) < own);
  }

  #readAges(
    who: number,
    c: Contender,
    view: Server,
    read: (label: string, change: Partial<Contender>) => void,
  ): void {
    const oldest = servers.namesOf(view.grants).find((name) => c.grants.includes(name));
    const ages = servers.namesOf(view.grants);
    if (oldest === undefined || c.grants.some((name) => !ages.includes(name))) {
      return read("misses a grant", { step: this.#world.firstRead, queue: [], watching: false });
    }
    const known = this.#world.has("withdraws grants without looking at their ages") ? "x-nobody" : oldest;
    read("reads the ages of the grants", this.#decide(who, c, view, known));
  }

  #withdraw(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { server } = state;
    const there = servers.namesOf(server.grants);
    const unchecked = this.#world.has("withdraws grants without checking the holder's") ||
      this.#world.has("withdraws grants without looking at their ages");
    const refused = server.version !== c.version || c.grants.some((name) => !there.includes(name)) ||
      (!there.includes(c.oldest) && !unchecked);
    const version = refused ? server.version : (server.version ?? 0) + 1;
    const left = refused ? server : c.grants.reduce(servers.withoutGrant, server);
    const zxid = this.#counts && !refused ? server.zxid + 1 : server.zxid;
    this.#world.write(state, who, c, out, {
      label: refused ? "is refused to withdraw grants" : `withdraws ${c.grants.join(", ")}`,
      server: { ...left, version, zxid },
      change: {
        step: this.#world.firstRead,
        watching: true,
        announced: c.announced || !refused,
        grants: [],
        oldest: "",
      },
      lost: "look first",
    });
  }

  #awaitGrants(
    who: number,
    c: Contender,
    view: Server,
    read: (label: string, change: Partial<Contender>) => void,
  ): void {
    if (this.#world.has("watches only its predecessor")) return;
    const now = servers.namesOf(view.grants);
    const deaf = this.#world.has("does not look at the grants when it watches them") && now.length === 0;
    if (deaf || now.join() === c.grants.join()) return;
    const guesses = this.#world.has("guesses which slot has become free");
    const left = guesses ? c.grants.slice(1) : [];
    const request = guesses ? "eligible" : lockRequestAfterGrantChange(this.#world.contender(who).mode, c.grants);
    const asked = this.#world.grantName(who, c, left);
    const change: Partial<Contender> = request === null
      ? { step: this.#world.firstRead }
      : request === "next"
      ? { step: "advance", asked }
      : { step: "grant", asked };
    read("hears of the grants", { ...change, watching: false });
  }

  /** Why the server refuses a request for a grant, and what follows; null: it makes the grant. */
  #refusalOf(c: Contender, server: Server, needsNode: boolean): [why: string, change: Partial<Contender>] | null {
    if (server.version === null) return ["no lock", this.#world.again(c)];
    const blind = this.#world.has("writes the state without a version");
    if (!blind && server.version !== c.version) return ["bad version", { step: this.#world.firstRead }];
    if (needsNode && !servers.namesOf(server.queue).includes(c.node)) return ["no own node", this.#world.again(c)];
    return servers.namesOf(server.grants).includes(c.asked) ? ["is there", { step: "recover" }] : null;
  }

  /** Asks for a grant behind the others; the own queue node must be there, and stays. */
  #advance(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { server } = state;
    const label = "asks for a grant in advance";
    const refusal = this.#refusalOf(c, server, true);
    if (refusal !== null || server.version === null || server.grants === null) {
      const [why, change] = refusal ?? ["no container", { step: "recover" }];
      return this.#world.write(state, who, c, out, { label: `${label}, ${why}`, server, change, lost: "look first" });
    }
    const zxid = server.zxid + 1;
    const leaves = this.#world.has("leaves the queue with a grant in advance");
    const kept = leaves ? servers.withoutContender(server, c.node) : server;
    this.#world.write(state, who, c, out, {
      label,
      server: {
        ...kept,
        version: server.version + 1,
        grants: [...server.grants, { name: c.asked, owner: this.#world.session(who, c) }],
        ...(this.#counts ? { zxid } : {}),
      },
      change: this.#world.has("holds beside older grants")
        ? { step: "holding", keeps: true }
        : { step: this.#firstOlderRead, keeps: !leaves, disowned: false, token: this.#counts ? zxid : 0 },
      lost: "look first",
    });
  }

  /** No older grant is left: the lock is held, if the session is known to be alive. */
  #hold(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    if (c.cut && !this.#world.has("holds although its server was cut off")) return;
    const { server } = state;
    const counted = this.#counts && c.token > 0;
    const wrong = counted && c.token <= server.token ? `Token ${c.token} after ${server.token}` : null;
    const token = counted ? Math.max(c.token, server.token) : server.token;
    const next = { ...state, server: { ...server, token }, wrong };
    const label = `${this.#world.session(who, c)} holds`;
    // Somebody has deleted its grant by force, and it has not heard of that yet.
    const step = c.disowned ? "leave" : "holding";
    out.push(this.#world.with(next, "step", label, who, { ...c, step }));
  }

  /** The server of a contender that was cut off is reached again, or its session has expired. */
  #reconnect(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const session = this.#world.session(who, c);
    if (!servers.hasSession(state.server, session)) {
      const reborn = { ...started, life: c.life + 1 };
      return void out.push(this.#world.with(state, "step", `${session} learns that it has expired`, who, reborn));
    }
    const server = servers.withoutSession(state.server, session);
    out.push(this.#world.with({ ...state, server }, "step", `session ${session} expires`, who, c));
    const reached = { ...c, cut: false, view: null };
    out.push(this.#world.with(state, "step", `${session} reaches its servers again`, who, reached));
  }

  #announce(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { server } = state;
    const refused = server.version !== c.version;
    const silent = this.#world.has("passes others without telling them");
    const version = server.version === null || refused || silent ? server.version : server.version + 1;
    const zxid = this.#counts && !refused ? server.zxid + 1 : server.zxid;
    const fills = !this.#world.has("tells without filling in the token");
    const ledger = refused ? server.ledger : server.ledger && withTelling(server.ledger, c.read ?? server.ledger, {
      zxid,
      fills,
    });
    this.#world.write(state, who, c, out, {
      label: "tells those it passes",
      server: { ...server, version, zxid, ledger },
      change: { step: this.#world.firstRead, announced: true, watching: true },
      lost: "announce",
    });
  }

  #grant(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { server } = state;
    const label = "asks for the grant";
    const refusal = this.#refusalOf(c, server, !this.#world.has("leaves its queue node out of the grant"));
    if (refusal !== null || server.version === null) {
      const [why, change] = refusal ?? ["no lock", this.#world.again(c)];
      return this.#world.write(state, who, c, out, { label: `${label}, ${why}`, server, change, lost: "look first" });
    }

    const zxid = server.zxid + 1;
    const token = this.#world.has("takes the token from its queue node") ? c.born : zxid;
    const left = servers.withoutContender(server, c.node);
    const granted: Server = {
      ...left,
      version: server.version + 1,
      grants: [...(server.grants ?? []), {
        name: c.asked,
        owner: this.#world.session(who, c),
      }],
      ...(this.#counts ? { zxid, token: Math.max(token, server.token) } : {}),
      ledger: server.ledger && withGrantOf(server.ledger, c.read ?? server.ledger, { id: c.asked, zxid }),
    };
    const slot = parseHolderNode(c.asked)?.slot ?? 0;
    const wrong = slot >= this.#world.limitOf(who)
      ? `Slot ${slot} of ${this.#world.limitOf(who)}`
      : token > server.token
      ? this.#world.passedOver(state, who, c.node)
      : `Token ${token} after ${server.token}`;
    this.#world.write(state, who, c, out, {
      label,
      server: granted,
      change: { step: "holding" },
      lost: "look first",
      wrong,
    });
  }

  /**
   * Looks at what the leader has: enough for a request that checks the version, or for a grant that is alone, and for
   * no wait.
   */
  #lookFirst(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const { server } = state;
    const position = this.#world.position(who, c, {
      grants: servers.namesOf(server.grants),
      queue: servers.namesOf(server.queue),
    });
    const { mode } = this.#world.contender(who);
    const seen = { mode, grants: servers.namesOf(server.grants), hasAsked: c.asked !== "" };
    const isEnough = mayActAfterLostResponse(position, seen);
    const asks = { node: this.#world.own(who, c, server), step: this.#world.firstRead };
    const acts: Partial<Contender> = { ...(this.#ownGrant(who, c, server) ?? asks), view: null };
    const found: Partial<Contender> = isEnough ? acts : { step: "recover" };
    const label = `${this.#world.session(who, c)} looks for the outcome`;
    out.push(this.#world.with(state, "step", label, who, { ...c, ...found }));
  }

  #recover(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const unsynced = this.#world.has("does not settle its writes after a lost reply");
    const view = unsynced ? (c.view ?? state.server) : state.server;
    const found = this.#ownGrant(who, c, view) ?? { step: "recover queue" as const };
    const change: Contender = { ...c, ...found, view: unsynced ? c.view : null };
    out.push(this.#world.with(state, "step", `${this.#world.session(who, c)} looks at the grants`, who, change));
  }

  /** What follows an own grant; null if there is none. */
  #ownGrant(who: number, c: Contender, view: Server): Partial<Contender> | null {
    const own = this.#world.granted(who, c, view);
    const names = servers.namesOf(view.grants);
    const anyOwner = this.#world.has("uses its guid again after a restart");
    const owner = view.grants?.find((node) => node.name === own)?.owner;
    if (own === "" || (!anyOwner && owner !== this.#world.session(who, c))) return null;
    if (anyOwner) return { step: "holding", asked: own };
    const grants = names.filter((name) => name !== own);
    return { step: this.#firstOlderRead, asked: own, grants, keeps: true, disowned: false, token: 0 };
  }

  #release(state: LockState, who: number, c: Contender, out: Transition<LockState>[]): void {
    const isDone = !c.keeps || this.#world.has("leaves its queue node behind at the release");
    this.#world.write(state, who, c, out, {
      label: "releases",
      server: servers.withoutGrant(state.server, c.asked),
      change: { step: isDone ? "ended" : "release queue" },
      lost: "leave",
      kind: "choice",
    });
  }
}
