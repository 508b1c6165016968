import { describeWorld } from "../../../world/world_suite.ts";
import { retryDatabaseSimulation } from "./retry_database_world.ts";
import { retrySimulation } from "./retry_world.ts";

describeWorld(retrySimulation);
describeWorld(retryDatabaseSimulation);
