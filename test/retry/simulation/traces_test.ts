import { describeTraces } from "../../world/world_suite.ts";
import { retrySimulation } from "./retry/retry_world.ts";

describeTraces([retrySimulation]);
