/** Writes MANIFEST and SHA256SUMS: the files of a release, their sizes, and how each was verified on this machine. */
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { filePathsBelow } from "./contents.ts";
import { sha256OfFile } from "./make_release.ts";
import type { VerificationVerdict } from "./use_binary.ts";

export interface ReleaseArtefact {
  /** The path in the release's folder. */
  readonly path: string;
  readonly verdict: VerificationVerdict;
}

/** Writes MANIFEST, and returns its text. */
export function writeManifest(artefacts: readonly ReleaseArtefact[], outFolder: string): string {
  const rows = artefacts.map(({ path, verdict }) => [
    path,
    formatSize(statSync(join(outFolder, path)).size),
    "used" in verdict ? verdict.used : `built, not run: ${verdict.notRun}`,
  ]);
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const text = rows.map(([path = "", size = "", state = ""]) =>
    `${path.padEnd(widths[0] ?? 0)}  ${size.padStart(widths[1] ?? 0)}  ${state}`
  ).join("\n");
  writeFileSync(join(outFolder, "MANIFEST"), `${text}\n`);
  return text;
}

/** Writes SHA256SUMS, in the format that `sha256sum --check` reads. */
export function writeChecksums(outFolder: string): void {
  const names = filePathsBelow(outFolder).filter((path) => path !== "SHA256SUMS");
  writeFileSync(
    join(outFolder, "SHA256SUMS"),
    names.map((name) => `${sha256OfFile(join(outFolder, name))}  ${name}\n`).join(""),
  );
}

function formatSize(bytes: number): string {
  return bytes < 100_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
