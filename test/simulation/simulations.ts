/** The worlds that can be simulated. */
import { electionSimulation, lockSimulation } from "./lock/lock_world.ts";
import { pubsubSimulation } from "./pubsub/pubsub_world.ts";
import type { Simulation } from "./simulation.ts";

export const simulations: readonly Simulation[] = [lockSimulation, electionSimulation, pubsubSimulation];
