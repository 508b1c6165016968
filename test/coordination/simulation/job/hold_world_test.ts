import { describeWorld } from "../../../world/world_suite.ts";
import { holdSimulation } from "./job_world.ts";

describeWorld(holdSimulation);
