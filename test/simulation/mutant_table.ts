/** The defects that mutants.ts puts back, and how the simulation must show each. */
import { barrierMutants } from "./barrier/barrier_mutants.ts";
import { cronMutants } from "./cron/cron_mutants.ts";
import { jobMutants } from "./job/job_mutants.ts";
import { pubsubMutants } from "./pubsub/pubsub_mutants.ts";
import { retryMutants } from "./retry/retry_mutants.ts";
import { znodeMutants } from "./znode/znode_mutants.ts";

export interface Mutant {
  readonly name: string;
  readonly world: string;
  readonly changes: readonly { readonly file: string; readonly from: string; readonly to: string }[];
  /** The failures by which it may be found. */
  readonly kinds: readonly string[];
  /** The first seed; 1 when left out. */
  readonly from?: number;
  /** The number of seeds within which it is found. */
  readonly seeds: number;
  /** The file of the run that shows it, in place of seeds. */
  readonly faults?: string;
  /** Each plan runs twice. */
  readonly twice?: boolean;
}

const fencedWrite = "src/coordination/fence/fenced_write.ts";
const itemClaimer = "src/coordination/pool/item_claimer.ts";
const itemRecord = "src/coordination/pool/item_record.ts";
const contender = "src/coordination/lock/lock_contender.ts";
const lease = "src/coordination/zookeeper_lease.ts";
const keeperServer = "src/keeper/lifecycle/keeper_server.ts";
const keeperState = "src/keeper/state/keeper_state.ts";

