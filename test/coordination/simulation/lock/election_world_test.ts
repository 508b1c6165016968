import { describeWorld } from "../../../world/world_suite.ts";
import { electionSimulation } from "./lock_world.ts";

describeWorld(electionSimulation);
