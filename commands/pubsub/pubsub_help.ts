/** Places the commands of publish/subscribe in the help. */
import type { ProductHelp } from "../product.ts";

export const pubsubHelp: ProductHelp = {
  families: [{ heading: "Messages", names: ["publish", "subscribe", "pubsub"] }],
};
