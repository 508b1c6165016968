/**
 * Keeps the value of the current leader in a file. Each update renames a new file to this name, so that no reader sees
 * a partial value.
 */
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../../src/base/errors.ts";
import { LeaderChanges } from "../../../src/coordination/election/election_history.ts";
import { watchLeader } from "../../../src/coordination/election/leader_status.ts";
import type { Clock } from "../../../src/base/support/clock.ts";
import { replaceFile } from "../../../src/base/support/replace_file.ts";

export interface LeaderFileOptions {
  readonly file: string;
  readonly name: string;
  readonly root: string;
  readonly clock: Clock;
  /** Called when the file can no longer be written. Called again only after a write has succeeded. */
  readonly onProblem: (what: string) => void;
}

export class LeaderFile {
  readonly #options: LeaderFileOptions;
  readonly #changes = new LeaderChanges();
  readonly #over = new AbortController();
  #hasComplained = false;
  /** The ID of the current leader; null if there is no leader or it is unknown. */
  #leader: string | null = null;

  /** Writes an empty file, because the leader is not known yet. Throws CANNOT_CREATE if that fails. */
  constructor(options: LeaderFileOptions) {
    this.#options = options;
    const failure = this.#write("");
    if (failure !== null) throw new BatonError("CANNOT_CREATE", failure);
  }

  /** Updates the file through this session until the session ends. */
  follow(zk: ZooKeeper): void {
    void this.#follow(zk);
  }

  /**
   * Stops updating the file. If the file shows `own`, the ID of this process's leadership, which has ended, empties the
   * file.
   */
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
      // The caller replaces an expired session; other failures are reported.
      if (!zk.session.ended.aborted) {
        this.#complain(`Cannot follow the leader for --leader-file: ${errorMessage(thrown)}`);
      }
    }
  }

  #write(text: string): string | null {
    const { file } = this.#options;
    try {
      replaceFile(file, text, { what: `--leader-file ${file}` });
      return null;
    } catch (thrown) {
      return errorMessage(thrown);
    }
  }

  #complain(what: string): void {
    if (!this.#hasComplained) this.#options.onProblem(what);
    this.#hasComplained = true;
  }
}