export const mutants: readonly Mutant[] = [
  {
    name: "a grant does not check the version",
    world: "lock",
    changes: [{
      file: contender,
      from: "data: state, version: view.version },",
      to: "data: state, version: -1 },",
    }],
    kinds: ["two holders"],
    from: 7,
    seeds: 100,
  },
  {
    name: "a grant in advance does not check the version",
    world: "lock",
    changes: [{
      file: contender,
      from: `    const requesting = this.#zk.multi([
      { type: "setData", path: path.lock, data: this.#state.unchanged(view), version: view.version },`,
      to: `    const requesting = this.#zk.multi([
      { type: "setData", path: path.lock, data: this.#state.unchanged(view), version: -1 },`,
    }],
    kinds: ["two holders"],
    from: 10,
    seeds: 300,
  },
  {
    name: "a withdrawal does not check that the holder's grant is there",
    world: "lock",
    changes: [{
      file: contender,
      from: '      { type: "check", path: `${path.holders}/${oldest}`, version: -1 },\n',
      to: "",
    }],
    kinds: ["two holders"],
    from: 265,
    seeds: 300,
  },
  {
    name: "a contender holds with a grant in advance while an older one is there",
    world: "lock",
    changes: [{
      file: contender,
      from: "      if (isCurrent && grants.isOldest) {",
      to: "      if (isCurrent) {",
    }],
    kinds: ["two holders"],
    seeds: 20,
  },
  {
    name: "a lease is counted from the response instead of from the request",
    world: "lock",
    changes: [{
      file: "src/zookeeper/zookeeper_link.ts",
      from: "this.#proof.recordResponse(pending.code, err, pending.provesMs);",
      to: "this.#proof.recordResponse(pending.code, err, this.#clock.now());",
    }],
    kinds: ["two holders"],
    seeds: 1,
    faults: "test/simulation/found/lease_counted_from_the_response.json",
  },
  {
    name: "a lease has no margin",
    world: "lock",
    changes: [{
      file: "src/zookeeper/session_timing.ts",
      from: "return provenMs + timeoutMs - timingOf(timeoutMs).marginMs;",
      to: "return provenMs + timeoutMs;",
    }],
    kinds: ["two holders"],
    seeds: 1,
    faults: "test/simulation/found/lease_without_margin.json",
  },
  {
    name: "a holder does not notice that its machine was suspended",
    world: "lock",
    changes: [{
      file: lease,
      from: "    this.#clock.noticeSuspend();\n    if (this.#isOver) return false;",
      to: "    if (this.#isOver) return false;",
    }],
    kinds: ["two holders"],
    seeds: 100,
  },
  {
    name: "a lease ignores the clock",
    world: "lock",
    changes: [{
      file: lease,
      from: "    if (this.#clock.now() < this.#zk.session.leaseEndMs()) return true;",
      to: "    if (this.#zk.session.id !== 0n) return true;",
    }],
    kinds: ["two holders", "busy loop"],
    seeds: 20,
  },
  {
    name: "the keeper answers before its commit is durable",
    world: "lock",
    changes: [{
      file: keeperServer,
      from: "    await this.#store.commit(encodeChanges(changes));\n    this.#commits",
      to:
        "    void this.#store.commit(encodeChanges(changes)).catch(() => {});\n    await Promise.resolve();\n    this.#commits",
    }],
    kinds: ["two holders", "node of a dead session"],
    seeds: 20,
  },
  {
    name: "the disk acknowledges before it has flushed",
    world: "lock",
    changes: [{
      file: "test/simulation/world/sim_disk.ts",
      from: "    return durationMs;\n",
      to: "    return durationMs * 0.3;\n",
    }],
    kinds: ["two holders"],
    seeds: 20,
  },
  {
    name: "the keeper restores sessions with no time left",
    world: "lock",
    changes: [{
      file: keeperState,
      from: "for (const session of piece.sessions) this.sessions.add(session, nowMs);",
      to: "for (const session of piece.sessions) this.sessions.add(session, nowMs - session.timeoutMs);",
    }],
    kinds: ["two holders"],
    from: 25,
    seeds: 100,
  },
  {
    name: "the end of a session fires no watches",
    world: "lock",
    changes: [{
      file: keeperState,
      from: "    this.sessions.removeSession(session);\n    this.#fire(transaction);",
      to: "    this.sessions.removeSession(session);",
    }],
    kinds: ["never served"],
    from: 5,
    seeds: 20,
  },
  {
    name: "the keeper shows the zxid of a start before it is stored",
    world: "lock",
    changes: [{
      file: keeperState,
      from:
        "    if (this.tree.size > 0) return;\n    if (this.#zxidBefore > this.#zxid) this.#zxid = this.#zxidBefore;\n",
      to:
        "    if (this.#zxidBefore > this.#zxid) this.#zxid = this.#zxidBefore;\n    if (this.tree.size > 0) return;\n",
    }],
    kinds: ["never served"],
    seeds: 1,
    faults: "test/simulation/found/zxid_seen_but_not_stored.json",
  },
  {
    name: "a holder that was granted in advance leaves its place in the queue",
    world: "lock",
    changes: [{
      file: lease,
      from: "    if (this.#queueNode === null) return await deleteIfThere(this.#zk, this.#holderPath);\n",
      to: '    if (this.#holderPath !== "") return await deleteIfThere(this.#zk, this.#holderPath);\n',
    }],
    kinds: ["never served"],
    seeds: 60,
  },
  {
    name: "a contender that lost a response joins the queue a second time",
    world: "lock",
    changes: [{
      file: contender,
      from: '      step = { do: "recover" };\n',
      to: '      step = { do: "contend" };\n',
    }],
    kinds: ["never served", "two holders"],
    seeds: 100,
  },
  {
    name: "a leak: the real wall clock reaches the nodes of a lock",
    world: "lock",
    changes: [{
      file: "src/coordination/holder_info.ts",
      from: "export function formatNewNode(",
      to: "const savedNow = Date.now;\nexport function formatNewNode(",
    }, {
      file: "src/coordination/holder_info.ts",
      from: "sinceMs: Date.now(), sessionTimeoutMs: session.timeoutMs, revoke: null",
      to: "sinceMs: savedNow(), sessionTimeoutMs: session.timeoutMs, revoke: null",
    }],
    kinds: ["not deterministic"],
    seeds: 3,
    twice: true,
  },
  ...barrierMutants,
  {
    name: "a fenced write does not check the holder",
    world: "fence",
    changes: [{
      file: fencedWrite,
      from: '      ...this.#held.map(({ node }): MultiRequest => ({ type: "check", path: node, version: -1 })),\n',
      to: "",
    }, {
      file: fencedWrite,
      from: "const holder = this.#held[index];",
      to: "const holder = this.#held[this.#held.length];",
    }, {
      file: fencedWrite,
      from: "const own = this.#held.length + this.#parents.length;",
      to: "const own = this.#parents.length;",
    }],
    kinds: ["stale write"],
    from: 8,
    seeds: 20,
  },
  {
    name: "a fenced write checks the lock, not the holder",
    world: "fence",
    changes: [{
      file: fencedWrite,
      from: 'type: "check", path: node, version: -1',
      to: 'type: "check", path: node.slice(0, node.lastIndexOf("/")), version: -1',
    }],
    kinds: ["stale write"],
    from: 8,
    seeds: 20,
  },
  {
    name: "a holder is checked before a fenced write, not in its transaction",
    world: "fence",
    changes: [{
      file: fencedWrite,
      from: 'type: "check", path: node, version: -1',
      to: 'type: "check", path: node.slice(0, node.lastIndexOf("/")), version: -1',
    }, {
      file: fencedWrite,
      from: "        return this.#toResult(await this.#zk.multi(this.#requests()));",
      to:
        '        await this.#zk.multi(this.#held.map(({ node }) => ({ type: "check", path: node, version: -1 }) as const));\n' +
        "        return this.#toResult(await this.#zk.multi(this.#requests()));",
    }],
    kinds: ["stale write"],
    seeds: 20,
  },
  {
    name: "a fenced write without a response is sent again, whatever became of it",
    world: "fence",
    changes: [{
      file: fencedWrite,
      from:
        "          const written = await this.#resolveOutcome(thrown);\n          if (written !== null) return written;\n",
      to: "          if (tries >= triesMax) throw this.#unknownOutcomeError(thrown);\n",
    }, {
      file: fencedWrite,
      from: '      { type: "create", path: this.#mark, data: empty, acl, flags: createFlag.ephemeral },\n',
      to: "",
    }, {
      file: fencedWrite,
      from: "const own = results.at(-2);",
      to: "const own = results.at(-1);",
    }],
    kinds: ["stale write"],
    from: 9,
    seeds: 20,
  },
  {
    name: "a fenced write without a response counts as done",
    world: "fence",
    changes: [{
      file: fencedWrite,
      from: "          const written = await this.#resolveOutcome(thrown);\n",
      to: "          const written = await this.#findResult(0n);\n",
    }],
    kinds: ["lost write"],
    seeds: 20,
  },
  {
    name: "a call of a pool runs one item too many at a time",
    world: "pool",
    changes: [{
      file: "src/coordination/pool/run_pool_items.ts",
      from: "while (this.#running.size < jobs &&",
      to: "while (this.#running.size < jobs + 1 &&",
    }, {
      file: "src/coordination/pool/run_pool_items.ts",
      from: "    return jobs - (loop",
      to: "    return jobs + 1 - (loop",
    }],
    kinds: ["too many jobs"],
    seeds: 60,
  },
  {
    name: "an item is run from a list that is older than its end",
    world: "pool",
    changes: [{
      file: itemRecord,
      from: 'return record.state === "ended" && record.zxid < listedAt;',
      to: 'return record.state === "ended" && (record.zxid < listedAt || listedAt > 0n);',
    }],
    kinds: ["old list"],
    from: 2,
    seeds: 60,
  },
  {
    name: "the record of an item is deleted while another run has a list",
    world: "pool",
    changes: [{
      file: "src/coordination/pool/item_records.ts",
      from: 'return isMissing ? [alone] : [alone, { type: "delete", path, version: -1 }];',
      to: 'return isMissing ? [] : [{ type: "delete", path, version: -1 }];',
    }],
    kinds: ["old list"],
    from: 2,
    seeds: 60,
  },
  {
    name: "a run does not look under the lock whether an item is completed",
    world: "pool",
    changes: [{
      file: itemClaimer,
      from: "if (undo !== null && !isDone) return { item, lease, undo };",
      to: "if (undo !== null) return { item, lease, undo };",
    }],
    kinds: ["done again"],
    seeds: 1,
    faults: "test/simulation/found/result_not_looked_for_under_the_lock.json",
  },
  {
    name: "runs with another limit are admitted",
    world: "pool",
    changes: [{
      file: "src/coordination/pool/pool_admission.ts",
      from: "other.settingsHash !== run.settingsHash && mayBeBefore(other, run));",
      to: 'other.settingsHash === "" && mayBeBefore(other, run));',
    }],
    kinds: ["two limits", "over the limit", "program failed"],
    from: 2,
    seeds: 60,
  },
  {
    name: "an item whose lock is there in part is tried without a pause",
    world: "pool",
    changes: [{
      file: itemClaimer,
      from: "      if (isNew) this.#existingLocks.add(item);\n",
      to: "",
    }],
    kinds: ["busy loop", "never served", "too slow"],
    seeds: 1,
    faults: "test/simulation/found/partial_lock_without_a_pause.json",
  },
  {
    name: "a result is stored after its item is released",
    world: "pool",
    changes: [{
      file: "src/coordination/pool/item_results.ts",
      from:
        "      await lease.releaseWith([...this.#records.endRequests(item), this.#completionLog.createRequest(item, ended)]);\n      return true;",
      to:
        "      await lease.releaseWith([...this.#records.endRequests(item)]);\n      await this.#completionLog.write(item, ended);\n      return true;",
    }],
    kinds: ["done again"],
    from: 54,
    seeds: 60,
  },
  {
    name: "permits that were lost while the session continues are not released",
    world: "pool",
    changes: [{
      file: "src/coordination/pool/pool_permits.ts",
      from: "    this.#lost = [...this.#lost, ...lost];\n",
      to: "",
    }],
    kinds: ["never served", "items left", "left nodes"],
    from: 93,
    seeds: 100,
  },
  {
    name: "what is believed of the records' containers is not corrected",
    world: "pool",
    changes: [{
      file: "src/coordination/pool/item_records.ts",
      from: "    if (isContainer) this.#hasTree = false;\n",
      to: "    if (isContainer) return true;\n",
    }],
    kinds: ["never served", "program failed", "busy loop"],
    from: 91,
    seeds: 100,
  },
  ...jobMutants,
  ...cronMutants,
  ...pubsubMutants,
  ...retryMutants,
  ...znodeMutants,
];
