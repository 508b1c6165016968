/** Known defects of pools that their world must find. */
import type { Mutant } from "../../../world/mutant.ts";

export const poolMutants: readonly Mutant[] = [
  {
    name: "a call of a pool runs one item too many at a time",
    world: "pool",
    changes: [{
      in: "run_pool_items:PoolRun.#startClaimed",
      from: "while (this.#running.size < jobs &&",
      to: "while (this.#running.size < jobs + 1 &&",
    }, {
      in: "run_pool_items:PoolRun.#claimableCount",
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
      in: "item_record:isListValidForItem",
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
      in: "item_records:PoolItemRecords.endRequests",
      from: "return isMissing ? [alone] : [alone, ",
      to: "return isMissing ? [] : [",
    }],
    kinds: ["old list"],
    from: 2,
    seeds: 60,
  },
  {
    name: "a run does not look under the lock whether an item is completed",
    world: "pool",
    changes: [{
      in: "item_claimer:PoolItemClaimer.#tryClaim",
      from: "if (undo !== null && !isDone) return { item, lease, undo };",
      to: "if (undo !== null) return { item, lease, undo };",
    }],
    kinds: ["done again"],
    seeds: 150,
  },
  {
    name: "runs with another limit are admitted",
    world: "pool",
    changes: [{
      in: "pool_admission:earlierConflicts",
      from: "other.settingsHash !== run.settingsHash && mayBeBefore(other, run));",
      to: 'other.settingsHash === "" && mayBeBefore(other, run));',
    }],
    kinds: ["two limits", "over the limit", "program failed"],
    from: 2,
    seeds: 60,
  },
  {
    name: "a run that joins a shared list takes its own entry for the start",
    world: "pool",
    changes: [{
      in: "shared_list:SharedPoolList.#tryJoin",
      from: "return (await reading)?.czxid ?? null;",
      to: "return (await reading)?.pzxid ?? null;",
    }],
    kinds: ["done again in the list"],
    seeds: 40,
  },
  {
    name: "a result is stored after its item is released",
    world: "pool",
    changes: [{
      in: "run_pool_items:ItemResults.#releaseWithResult",
      from: "return await lease.releaseWith(requests).then(",
      to: "return await lease.releaseWith(requests.slice(0, -1))\n" +
        "      .then(() => this.#zk.multi(requests.slice(-1))).then(",
    }],
    kinds: ["done again", "items left"],
    from: 171,
    seeds: 20,
  },
  {
    name: "permits that were lost while the session continues are not released",
    world: "pool",
    changes: [{
      in: "run_pool_items:PoolPermits.#freeHeld",
      from: "    this.#lost = [...this.#lost, ...lost];\n",
      to: "",
    }],
    kinds: ["never served", "items left", "left nodes"],
    from: 93,
    seeds: 100,
  },
  {
    name: "an item that is given back is lost from the list",
    world: "pool",
    changes: [{
      in: "work_list:PoolWorkList.putBack",
      from: "    for (const one of [item, ...waiting]) this.#waiting.add(one);",
      to: "    for (const one of waiting) this.#waiting.add(one);",
    }],
    kinds: ["items lost"],
    from: 34,
    seeds: 40,
  },
  {
    name: "a run ends although further items may come",
    world: "pool",
    changes: [{
      in: "run_pool_items:PoolRun.#step",
      from: "!(this.#isHeldBack || this.#isListOpen)",
      to: "!this.#isHeldBack",
    }],
    kinds: ["items lost"],
    seeds: 40,
  },
  {
    name: "a part of a list replaces the earlier parts",
    world: "pool",
    changes: [{
      in: "run_pool_items:PoolRun.#readLater",
      from: "return this.#workList.add(value);",
      to: "return this.#workList.update(value);",
    }],
    kinds: ["items lost"],
    seeds: 40,
  },
  {
    name: "an item that failed is tried once less than it may",
    world: "pool",
    changes: [{
      in: "run_pool_items:PoolRun.#runWithRetries",
      from: "attempt > this.#options.retries;",
      to: "attempt >= this.#options.retries;",
    }],
    kinds: ["not tried again"],
    seeds: 40,
  },
  {
    name: "what is believed of the records' containers is not corrected",
    world: "pool",
    changes: [{
      in: "item_records:PoolItemRecords.correctCache",
      from: "    if (isContainer) this.#hasTree = false;\n",
      to: "    if (isContainer) return true;\n",
    }],
    kinds: ["never served", "program failed", "busy loop"],
    from: 11,
    seeds: 40,
  },
];
