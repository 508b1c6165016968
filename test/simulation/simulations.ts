/** The worlds that can be simulated. */
import { barrierSimulation } from "./barrier/barrier_world.ts";
import { cronSimulation } from "./cron/cron_world.ts";
import { holdSimulation, jobSimulation } from "./job/job_world.ts";
import { electionSimulation, fenceSimulation, lockSimulation } from "./lock/lock_world.ts";
import { poolSimulation } from "./pool/pool_world.ts";
import { pubsubSimulation } from "./pubsub/pubsub_world.ts";
import { retrySimulation } from "./retry/retry_world.ts";
import type { Simulation } from "./simulation.ts";
import { znodeSimulation } from "./znode/znode_world.ts";

export const simulations: readonly Simulation[] = [
  ...[lockSimulation, electionSimulation, fenceSimulation],
  ...[jobSimulation, holdSimulation, cronSimulation],
  ...[barrierSimulation, poolSimulation, pubsubSimulation, retrySimulation, znodeSimulation],
];
