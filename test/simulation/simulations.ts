/** The worlds that can be simulated. */
import { electionSimulation, lockSimulation } from "./lock/lock_world.ts";
import { barrierSimulation } from "./barrier/barrier_world.ts";
import { poolSimulation } from "./pool/pool_world.ts";
import type { Simulation } from "./simulation.ts";

export const simulations: readonly Simulation[] = [
  lockSimulation,
  electionSimulation,
  barrierSimulation,
  poolSimulation,
];
