/** Completes names of topics in a shell. */
import { listTopicNames } from "../../src/pubsub/ownership/topic_names.ts";
import type { ProductCompletions } from "../product.ts";

export const pubsubCompletions: ProductCompletions = { topics: { list: listTopicNames } };
