/** The interface of a program that takes part in the lock benchmarks, with the server that it uses. */

export interface LockContestant {
  /** Name and version, as the table shows it. */
  readonly name: string;
  /** The whole command line that runs `child` while holding the lock `lock`. */
  command(lock: string, child: readonly string[]): string[];
  /** Added to the environment of that command. */
  readonly environment: Readonly<Record<string, string>>;
  /** Returns how many processes are in the lock's queue, including its holder. */
  queued(lock: string): Promise<number>;
  /** Only if it can elect leaders: a candidate prints a line when it leads, and resigns at `resignSignal`. */
  readonly election?: {
    readonly name: string;
    command(election: string): string[];
    readonly resignSignal: NodeJS.Signals;
    /** Returns the number of candidates, including the leader. */
    candidates(election: string): Promise<number>;
  };
  /** Only if it has a library: a program that acquires and releases with many sessions, see baton_cycles.ts. */
  readonly cycles?: {
    readonly sessionsMax: number;
    command(lock: string, sessions: number, cycles: number): string[];
  };
  /** Only if it has a barrier: a program whose sessions meet again and again, see baton_meetings.ts. */
  readonly meetings?: (barrier: string, parties: number, meetings: number) => string[];
}

/** Running servers and the contestants that use them. */
export interface RunningContestants extends AsyncDisposable {
  readonly contestants: readonly LockContestant[];
}
