/** Makes the archive of a platform: the binary, man pages, completions, systemd units, licenses. */
import type { SharedContents } from "./contents.ts";
import type { ReleasePlatform } from "./platforms.ts";
import type { ReleaseProject } from "./project.ts";
import { tarGzArchive } from "./tar_archive.ts";

export function archiveFolder({ version }: ReleaseProject, { name }: ReleasePlatform): string {
  return `baton-${version}-${name}`;
}

export function archiveName(project: ReleaseProject, platform: ReleasePlatform): string {
  return `${archiveFolder(project, platform)}.tar.gz`;
}

export async function buildArchive(
  project: ReleaseProject,
  { platform, binary, shared }: { platform: ReleasePlatform; binary: Uint8Array; shared: SharedContents },
): Promise<Uint8Array> {
  return await tarGzArchive(archiveFolder(project, platform), [
    { path: "baton", content: binary, executable: true },
    ...shared.texts,
    ...shared.manPages,
    ...shared.completions,
    ...(platform.os === "linux" ? shared.units : []),
  ], project.epoch);
}
