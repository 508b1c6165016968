/** The place of retry in the help. */
import type { ProductHelp } from "../product.ts";

export const retryHelp: ProductHelp = { families: [{ heading: "Retries", names: ["retry-processor"] }] };
