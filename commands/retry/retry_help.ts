/** The section of the help that lists the retry processor. */
import type { ProductHelp } from "../product.ts";

export const retryHelp: ProductHelp = { families: [{ heading: "Retries", names: ["retry-processor"] }] };
