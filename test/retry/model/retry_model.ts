/**
 * One stored message, its acceptor, and processors that claim, try, record and die at any point. The decisions are the
 * product's own (message_life.ts, file_sink.ts); what is modelled is what stands between them: transactions whose
 * reply is lost, children that outlive their worker until its guard is through, and a file that dead letters are
 * appended to.
 *
 * Models: src/retry/queue/message_life.ts, src/retry/dead_letters/file_sink.ts
 */
import {
  lifeAfterClaim,
  lifeAfterCrash,
  lifeAfterTry,
  type LifeRules,
  type MessageLife,
  newLife,
} from "../../../src/retry/queue/message_life.ts";
import { planDeadLetterAppend } from "../../../src/retry/dead_letters/file_sink.ts";
import type { Model, Transition } from "../../support/explore.ts";

export const mistakes = [
  "tells before it has stored",
  "acknowledges before it dispatches",
  "begins before the claim is durable",
  "reclaims as soon as the worker is gone",
  "reclaims at the end of the lease",
  "begins without a look at its lease",
  "records without a fencing number",
  "crashes count as nothing",
  "the first try does not count",
  "removes before the letter is there",
  "appends again without a look",
  "appends behind half a letter",
] as const;
export type Mistake = (typeof mistakes)[number];

export type Fault = "crash" | "stall";

export interface RetryModelOptions {
  readonly workers: number;
  readonly maxRetries: number;
  readonly maxCrashes: number;
  readonly faults: readonly Fault[];
  readonly faultsMax: number;
  /** Dead letters go to a file. */
  readonly letters: boolean;
  readonly mistake?: Mistake;
}

type Phase = "idle" | "claimed" | "trying" | "tried" | "looking" | "writing" | "marking" | "dead";

interface Worker {
  readonly phase: Phase;
  readonly fence: number;
  readonly result: "done" | "retry" | null;
  /** held: renewed. ended: its time is over, the guard is striking. over: so long ago that the guard is through. */
  readonly lease: "held" | "ended" | "over";
  readonly stalled: boolean;
  /** The process of a try, with the fencing number it runs under; it may outlive its worker for a moment. */
  readonly child: number | null;
}

interface World {
  readonly acceptor: "new" | "stored" | "told" | "dead";
  /** In the store, null: not there. */
  readonly life: MessageLife | null;
  readonly owner: number | null;
  readonly workers: readonly Worker[];
  /** Of the letter: the store's note, and what is in the file. */
  readonly noted: "no" | "sending" | "forwarded";
  readonly file: readonly ("half" | "whole")[];
  readonly begun: number;
  readonly succeeded: boolean;
  readonly faults: number;
}

const idle: Worker = { phase: "idle", fence: 0, result: null, lease: "held", stalled: false, child: null };
const random = () => 0;

export class RetryModel implements Model<World> {
  readonly initial: readonly World[];
  readonly #options: RetryModelOptions;
  readonly #rules: LifeRules;

