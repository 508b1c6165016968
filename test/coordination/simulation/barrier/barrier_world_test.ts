import { describeWorld } from "../../../world/world_suite.ts";
import { barrierSimulation } from "./barrier_world.ts";

describeWorld(barrierSimulation);
