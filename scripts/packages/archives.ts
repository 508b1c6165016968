/** The archive of a platform: the binary, man pages, completions, systemd units, licenses. */
import type { SharedContents } from "./contents.ts";
import type { Platform } from "./platforms.ts";
import type { Project } from "./project.ts";
import { tarGz } from "./tar_archive.ts";

export function archiveFolder({ version }: Project, { name }: Platform): string {
  return `baton-${version}-${name}`;
}

export function archiveName(project: Project, platform: Platform): string {
  return `${archiveFolder(project, platform)}.tar.gz`;
}

export async function archive(
  project: Project,
  { platform, binary, shared }: { platform: Platform; binary: Uint8Array; shared: SharedContents },
): Promise<Uint8Array> {
  return await tarGz(archiveFolder(project, platform), [
    { path: "baton", content: binary, executable: true },
    ...shared.texts,
    ...shared.manPages,
    ...shared.completions,
    ...(platform.os === "linux" ? shared.units : []),
  ], project.epoch);
}
