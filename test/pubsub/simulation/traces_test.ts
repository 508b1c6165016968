import { describeTraces } from "../../world/world_suite.ts";
import { pubsubSimulation } from "./pubsub/pubsub_world.ts";

describeTraces([pubsubSimulation]);