  constructor(options: RetryModelOptions) {
    this.#options = options;
    const { maxRetries, maxCrashes } = options;
    this.#rules = {
      policy: {
        maxRetries: this.#has("the first try does not count") ? maxRetries + 1 : maxRetries,
        backoff: "fixed",
        intervalMs: 0,
        delaysMs: [],
        maxDelayMs: 0,
        jitter: "none",
        maxElapsedMs: null,
      },
      maxCrashes: this.#has("crashes count as nothing") ? Infinity : maxCrashes,
      drops: false,
    };
    this.initial = [{
      acceptor: "new",
      life: null,
      owner: null,
      workers: Array.from({ length: options.workers }, () => idle),
      noted: "no",
      file: [],
      begun: 0,
      succeeded: false,
      faults: 0,
    }];
  }

  key(world: World): string {
    return JSON.stringify(world);
  }

  transitions(world: World): Transition<World>[] {
    return [...this.#accepting(world), ...world.workers.flatMap((_, at) => this.#ofWorker(world, at))];
  }

  violation({ acceptor, life, workers, begun, succeeded, noted, file }: World): string | null {
    const { maxRetries, maxCrashes } = this.#options;
    if (workers.filter(({ child }) => child !== null).length > 1) return "Two tries of one message at once";
    if (acceptor === "told" && life === null) return "It was accepted and is lost";
    if (begun > maxRetries + 1 + maxCrashes) return `${begun} tries were begun`;
    if (life !== null && life.tries > maxRetries + 1) return `${life.tries} tries have ended`;
    if (life?.state === "done" && !succeeded) return "It is done, and no try was";
    if (life?.state === "done" && file.length > 0) return "It is done, and a dead letter";
    if (noted === "forwarded" && !file.includes("whole")) return "The store has let it go, and the letter is not there";
    if (file.filter((one) => one === "whole").length > 1) return "The dead letter is there twice";
    if (file.includes("half") && file.at(-1) !== "half") return "A letter was written behind half of one";
    return null;
  }

  idleViolation(world: World): string | null {
    return this.isDone(world) ? null : "Nothing moves, and the message is not at an end";
  }

  isDone({ life, noted, acceptor }: World): boolean {
    if (life === null) return acceptor === "dead";
    return life.state === "done" || (life.state === "dead" && (!this.#options.letters || noted === "forwarded"));
  }

  #has(mistake: Mistake): boolean {
    return this.#options.mistake === mistake;
  }

  #accepting(world: World): Transition<World>[] {
    const { acceptor } = world;
    const life = newLife(null, this.#rules, 0, random);
    const list: Transition<World>[] = [];
    if (acceptor === "new") {
      const isEarly = this.#has("tells before it has stored");
      if (isEarly) list.push(step("tells the caller", { ...world, acceptor: "told" }));
      else list.push(step("stores", { ...world, acceptor: "stored", life }));
    }
    if (acceptor === "stored") list.push(step("tells the caller", { ...world, acceptor: "told" }));
    if (acceptor === "told" && world.life === null && world.begun === 0) {
      list.push(step("stores", { ...world, acceptor: "told", life }));
    }
    if (acceptor === "new" || acceptor === "stored") {
      list.push(...this.#fault(world, "crash", "the acceptor dies", { acceptor: "dead" }));
    }
    return list;
  }

  #ofWorker(world: World, at: number): Transition<World>[] {
    const worker = world.workers[at] ?? idle;
    const list: Transition<World>[] = [];
    const name = `w${at}`;
    const set = (change: Partial<Worker>, rest: Partial<World> = {}): World => ({
      ...world,
      ...rest,
      workers: world.workers.map((one, index) => (index === at ? { ...one, ...change } : one)),
    });
    if (worker.phase !== "dead") {
      if (worker.stalled) list.push(step(`${name} wakes up`, set({ stalled: false })));
      else list.push(...this.#acting(world, at, set));
      list.push(...this.#fault(world, "crash", `${name} is killed`, set({ phase: "dead", stalled: false })));
      if (!worker.stalled) list.push(...this.#fault(world, "stall", `${name} is stopped`, set({ stalled: true })));
    }
    // A child goes on by itself, whatever its worker does.
    if (worker.child !== null && worker.phase === "trying" && !worker.stalled) {
      list.push(
        step(`${name}'s try succeeds`, set({ phase: "tried", result: "done", child: null }, { succeeded: true })),
        step(`${name}'s try fails`, set({ phase: "tried", result: "retry", child: null })),
      );
    }
    list.push(...this.#leaving(world, at, set));
    return list;
  }

  /** Leases that end, guards that strike, and a worker that is started again. */
  #leaving(
    world: World,
    at: number,
    set: (change: Partial<Worker>, rest?: Partial<World>) => World,
  ): Transition<World>[] {
    const worker = world.workers[at] ?? idle;
    const list: Transition<World>[] = [];
    const name = `w${at}`;
    const isAway = worker.phase === "dead" || worker.stalled;
    if (isAway && worker.lease === "held") list.push(step(`${name}'s lease ends`, set({ lease: "ended" })));
    // The guard strikes when its worker is dead, or the lease has ended.
    if (worker.child !== null && (worker.phase === "dead" || worker.lease !== "held")) {
      list.push(step(`${name}'s guard kills the try`, set({ child: null })));
    }
    // The grace behind the lease is as long as a guard may take.
    if (worker.lease === "ended" && worker.child === null) {
      list.push(step(`${name}'s grace is over`, set({ lease: "over" })));
    }
    const isGone = worker.lease !== "held" && !worker.stalled && worker.child === null && world.owner !== at;
    // Who finds that its lease is over ends, and is started again as somebody else.
    if (isGone && (worker.phase === "dead" || worker.phase === "idle")) list.push(step(`${name} starts`, set(idle)));
    return list;
  }

  #acting(
    world: World,
    at: number,
    set: (change: Partial<Worker>, rest?: Partial<World>) => World,
  ): Transition<World>[] {
    const worker = world.workers[at] ?? idle;
    const { life, owner } = world;
    const name = `w${at}`;
    const list: Transition<World>[] = [];
    const looks = !this.#has("begins without a look at its lease");
    switch (worker.phase) {
      case "idle": {
        if (worker.lease !== "held") break;
        if (life !== null && owner !== null && this.#isReclaimable(world, owner, at)) {
          const back = lifeAfterCrash(life, this.#rules, 0, random);
          if (back !== null) list.push(step(`${name} reclaims`, set({}, { life: back, owner: null })));
        }
        const mine = life === null ? null : lifeAfterClaim(life, 0);
        if (mine !== null) list.push(...this.#claiming(world, mine, at, set));
        if (
          life?.state === "dead" && this.#options.letters && world.noted !== "forwarded" && this.#isSampler(world, at)
        ) {
          const noted = this.#has("removes before the letter is there") ? "forwarded" : "sending";
          list.push(step(`${name} begins the letter`, set({ phase: "looking" }, { noted })));
        }
        break;
      }
      case "claimed":
        if (looks && worker.lease !== "held") {
          list.push(step(`${name} sees that its lease is over`, set({ phase: "idle" })));
        } else {list.push(
            step(`${name} tries`, set({ phase: "trying", child: worker.fence }, { begun: world.begun + 1 })),
          );}
        break;
      case "trying":
        // It was killed by the guard: the worker learns of it, and its lease is over.
        if (worker.child === null) list.push(step(`${name} gives up`, set({ phase: "idle" })));
        break;
      case "tried":
        list.push(step(`${name} records ${worker.result}`, set({ phase: "idle" }, this.#recorded(world, worker, at))));
        break;
      case "looking":
      case "writing":
      case "marking":
        list.push(...this.#writing(world, at, set));
        break;
      case "dead":
        break;
    }
    return list;
  }

  #claiming(
    world: World,
    mine: MessageLife,
    at: number,
    set: (change: Partial<Worker>, rest?: Partial<World>) => World,
  ): Transition<World>[] {
    const name = `w${at}`;
    const claimed = { phase: "claimed", fence: mine.fence, result: null } as const;
    if (this.#has("acknowledges before it dispatches")) {
      return [step(`${name} claims`, set(claimed, { life: null, owner: null }))];
    }
    if (this.#has("begins before the claim is durable")) {
      const begins = set({ phase: "trying", fence: mine.fence, child: mine.fence }, { begun: world.begun + 1 });
      return [step(`${name} claims`, begins)];
    }
    return [step(`${name} claims`, set(claimed, { life: mine, owner: at }))];
  }

  #recorded(world: World, worker: Worker, at: number): Partial<World> {
    const { life } = world;
    if (life === null || worker.result === null) return {};
    const fence = this.#has("records without a fencing number") ? life.fence : worker.fence;
    const owns = this.#has("records without a fencing number") || world.owner === at;
    const end = { outcome: worker.result, retryAfterMs: null };
    const next = owns ? lifeAfterTry(life, fence, end, { rules: this.#rules, nowMs: 0, random }) : null;
    return next === null ? {} : { life: next, owner: null };
  }

  #isReclaimable({ workers }: World, owner: number, by: number): boolean {
    const worker = workers[owner] ?? idle;
    if (owner === by) return false;
    if (this.#has("reclaims as soon as the worker is gone")) return worker.phase === "dead" || worker.lease !== "held";
    if (this.#has("reclaims at the end of the lease")) return worker.lease !== "held";
    return worker.lease === "over";
  }

  /** One writes letters at a time: a lock on the file that the system takes away with the process. */
  #isSampler({ workers }: World, at: number): boolean {
    return workers.every(({ phase }, index) => index === at || !["looking", "writing", "marking"].includes(phase));
  }

  #writing(
    world: World,
    at: number,
    set: (change: Partial<Worker>, rest?: Partial<World>) => World,
  ): Transition<World>[] {
    const worker = world.workers[at] ?? idle;
    const name = `w${at}`;
    const { file } = world;
    if (worker.phase === "looking") {
      const found = planDeadLetterAppend(
        file.map((one) => (one === "whole" ? "LETTER\n" : "LET")).join(""),
        "LETTER\n",
      );
      const plan = found === "present" && this.#has("appends again without a look") ? "append" : found;
      if (plan === "present") return [step(`${name} finds the letter`, set({ phase: "marking" }))];
      const repaired = plan === "cut" && !this.#has("appends behind half a letter") ? file.slice(0, -1) : file;
      return [step(`${name} is about to write`, set({ phase: "writing" }, { file: repaired }))];
    }
    if (worker.phase === "writing") {
      return [
        step(`${name} writes`, set({ phase: "marking" }, { file: [...file, "whole"] })),
        ...this.#fault(
          world,
          "crash",
          `${name} dies in the write`,
          set({ phase: "dead" }, { file: [...file, "half"] }),
        ),
      ];
    }
    return [step(`${name} marks the letter`, set({ phase: "idle" }, { noted: "forwarded" }))];
  }

  #fault(world: World, fault: Fault, label: string, change: Partial<World>): Transition<World>[] {
    const { faults, faultsMax } = this.#options;
    if (!faults.includes(fault) || world.faults >= faultsMax) return [];
    return [{ kind: "fault", label, state: { ...world, ...change, faults: world.faults + 1 } }];
  }
}

function step(label: string, state: World): Transition<World> {
  return { kind: "step", label, state };
}
