import { describeWorld } from "../../../world/world_suite.ts";
import { cronSimulation } from "./cron_world.ts";

describeWorld(cronSimulation);
