/** TypeScript for a program of Node's, which takes none: one file of JavaScript in a folder that goes when this process ends. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

const bundles = new Map<string, Promise<string>>();

/** The path of the bundle; made once. */
export function bundleForNode(entry: string): Promise<string> {
  const known = bundles.get(entry);
  if (known !== undefined) return known;
  const made = bundle(entry);
  bundles.set(entry, made);
  return made;
}

async function bundle(entry: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "baton-bundle-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  await Bun.build({ entrypoints: [entry], outdir: folder, target: "node", format: "cjs", naming: "bundle.cjs" });
  return join(folder, "bundle.cjs");
}
