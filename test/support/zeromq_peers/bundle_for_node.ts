/** TypeScript for a program of Node's, which takes none: one file of JavaScript. */
import { join } from "node:path";
import { MadeOnce } from "./made_once.ts";

const bundles = new MadeOnce("bundle", async (entry, folder) => {
  await Bun.build({ entrypoints: [entry], outdir: folder, target: "node", format: "cjs", naming: "bundle.cjs" });
  return join(folder, "bundle.cjs");
});

/** The path of the bundle; made once. */
export function bundleForNode(entry: string): Promise<string> {
  return bundles.of(entry);
}
