/**
 * A script that holds a lock through `baton hold`: its process among others of its session, and its call of `baton
 * release`.
 */
import type { OpenReleaseSocket, ReceivedReleaseRequest } from "../../../../src/coordination/hold/release_socket.ts";
import type { ProcessIdentity } from "../../../../src/base/process/proc/process_table.ts";
import type { Chance } from "../../../world/chance.ts";
import type { OsProcess, Program, SimOs } from "../../../world/sim_os.ts";
import type { BatonProcess } from "./baton_process.ts";
import type { JobTruth } from "./job_oracle.ts";
import { JobProgram, programOf } from "./job_programs.ts";

const scriptProgram: Program = { exe: "/bin/dash", args: ["sh", "nightly.sh"], environ: "HOME=/\0PATH=/bin\0" };

/** The time for which it waits, in milliseconds. */
const waitMs = 30_000;

export class HeldScript {
  readonly own: OsProcess;
  readonly #baton: BatonProcess;
  readonly #os: SimOs;
  readonly #chance: Chance;
  /** Hands a request to the holder process; null while it does not listen. */
  #ask: ((request: ReceivedReleaseRequest) => void) | null = null;
  /** What is true of its lock; null before it is granted. */
  truth: JobTruth | null = null;

  constructor(baton: BatonProcess, chance: Chance) {
    const { os } = baton;
    this.#baton = baton;
    this.#os = os;
    this.#chance = chance;
    // As from cron: it shares group and session with a program that nobody may signal.
    const parent = os.start(os.init, programOf("crond", null), { owner: null });
    os.setSession(parent);
    this.own = os.start(parent, scriptProgram, { owner: null });
    parent.onChild = () => {
      os.after(parent, 0.1, () => os.end(parent, { code: 0, signal: null }));
      return true;
    };
  }

  get process(): ProcessIdentity {
    return this.own;
  }

  readonly openSocket: OpenReleaseSocket = (_owner, onRequest) => {
    this.#ask = onRequest;
    return Promise.resolve({ path: "/tmp/baton-hold-0/simulated", [Symbol.dispose]: () => this.#ask = null });
  };

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

  #release(truth: JobTruth): void {
    const os = this.#os;
    const { world } = os;
    const child = os.fork(this.own);
    const end = () => os.end(child, { code: 0, signal: null });
    os.after(child, this.#chance.between(0.05, 1), () => {
      os.exec(child, programOf("baton-release", truth.lease.holderId));
      world.count("mark script asks for the release");
      const stopsProcesses = this.#chance.is(0.4);
      const { process, isAlive } = this.#baton;
      if (!isAlive || this.#ask === null) return end();
      os.after(child, waitMs, end);
      process.whenDead(end);
      // A holder that stands still reads the request later.
      process.schedule("network", 0.05, () => {
        if (this.#ask === null) return end();
        this.#ask({
          requester: child,
          stopsProcesses,
          respond: ({ result }) => {
            world.count(`mark release: ${result}`);
            os.after(child, 0.1, end);
          },
        });
      });
    });
  }
}
