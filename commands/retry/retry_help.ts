/** Places the commands of the retry processor in the help. */
import type { ProductHelp } from "../product.ts";

export const retryHelp: ProductHelp = { families: [{ heading: "Retries", names: ["retry-processor"] }] };
