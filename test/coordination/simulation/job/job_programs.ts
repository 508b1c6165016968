/** The programs of commands: what a job does, drawn from the seed, in steps on the model of a machine's processes. */
import { jobCookieEnvironment } from "../../../../src/base/process/proc/process_table.ts";
import { keeperProcessVariable } from "../../../../src/base/support/own_process.ts";
import type { Chance } from "../../../world/chance.ts";
import type { OsProcess, Program, SignalName, SimOs } from "../../../world/sim_os.ts";

/** Habits of commands. */
export const habits = [
  "plain",
  "stubborn",
  "slow to end",
  "children",
  "daemon",
  "hidden daemon",
  "replaces itself",
  "watches its child",
  "leaves the group",
  "stops itself",
  "waits in the kernel",
  "starts a service",
] as const;

/** Those of scripts: what they start in the background may be a copy of them that outlives them. */
export const scriptHabits = [...habits, "leaves a subshell"] as const;

export type Habit = (typeof scriptHabits)[number] | "another user's";

export interface JobPlan {
  readonly habits: readonly Habit[];
  /** How long the command itself runs, in milliseconds. */
  readonly runMs: number;
  readonly code: number;
}

/** A program that runs until then, and ends at SIGTERM. */
function runFor(process: OsProcess, ms: number, code = 0): void {
  process.os.after(process, ms, () => process.os.end(process, { code, signal: null }));
}

const environWith = (cookie: string): string =>
  `HOME=/\0${
    Object.entries(jobCookieEnvironment(cookie, undefined)).map(([name, value]) => `${name}=${value}\0`).join("")
  }`;

export function programOf(name: string, cookie: string | null): Program {
  return { exe: `/usr/bin/${name}`, args: [name], environ: cookie === null ? "PATH=/bin\0" : environWith(cookie) };
}

/** One run of a command. */
export class JobProgram {
  readonly #os: SimOs;
  readonly #chance: Chance;
  readonly #plan: JobPlan;
  readonly #cookie: string;
  readonly #isScript: boolean;

  constructor(
    os: SimOs,
    plan: JobPlan,
    { chance, cookie, isScript = false }: {
      readonly chance: Chance;
      readonly cookie: string;
      readonly isScript?: boolean;
    },
  ) {
    this.#os = os;
    this.#chance = chance;
    this.#plan = plan;
    this.#cookie = cookie;
    this.#isScript = isScript;
  }

  /** The command's own process begins. */
  begin(command: OsProcess): void {
    const { runMs, code } = this.#plan;
    for (const habit of this.#plan.habits) this.#adopt(command, habit);
    runFor(command, runMs, code);
  }

  #some(ms: number): number {
    return ms * this.#chance.next();
  }

