/** The worlds that can be simulated. */
import { barrierSimulation } from "../coordination/simulation/barrier/barrier_world.ts";
import { cronSimulation } from "../coordination/simulation/cron/cron_world.ts";
import { holdSimulation, jobSimulation } from "../coordination/simulation/job/job_world.ts";
import { electionSimulation, lockSimulation } from "../coordination/simulation/lock/lock_world.ts";
import { poolSimulation } from "../coordination/simulation/pool/pool_world.ts";
import { pubsubSimulation } from "../pubsub/simulation/pubsub/pubsub_world.ts";
import { retryDatabaseSimulation } from "../retry/simulation/retry/retry_database_world.ts";
import { retrySimulation } from "../retry/simulation/retry/retry_world.ts";
import type { Simulation } from "./simulation.ts";
import { znodeSimulation } from "../coordination/simulation/znode/znode_world.ts";

export const simulations: readonly Simulation[] = [
  ...[lockSimulation, electionSimulation],
  ...[jobSimulation, holdSimulation, cronSimulation],
  ...[barrierSimulation, poolSimulation, pubsubSimulation],
  ...[retrySimulation, retryDatabaseSimulation, znodeSimulation],
];
