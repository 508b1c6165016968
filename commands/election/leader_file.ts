/** A file that always says who leads, for whatever cannot ask. Written whole, by renaming: nobody reads half a value. */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import type { ZooKeeper } from "../../src/zookeeper/zookeeper.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import { LeaderChanges } from "../../src/coordination/election/leader_changes.ts";
import { watchLeader } from "../../src/coordination/election/watch_leader.ts";
import type { Clock } from "../../src/support/clock.ts";

export interface LeaderFileOptions {
  readonly file: string;
  readonly name: string;
  readonly root: string;
  readonly clock: Clock;
  /** Told when it cannot be kept, once. */
  readonly onProblem: (what: string) => void;
}

export class LeaderFile {
  readonly #options: LeaderFileOptions;
  readonly #changes = new LeaderChanges();
  readonly #over = new AbortController();
  #hasComplained = false;
  /** The id of who leads, as far as known. */
  #leader: string | null = null;

  /** Begins with an empty file, as nobody is known to lead. Throws CANNOT_CREATE. */
  constructor(options: LeaderFileOptions) {
    this.#options = options;
    const failure = this.#write("");
    if (failure !== null) throw new BatonError("CANNOT_CREATE", failure);
  }

  /** From now on by this session, until it ends; what was told before is known. */
  follow(zk: ZooKeeper): void {
    void this.#follow(zk);
  }

  /** From now on nobody keeps it. `own` has just ended: the file must not go on naming it. */
  close(own: string | null): void {
    this.#over.abort();
    const failure = own !== null && own === this.#leader ? this.#write("") : null;
    if (failure !== null) this.#complain(failure);
  }

  async #follow(zk: ZooKeeper): Promise<void> {
    const { name, root, clock } = this.#options;
    const options = { root, clock, changes: this.#changes, signal: this.#over.signal };
    try {
      for await (const change of watchLeader(zk, name, options)) {
        if (change.kind === "missed") continue;
        this.#leader = change.kind === "elected" ? change.grant.id : null;
        const failure = this.#write(change.kind === "vacant" ? "" : `${change.grant.value}\n`);
        if (failure !== null) this.#complain(failure);
        else this.#hasComplained = false;
      }
    } catch (thrown) {
      // The session's end: another one follows. Whatever else is told.
      if (!zk.session.ended.aborted) this.#complain(`Cannot follow the leader for --leader-file: ${messageOf(thrown)}`);
    }
  }

  #write(text: string): string | null {
    const { file } = this.#options;
    const draft = `${file}.${process.pid}.new`;
    try {
      writeFileSync(draft, text);
      renameSync(draft, file);
      return null;
    } catch (thrown) {
      rmSync(draft, { force: true });
      return `--leader-file ${file}: it cannot be written: ${messageOf(thrown)}`;
    }
  }

  #complain(what: string): void {
    if (!this.#hasComplained) this.#options.onProblem(what);
    this.#hasComplained = true;
  }
}
