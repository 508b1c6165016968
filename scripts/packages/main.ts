/** Makes a release, verifies it, prints what was made, and publishes it unless --dry-run is given. */
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { makeRelease } from "./make_release.ts";
import { writeChecksums, writeManifest } from "./manifest.ts";
import { type ReleasePlatform, releasePlatforms } from "./platforms.ts";
import { readReleaseProject, ReleaseError, type ReleaseProject } from "./project.ts";
import { checkPublishable, formatCommand, listPublications, publishRelease } from "./publish.ts";
import { verifyRelease } from "./verify_release.ts";

const root = join(import.meta.dirname ?? ".", "../..");

interface Words {
  readonly dryRun: boolean;
  readonly chosen: readonly ReleasePlatform[];
  readonly outFolder: string;
}

function readWords(words: readonly string[]): Words {
  const { values } = parseArgs({
    args: [...words],
    options: {
      "dry-run": { type: "boolean", default: false },
      platform: { type: "string", multiple: true },
      into: { type: "string", default: join(root, "dist/release") },
    },
  });
  const names = values.platform ?? releasePlatforms.map(({ name }) => name);
  const unknown = names.find((name) => !releasePlatforms.some((each) => each.name === name));
  if (unknown !== undefined) {
    const known = releasePlatforms.map(({ name }) => name).join(", ");
    throw new ReleaseError(64, `"${unknown}" is not a platform of baton; the platforms are ${known}`);
  }
  if (values.platform !== undefined && !values["dry-run"]) {
    throw new ReleaseError(64, "a release has all platforms: --platform needs --dry-run");
  }
  return {
    dryRun: values["dry-run"],
    chosen: releasePlatforms.filter(({ name }) => names.includes(name)),
    outFolder: values.into,
  };
}

async function run({ dryRun, chosen, outFolder }: Words): Promise<void> {
  const project: ReleaseProject = readReleaseProject(root);
  if (!dryRun) await checkPublishable(project);
  const say = (line: string) => process.stderr.write(`scripts/release: ${line}\n`);
  const work = { dryRun, chosen, outFolder, say };
  await makeRelease(project, work);
  const artefacts = await verifyRelease(project, work);
  console.log(writeManifest(artefacts, outFolder));
  writeChecksums(outFolder);
  const steps = listPublications(project, outFolder);
  if (!dryRun) return await publishRelease(steps, say);
  const options = chosen.length < releasePlatforms.length ? "--dry-run and --platform" : "--dry-run";
  console.log(`\nNothing was published. Without ${options}:`);
  for (const { command } of steps) console.log(`  ${formatCommand(command)}`);
}

try {
  await run(readWords(process.argv.slice(2)));
} catch (error) {
  const isUsage = (error as { code?: unknown }).code?.toString().startsWith("ERR_PARSE_ARGS") ?? false;
  if (!isUsage && !(error instanceof ReleaseError)) throw error;
  process.stderr.write(`scripts/release: ${(error as Error).message}\n`);
  process.exitCode = error instanceof ReleaseError ? error.exitCode : 64;
}
