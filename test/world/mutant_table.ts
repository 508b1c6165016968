/** The defects that mutants.ts puts back, by product. */
import { barrierMutants } from "../coordination/simulation/barrier/barrier_mutants.ts";
import { cronMutants } from "../coordination/simulation/cron/cron_mutants.ts";
import { jobMutants } from "../coordination/simulation/job/job_mutants.ts";
import { lockMutants } from "../coordination/simulation/lock/lock_mutants.ts";
import { poolMutants } from "../coordination/simulation/pool/pool_mutants.ts";
import { znodeMutants } from "../coordination/simulation/znode/znode_mutants.ts";
import { pubsubMutants } from "../pubsub/simulation/pubsub/pubsub_mutants.ts";
import { databaseMutants } from "../retry/simulation/retry/database_mutants.ts";
import { processorMutants } from "../retry/simulation/retry/processor_mutants.ts";
import { retryMutants } from "../retry/simulation/retry/retry_mutants.ts";
import type { Mutant } from "./mutant.ts";

export const mutantsOf = {
  coordination: [...lockMutants, ...barrierMutants, ...poolMutants, ...jobMutants, ...cronMutants, ...znodeMutants],
  pubsub: pubsubMutants,
  retry: [...retryMutants, ...processorMutants, ...databaseMutants],
} as const satisfies Readonly<Record<string, readonly Mutant[]>>;

export const mutants: readonly Mutant[] = Object.values(mutantsOf).flat();
