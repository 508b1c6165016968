import { describeWorld } from "../../../world/world_suite.ts";
import { jobSimulation } from "./job_world.ts";

describeWorld(jobSimulation);
