import { describeWorld } from "../../../world/world_suite.ts";
import { pubsubSimulation } from "./pubsub_world.ts";

describeWorld(pubsubSimulation);
