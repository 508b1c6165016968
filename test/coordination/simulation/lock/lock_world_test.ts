import { describeWorld } from "../../../world/world_suite.ts";
import { lockSimulation } from "./lock_world.ts";

describeWorld(lockSimulation);
