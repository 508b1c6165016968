import { describeWorld } from "../../../world/world_suite.ts";
import { znodeSimulation } from "./znode_world.ts";

describeWorld(znodeSimulation);
