import { simulations } from "../../world/simulations.ts";
import { describeTraces } from "../../world/world_suite.ts";

const ofOtherProducts = ["pubsub", "retry"];
describeTraces(simulations.filter(({ name }) => !ofOtherProducts.includes(name)));
