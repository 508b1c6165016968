import { describeWorld } from "../../../world/world_suite.ts";
import { retrySimulation } from "./retry_world.ts";

describeWorld(retrySimulation);
