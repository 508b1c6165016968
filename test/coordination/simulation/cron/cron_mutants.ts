/** Known defects of ticks and of the service that follows schedules. */
import type { Mutant } from "../../../world/mutant.ts";

export const cronMutants: readonly Mutant[] = [
  {
    name: "a lease that is lost keeps its lock while the session lives on",
    world: "cron",
    changes: [{
      in: "follow_schedule:ScheduleFollower.#release",
      from: "    const onFailure = (thrown: unknown) => this.#context.log(",
      to: "    if (!lease.isHeld()) return;\n    const onFailure = (thrown: unknown) => this.#context.log(",
    }],
    kinds: ["ticks"],
    seeds: 1,
    faults: "test/world/found/lost_lease_that_keeps_its_lock.json",
  },
  {
    name: "a tick that was claimed is claimed again",
    world: "cron",
    changes: [{
      in: "tick_decision:decideTick",
      from: "const due = newest !== null && newest > uptoMs && isInTime(newest) ? newest : null;",
      to: "const due = newest !== null && newest >= uptoMs && isInTime(newest) ? newest : null;",
    }],
    kinds: ["ticks", "told twice"],
    seeds: 20,
  },
  {
    name: "a try whose host died is not recorded as lost",
    world: "cron",
    changes: [{
      in: "tick_decision:decideTick",
      from: 'const lost: SettledTickRecord[] = open === null ? [] : [{ result: "lost", run: open }];',
      to: "const lost: SettledTickRecord[] = [];",
    }],
    kinds: ["ticks"],
    seeds: 20,
  },
  {
    name: "ticks of a time in which no host was there are not recorded",
    world: "cron",
    changes: [{
      in: "tick_decision:decideTick",
      from: "const missed = due === null || progress === null ? [] : missedTicks(calendar, uptoMs, due);",
      to: "const missed: SettledTickRecord[] = [];",
    }],
    kinds: ["ticks"],
    seeds: 20,
  },
  {
    name: "a tick begins by the clock of its host",
    world: "cron",
    changes: [{
      in: "tick_claim:TickClaim.#nowMs",
      from: "return known === null ? null : Math.floor(known.ms + this.#options.clock.now() - known.atMs);",
      to: "return known === null ? null : this.#options.wallMs();",
    }],
    kinds: ["too early", "ticks"],
    seeds: 60,
  },
  {
    name: "a tick that was given back is not taken by another host",
    world: "cron",
    changes: [{
      in: "tick_claim:TickClaim.#endRequests",
      from: "if (end === null) return this.#givingBack(state, run);",
      to: "if (end === null) return this.#requests({ ...state, open: null, retry: null }, []);",
    }],
    kinds: ["ticks"],
    seeds: 1,
    faults: "test/world/found/tick_that_is_given_back.json",
  },
  {
    name: "a tick that failed is not tried again",
    world: "cron",
    changes: [{
      in: "tick_decision:tickProgressAfterEnd",
      from:
        '    retry: result === "failed" ? attemptAfter(run, nowMs, { ...rules, delayMs: rules.retryDelayMs }) : null,',
      to: "    retry: null,",
    }],
    kinds: ["not tried again"],
    from: 60,
    seeds: 60,
  },
  {
    name: "a further try does not wait",
    world: "cron",
    changes: [{
      in: "tick_decision:attemptAfter",
      from: "fromMs: waitMs > 0 ? nowMs + Math.floor(waitMs) : 0 };",
      to: "fromMs: 0 };",
    }],
    kinds: ["tried again too early"],
    from: 20,
    seeds: 60,
  },
  {
    name: "a host looks at ticks by its own clock, and waits for the servers' with its request",
    world: "cron",
    changes: [
      {
        in: "servers_clock:TickServersClock.nowMs",
        from: "return this.wallMs() + (this.#current()?.aheadMs ?? 0);",
        to: "return this.wallMs();",
      },
      { in: "follow_schedule:ScheduleFollower.#acquire", from: "leavesEarly: true", to: "leavesEarly: false" },
    ],
    kinds: ["before its turn", "ticks"],
    from: 40,
    seeds: 60,
  },
  {
    name: "a tick is caught up however late it is",
    world: "cron",
    changes: [{
      in: "tick_decision:decideTick",
      from: "nowMs - tickMs <= lateMsMax;",
      to: "nowMs - tickMs <= lateMsMax * 1e6;",
    }],
    kinds: ["claimed too late"],
    seeds: 20,
  },
  {
    name: "a tick that waits for its lock is skipped",
    world: "cron",
    changes: [{
      in: "tick_decision:decideTick",
      from: "    if (waits || facts.holders.length === 0) return",
      to: "    if (facts.holders.length === 0) return",
    }],
    kinds: ["skipped"],
    seeds: 20,
  },
  {
    name: "a failed try is told although the tick is tried again",
    world: "cron",
    changes: [{
      in: "tick_claim:TickClaim.#endRequests",
      from: 'result === "failed" && progress.retry === null',
      to: 'result === "failed"',
    }],
    kinds: ["told twice"],
    seeds: 20,
  },
];
