/** What takes part in a lock benchmark: some program that runs a command under a lock, and the server behind it. */

export interface LockContestant {
  /** Name and version, as the table shows it. */
  readonly name: string;
  /** The whole command line that runs `child` while holding the lock `lock`. */
  command(lock: string, child: readonly string[]): string[];
  /** Added to the environment of that command. */
  readonly environment: Readonly<Record<string, string>>;
  /** How many processes are queued on the lock, its holder included. */
  queued(lock: string): Promise<number>;
  /** Where leaders are elected: a candidate that prints a line when it leads, and gives up at `resignSignal`. */
  readonly election?: {
    readonly name: string;
    command(election: string): string[];
    readonly resignSignal: NodeJS.Signals;
    /** How many candidates there are, the leader included. */
    candidates(election: string): Promise<number>;
  };
  /** Where there is a library: a program that runs cycles with many sessions of its own, see baton_cycles.ts. */
  readonly cycles?: {
    readonly sessionsMax: number;
    command(lock: string, sessions: number, cycles: number): string[];
  };
  /** Where there is a barrier: a program whose sessions meet again and again, see baton_meetings.ts. */
  readonly meetings?: (barrier: string, parties: number, meetings: number) => string[];
}

/** A contestant's running server. */
export interface RunningContestants extends AsyncDisposable {
  readonly contestants: readonly LockContestant[];
}
