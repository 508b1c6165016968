import { describeWorld } from "../../../world/world_suite.ts";
import { fenceSimulation } from "./lock_world.ts";

describeWorld(fenceSimulation);
