/** Writes all files of a release. The same source and the same SOURCE_DATE_EPOCH give the same bytes. */
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { archiveName, buildArchive } from "./archives.ts";
import { compileBinary } from "./compile_binary.ts";
import { sharedContents } from "./contents.ts";
import { homebrewFormula } from "./homebrew.ts";
import { canMakeLinuxPackages, linuxPackages } from "./linux_packages.ts";
import {
  npmMainPackage,
  npmMainPackageName,
  npmPackageFile,
  npmPlatformPackage,
  npmPlatformPackageName,
} from "./npm_packages.ts";
import type { ReleasePlatform } from "./platforms.ts";
import type { ReleaseProject } from "./project.ts";
import { billOfMaterials } from "./sbom.ts";
import { inScratchFolder } from "./use_binary.ts";

export interface ReleaseWork {
  readonly dryRun: boolean;
  readonly chosen: readonly ReleasePlatform[];
  readonly outFolder: string;
  readonly say: (line: string) => void;
}

export const containerFiles = ["Dockerfile", "compose.yaml"] as const;

export function sbomFile({ version }: ReleaseProject): string {
  return `baton-${version}.cdx.json`;
}

/** Writes all files into `outFolder`, which is emptied first. */
export async function makeRelease(
  project: ReleaseProject,
  { dryRun, chosen, outFolder, say }: ReleaseWork,
): Promise<void> {
  rmSync(outFolder, { recursive: true, force: true });
  mkdirSync(join(outFolder, "npm"), { recursive: true });
  const write = (name: string, content: Uint8Array | string) => writeFileSync(join(outFolder, name), content);
  await inScratchFolder(async (scratch) => {
    const shared = await sharedContents(project, scratch);
    write(npmPackageFile(project, npmMainPackageName(project)), await npmMainPackage(project, shared, scratch));
    for (const platform of chosen) {
      say(`making ${platform.name}`);
      const binaryFile = join(scratch, platform.name, "baton");
      await compileBinary(project, platform, binaryFile);
      const parts = { platform, binary: readFileSync(binaryFile), shared };
      const [packed, npm] = await Promise.all([buildArchive(project, parts), npmPlatformPackage(project, parts)]);
      write(archiveName(project, platform), packed);
      write(npmPackageFile(project, npmPlatformPackageName(project, platform)), npm);
      if (platform.libc === "glibc" && dryRun && !canMakeLinuxPackages(project.root)) {
        say("deb and rpm are not made: nfpm is built with Go, and go was not found in PATH");
      } else if (platform.libc === "glibc") {
        await linuxPackages(project, { ...parts, scratch: join(scratch, platform.name), outFolder });
      }
      rmSync(join(scratch, platform.name), { recursive: true });
    }
  });
  const checksumOf = (name: string) => existsSync(join(outFolder, name)) ? sha256OfFile(join(outFolder, name)) : null;
  write("baton.rb", homebrewFormula(project, checksumOf));
  for (const name of containerFiles) {
    copyFileSync(join(project.root, "docs/examples/container", name), join(outFolder, name));
  }
  write(sbomFile(project), billOfMaterials(project));
}

export function sha256OfFile(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}
