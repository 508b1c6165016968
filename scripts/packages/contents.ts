/** The files that archives, npm packages, deb and rpm share, made once for all platforms. */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { thirdPartyNotices } from "./bundled_packages.ts";
import type { ReleaseProject } from "./project.ts";
import { runToolOrThrow } from "./run_tool.ts";
import { billOfMaterials } from "./sbom.ts";
import type { PackedFile } from "./tar_archive.ts";

export interface SharedContents {
  /** LICENSE, THIRD_PARTY_NOTICES.md, README.md, CHANGELOG.md, sbom.cdx.json. */
  readonly texts: readonly PackedFile[];
  /** man1/baton.1, man5/baton.toml.5 and so on. */
  readonly manPages: readonly PackedFile[];
  /** completions/baton.bash, completions/_baton, completions/baton.fish. */
  readonly completions: readonly PackedFile[];
  /** systemd/baton-keeper.service and so on, for a binary in /usr/local/bin. */
  readonly units: readonly PackedFile[];
  /** docs/guides/locks.md and so on: the pages for users. */
  readonly pages: readonly PackedFile[];
}

const completionFiles = { bash: "baton.bash", zsh: "_baton", fish: "baton.fish" };

/** Makes the shared files. `scratch` is an empty folder. */
export async function sharedContents(project: ReleaseProject, scratch: string): Promise<SharedContents> {
  const read = (name: string) => readFileSync(join(project.root, name));
  const texts = ["LICENSE", "README.md", "CHANGELOG.md"].map((path) => ({ path, content: read(path) }));
  const notices = { path: "THIRD_PARTY_NOTICES.md", content: Buffer.from(thirdPartyNotices(project.root)) };
  const examples = readdirSync(join(project.root, "docs/examples")).filter((name) => name.endsWith(".service"));
  return {
    texts: [...texts, notices, { path: "sbom.cdx.json", content: Buffer.from(billOfMaterials(project)) }],
    manPages: await manPages(project, join(scratch, "man")),
    completions: await Promise.all(
      Object.entries(completionFiles).map(async ([shell, name]) => ({
        path: `completions/${name}`,
        content: Buffer.from(await runToolOrThrow([join(project.root, "dist/baton"), "completion", shell])),
      })),
    ),
    units: examples.map((name) => ({ path: `systemd/${name}`, content: read(`docs/examples/${name}`) })),
    pages: ["docs", "docs/guides", "docs/commands"].flatMap((folder) =>
      readdirSync(join(project.root, folder)).filter((name) => name.endsWith(".md")).sort()
        .map((name) => ({ path: `${folder}/${name}`, content: read(`${folder}/${name}`) }))
    ),
  };
}

/** Returns the man pages, which scripts/gen_man.ts writes. */
async function manPages({ root, epoch }: ReleaseProject, folder: string): Promise<PackedFile[]> {
  if (!existsSync(join(root, "scripts/gen_man.ts"))) return [];
  await runToolOrThrow(["bun", "scripts/gen_man.ts", folder], { cwd: root, env: { SOURCE_DATE_EPOCH: String(epoch) } });
  const pages = filesBelow(folder);
  rmSync(folder, { recursive: true });
  return pages;
}

/** Returns the paths of all files in a folder and the folders below it. */
export function filePathsBelow(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return entries.map((entry) => relative(folder, join(entry.parentPath, entry.name))).sort();
}

export function filesBelow(folder: string): PackedFile[] {
  return filePathsBelow(folder).map((path) => ({ path, content: readFileSync(join(folder, path)) }));
}
