/** Verifies a release: installs each file into an empty place and uses it, as far as this machine can run it. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { archiveName } from "./archives.ts";
import { linuxPackageFile } from "./linux_packages.ts";
import { containerFiles, type ReleaseWork, sbomFile } from "./make_release.ts";
import type { ReleaseArtefact } from "./manifest.ts";
import { npmMainPackageName, npmPackageFile, npmPlatformPackageName } from "./npm_packages.ts";
import { npmPackageDescription } from "./npm_registry.ts";
import { platformOfThisMachine, type ReleasePlatform } from "./platforms.ts";
import { ReleaseError, type ReleaseProject } from "./project.ts";
import { type VerificationVerdict } from "./use_binary.ts";
import { verifyArchive, whyMuslCannotRun } from "./verify_archive.ts";
import { verifyFormula, verifyImage } from "./verify_files.ts";
import { verifyDeb, verifyRpm } from "./verify_linux_packages.ts";
import { verifyNpm } from "./verify_npm.ts";

const otherMachine: VerificationVerdict = { notRun: "no machine of this platform was at hand" };

/** Verifies all files. Throws if something that this machine can run does not work. */
export async function verifyRelease(project: ReleaseProject, work: ReleaseWork): Promise<ReleaseArtefact[]> {
  const { chosen, outFolder, say } = work;
  const artefacts: ReleaseArtefact[] = [];
  const verified = async (path: string, check: () => VerificationVerdict | Promise<VerificationVerdict>) => {
    say(`verifying ${path}`);
    artefacts.push({ path, verdict: await check() });
  };
  const here = platformOfThisMachine();
  for (const platform of chosen) {
    await verified(archiveName(project, platform), () => verifyArchive(project, platform, outFolder));
  }
  const npmVerdict = here !== null && chosen.includes(here) ? await verifyNpm(project, here, outFolder) : otherMachine;
  await verified(npmPackageFile(project, npmMainPackageName(project)), () => npmVerdict);
  for (const platform of chosen) {
    const file = npmPackageFile(project, npmPlatformPackageName(project, platform));
    await verified(file, () => {
      checkPlatformFields(join(outFolder, file), platform);
      return platform === here
        ? npmVerdict
        : { notRun: whyMuslCannotRun(platform) ?? "npm installs it on musl systems only" };
    });
  }
  for (const platform of chosen.filter(({ libc }) => libc === "glibc")) {
    for (const [format, verify] of [["deb", verifyDeb], ["rpm", verifyRpm]] as const) {
      const file = linuxPackageFile(project, platform, format);
      if (existsSync(join(outFolder, file))) await verified(file, () => verify(project, platform, outFolder));
    }
  }
  await verified("baton.rb", () => verifyFormula(join(outFolder, "baton.rb")));
  const image = await verifyImage(project, chosen, outFolder);
  for (const name of containerFiles) await verified(name, () => image);
  await verified(sbomFile(project), () => checkBill(readFileSync(join(outFolder, sbomFile(project)), "utf8")));
  return artefacts;
}

/** Checks the fields by which npm chooses a platform's package. */
function checkPlatformFields(file: string, platform: ReleasePlatform): void {
  const { os, cpu, libc } = npmPackageDescription(readFileSync(file)) as unknown as Record<
    string,
    string[] | undefined
  >;
  const expected = [platform.os, platform.cpu, platform.libc ?? undefined];
  if (expected.some((value, index) => value !== [os, cpu, libc][index]?.[0])) {
    throw new ReleaseError(70, `${file} is for ${os} ${cpu} ${libc}, not for ${platform.name}`);
  }
}

/** Checks that every component has a name, a license and its own reference. */
function checkBill(text: string): VerificationVerdict {
  const { bomFormat, components } = JSON.parse(text) as {
    bomFormat: string;
    components: { name: string; "bom-ref": string; licenses: unknown[] }[];
  };
  const references = new Set(components.map((component) => component["bom-ref"]));
  if (
    bomFormat !== "CycloneDX" || references.size !== components.length ||
    components.some((each) => each.licenses.length === 0)
  ) {
    throw new ReleaseError(70, "the bill of materials has a component without a license, or two with one reference");
  }
  return { used: `read; ${components.length} components, each with its license` };
}
