/**
 * A script that holds a lock through `baton hold`: its process among others of its session, and its call of `baton
 * release`.
 */
import type {
  HolderReleaseRequest,
  HolderReleaseResponse,
  OwnHolderMailbox,
} from "../../../../src/coordination/hold/release_mailbox.ts";
import type { ScriptProcess } from "../../../../src/coordination/hold/script_process.ts";
import type { Chance } from "../../../world/chance.ts";
import type { OsProcess, Program, SimOs } from "../../../world/sim_os.ts";
import type { BatonProcess } from "./baton_process.ts";
import type { JobTruth } from "./job_oracle.ts";
import { JobProgram, programOf } from "./job_programs.ts";

const scriptProgram: Program = { exe: "/bin/dash", args: ["sh", "nightly.sh"], environ: "HOME=/\0PATH=/bin\0" };

/** The memory that a holder process and `baton release` share. */
class SimMailbox implements OwnHolderMailbox {
  readonly path: string;
  request: HolderReleaseRequest | null = null;
  response: HolderReleaseResponse | null = null;

  constructor(holder: OsProcess) {
    this.path = `/proc/${holder.pid}/fd/9`;
  }

  nextRequest(): HolderReleaseRequest | null {
    const { request } = this;
    this.request = null;
    return request;
  }

  respond(response: HolderReleaseResponse): void {
    this.response = response;
  }

  [Symbol.dispose](): void {}
}

/** Milliseconds between two looks of `baton release` at the response. */
const pollMs = 10;
/** The time for which it waits, in milliseconds. */
const waitMs = 30_000;

export class HeldScript {
  readonly own: OsProcess;
  readonly #baton: BatonProcess;
  readonly #os: SimOs;
  readonly #chance: Chance;
  readonly #mailbox: SimMailbox;
  /** What is true of its lock; null before it is granted. */
  truth: JobTruth | null = null;

  constructor(baton: BatonProcess, chance: Chance) {
    const { os, own } = baton;
    this.#baton = baton;
    this.#os = os;
    this.#chance = chance;
    this.#mailbox = new SimMailbox(own);
    // As from cron: it shares group and session with a program that nobody may signal.
    const parent = os.start(os.init, programOf("crond", null), { owner: null });
    os.setSession(parent);
    this.own = os.start(parent, scriptProgram, { owner: null });
    parent.onChild = () => {
      os.after(parent, 0.1, () => os.end(parent, { code: 0, signal: null }));
      return true;
    };
  }

  get process(): ScriptProcess {
    return this.own;
  }

  readonly openMailbox = (): OwnHolderMailbox => this.#mailbox;

  /** The lock is granted: supervision begins. */
  granted(truth: JobTruth): void {
    this.truth = truth;
    this.own.owner = truth;
    truth.started(this.own);
  }

  /** The script receives the variables, and goes on under the lock. */
  readonly continue = (): void => {
    const { truth } = this;
    if (truth === null) throw new Error("a script without a lock goes on");
    truth.isToldOfLock = true;
    const { plan, lease } = truth;
    this.#os.after(this.own, this.#chance.between(0.2, 3), () => {
      const cookie = lease.holderId;
      new JobProgram(this.#os, plan, { chance: this.#chance.fork("job"), cookie, isScript: true }).begin(this.own);
      if (!this.#chance.is(0.4)) return;
      this.#os.after(this.own, plan.runMs * this.#chance.next(), () => this.#release(truth));
    });
  };

  /** `baton hold` has failed, or was killed: a script without the lock ends. */
  giveUp(): void {
    if (this.truth?.isToldOfLock !== true) {
      this.#os.after(this.own, 1, () => this.#os.end(this.own, { code: 1, signal: null }));
    }
  }

  /** `baton release` wakes a holder that stands still. */
  #wakeHolder(): void {
    const { own, isAlive, process, signals } = this.#baton;
    if (!isAlive) return;
    this.#os.deliver(own, "SIGCONT");
    process.schedule("network", 0.05, () => signals.call("SIGCONT"));
  }

  #release(truth: JobTruth): void {
    const os = this.#os;
    const { world } = os;
    const child = os.fork(this.own);
    os.after(child, this.#chance.between(0.05, 1), () => {
      os.exec(child, programOf("baton-release", truth.lease.holderId));
      const id = String(child.pid);
      world.count("mark script asks for the release");
      this.#mailbox.request = { id, requester: child, stopsProcesses: this.#chance.is(0.4) };
      this.#wakeHolder();
      const untilMs = os.nowMs + waitMs;
      const look = () => {
        const response = this.#mailbox.response;
        if (response?.id === id) world.count(`mark release: ${response.result}`);
        if (response?.id === id || !this.#baton.isAlive || os.nowMs > untilMs) {
          return os.end(child, { code: 0, signal: null });
        }
        os.after(child, pollMs, look);
      };
      os.after(child, 0.1, look);
    });
  }
}