  #adopt(command: OsProcess, habit: Habit): void {
    const os = this.#os;
    const { runMs } = this.#plan;
    const soon = (work: () => void) => os.after(command, this.#some(runMs), work);
    switch (habit) {
      case "plain":
        return;
      case "stubborn":
        return void command.ignored.add("SIGTERM");
      case "slow to end":
        return this.#slow(command);
      case "children":
        for (let left = this.#chance.whole(1, 3); left > 0; left--) soon(() => this.#child(command));
        return;
      case "daemon":
      case "hidden daemon":
        return soon(() => this.#daemon(command, habit === "hidden daemon"));
      case "replaces itself":
        return soon(() => this.#hop(this.#fork(command), this.#chance.whole(5, 60)));
      case "watches its child":
        return soon(() => this.#watch(command));
      case "leaves the group":
        return soon(() => {
          const child = this.#fork(command);
          child.group = child.pid;
          if (this.#chance.is(0.4)) child.ignored.add("SIGTERM");
          this.#run(child, "worker", this.#some(3 * runMs));
        });
      case "stops itself":
        return soon(() => {
          os.deliver(command, "SIGSTOP");
          os.after(null, runMs / 2 + this.#some(runMs), () => os.deliver(command, "SIGCONT"));
        });
      case "waits in the kernel":
        return soon(() => os.holdInSystem(command, this.#some(this.#chance.oneOf([5, 300, 4000]))));
      case "starts a service":
        return soon(() => this.#service(command));
      case "another user's":
        return soon(() => this.#anothers(command));
      case "leaves a subshell":
        return soon(() => {
          const subshell = this.#fork(command);
          if (this.#chance.is(0.3)) subshell.ignored.add("SIGTERM");
          runFor(subshell, this.#some(4 * runMs));
        });
    }
  }

  #fork(parent: OsProcess): OsProcess {
    return this.#os.fork(parent);
  }

  /** The child becomes a program; before, it is a copy for a moment, or stays one. */
  #run(child: OsProcess, name: string, ms: number, { cookie = this.#cookie }: { cookie?: string | null } = {}): void {
    const start = () => {
      this.#os.exec(child, programOf(name, cookie));
      runFor(child, ms, this.#chance.whole(0, 1));
    };
    this.#os.after(child, this.#chance.between(0.05, 1), start);
  }

  #child(command: OsProcess): void {
    const child = this.#fork(command);
    const ms = this.#some(2 * this.#plan.runMs);
    if (this.#chance.is(0.4)) return runFor(child, ms); // a subshell
    if (this.#chance.is(0.3)) child.ignored.add("SIGTERM");
    this.#run(child, "tool", ms);
    if (this.#chance.is(0.5)) {
      this.#os.after(child, 1 + this.#some(ms), () => this.#run(this.#fork(child), "subtool", ms));
    }
  }

  /** Leaves session and group; its parent ends at once. */
  #daemon(command: OsProcess, isHidden: boolean): void {
    const middle = this.#fork(command);
    this.#os.after(middle, this.#some(1), () => {
      // setsid(1): a copy of a shell makes no session.
      if (this.#isScript) this.#os.exec(middle, programOf("setsid", isHidden ? null : this.#cookie));
      this.#os.setSession(middle);
      const daemon = this.#fork(middle);
      this.#run(daemon, "daemon", this.#some(3 * this.#plan.runMs), isHidden ? { cookie: null } : {});
      this.#os.end(middle, { code: 0, signal: null });
    });
  }

  /** A chain of processes, each of which starts the next one and ends. */
  #hop(process: OsProcess, left: number): void {
    this.#os.after(process, this.#chance.between(0.3, 20), () => {
      if (left > 0) this.#hop(this.#fork(process), left - 1);
      this.#os.end(process, { code: 0, signal: null });
    });
  }

  /** Starts its child again when that has ended. */
  #watch(command: OsProcess): void {
    let left = 10;
    const start = () => {
      const child = this.#fork(command);
      this.#run(child, "watched", this.#some(this.#plan.runMs));
    };
    command.onChild = () => {
      if (left-- > 0) this.#os.after(command, this.#chance.between(0.1, 2), start);
      return this.#chance.is(0.8);
    };
    start();
  }

  #slow(command: OsProcess): void {
    let isEnding = false;
    command.onSignal = (signal: SignalName) => {
      if (signal !== "SIGTERM") return false;
      if (isEnding) return true;
      isEnding = true;
      runFor(command, this.#some(this.#chance.oneOf([20, 1000, 8000])), 143);
      return true;
    };
  }

  /** As with sudo: a process that baton may not signal. It ends by itself. */
  #anothers(command: OsProcess): void {
    const child = this.#fork(command);
    this.#os.after(child, this.#chance.between(0.05, 1), () => {
      this.#os.exec(child, programOf("sudo", null));
      child.isOthers = true;
      this.#os.world.count("mark another user's process");
      runFor(
        child,
        this.#chance.oneOf([this.#some(this.#plan.runMs), this.#some(5000), this.#chance.between(8000, 25_000)]),
      );
      if (this.#chance.is(0.3)) this.#os.setSession(child);
    });
  }

  /** As a keeper that is started on demand: it serves others, too, and is none of the job's processes. */
  #service(command: OsProcess): void {
    const child = this.#os.fork(command, null);
    this.#os.setSession(child);
    this.#os.exec(child, { ...programOf("service", null), environ: `HOME=/\0${keeperProcessVariable}=1\0` });
    runFor(child, this.#some(2 * this.#plan.runMs));
  }
}

/** Starts programs of other users now and then, some of them with a number that a job's process had. */
export function startStrangers(os: SimOs, { untilMs }: { readonly untilMs: number }): void {
  const chance = os.world.chance.fork(`strangers of ${os.machine.name}`);
  const everyMs = chance.oneOf([50, 500, 3000]);
  const next = () => {
    if (os.world.nowMs >= untilMs) return;
    os.skipPids(chance.whole(0, 40));
    if (os.processes.size < processesMax) startStranger(os, chance);
    os.after(null, chance.between(0, 2 * everyMs), next);
  };
  os.after(null, chance.between(0, everyMs), next);
}

/** More processes only make a run slow. */
const processesMax = 40;

function startStranger(os: SimOs, chance: Chance): void {
  const free = [...os.reusableMs.keys()].filter((pid) => os.isFree(pid));
  // The latest ones are the likeliest to be remembered by somebody.
  const reused = free.length > 0 && chance.is(0.6)
    ? free[chance.whole(chance.is(0.6) ? Math.max(0, free.length - 3) : 0, free.length - 1)]
    : undefined;
  if (reused !== undefined) os.wantPid(reused);
  const stranger = os.start(os.init, programOf(chance.oneOf(["cron", "a) (b"]), null), { owner: null });
  if (stranger.pid === reused) {
    os.reusableMs.delete(reused);
    os.world.count("mark stranger with a number that was used before");
  }
  stranger.group = stranger.pid;
  if (chance.is(0.5)) stranger.session = stranger.pid;
  const ms = chance.oneOf([20, 1000, 20_000]) * chance.next();
  if (chance.is(0.3)) os.after(stranger, ms * chance.next(), () => runFor(os.fork(stranger), ms));
  runFor(stranger, ms);
}
