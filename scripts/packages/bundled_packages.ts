/** Lists what the binary contains besides baton's own source: the packages of `dependencies`, and Bun. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ReleaseError } from "./project.ts";

export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly license: string;
  /** The checksum in the form of package-lock.json: "sha512-" and base64. */
  readonly integrity: string;
}

interface LockEntry {
  readonly version?: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
}

function lockEntries(root: string): Record<string, LockEntry> {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, LockEntry>;
  };
  return lock.packages;
}

function bundled(path: string, entry: LockEntry): BundledPackage {
  const { version, license, integrity } = entry;
  const name = path.replace(/^.*node_modules\//, "");
  if (version === undefined || license === undefined || integrity === undefined) {
    throw new ReleaseError(78, `package-lock.json does not have the version, the license and the checksum of ${name}`);
  }
  return { name, version, license, integrity };
}

/** Returns the dependencies, including indirect ones, sorted by name. */
export function bundledPackages(root: string): BundledPackage[] {
  return Object.entries(lockEntries(root))
    .filter(([path, { dev }]) => path !== "" && dev !== true)
    .map(([path, entry]) => bundled(path, entry))
    .toSorted((a, b) => a.name < b.name ? -1 : 1);
}

/** Returns the runtime, a development dependency that is in every binary. */
export function bundledRuntime(root: string): BundledPackage {
  return bundled("node_modules/bun", lockEntries(root)["node_modules/bun"] ?? {});
}

/** Returns the text of the package's license file, or of the license chapter of its README. */
function licenseText(root: string, { name }: BundledPackage): string {
  const folder = join(root, "node_modules", name);
  const file = readdirSync(folder).find((each) => /^licen[cs]e(\.(md|txt))?$/i.test(each));
  const text = readFileSync(join(folder, file ?? "README.md"), "utf8").replaceAll("\r\n", "\n");
  const license = file === undefined ? /^## licen[cs]e\n([^]*?)(?=^## |$(?![^]))/im.exec(text)?.[1] : text;
  if (license === undefined || !/copyright/i.test(license)) {
    throw new ReleaseError(78, `node_modules/${name} has no license file, and no license in its README.md`);
  }
  return license.trim();
}

/** Returns THIRD_PARTY_NOTICES.md, the notices that the licenses require to be distributed with the binary. */
export function thirdPartyNotices(root: string): string {
  const runtime = bundledRuntime(root);
  const packages = bundledPackages(root).map((each) =>
    `## ${each.name} ${each.version} (${each.license})\n\n${indented(licenseText(root, each))}\n`
  );
  const about = readFileSync(join(root, "scripts/packages/runtime_notice.md"), "utf8");
  return [
    "# Third-party notices\n",
    "The baton binary contains the software below. baton's own license is in LICENSE.\n",
    ...packages,
    about.replaceAll("VERSION", runtime.version).trim(),
    "",
  ].join("\n");
}

function indented(text: string): string {
  return text.split("\n").map((line) => line === "" ? "" : `    ${line}`).join("\n");
}
