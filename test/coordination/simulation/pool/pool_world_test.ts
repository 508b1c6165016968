import { describeWorld } from "../../../world/world_suite.ts";
import { poolSimulation } from "./pool_world.ts";

describeWorld(poolSimulation);
