/** Unpacks an archive into an empty folder and uses its files. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { archiveFolder, archiveName } from "./archives.ts";
import { filePathsBelow } from "./contents.ts";
import { platformOfThisMachine, type ReleasePlatform } from "./platforms.ts";
import { ReleaseError, type ReleaseProject } from "./project.ts";
import { isProgramInPath, runTool, runToolOrThrow } from "./run_tool.ts";
import { inScratchFolder, useBinaryLock, type VerificationVerdict } from "./use_binary.ts";

/** Returns why binaries of a musl platform do not start on this machine; null if they do. */
export function whyMuslCannotRun({ os, cpu, libc }: ReleasePlatform): string | null {
  const here = platformOfThisMachine();
  if (libc !== "musl" || here?.os !== os || here.cpu !== cpu) return otherMachine;
  if (here.libc === "musl") return null;
  const loader = `/lib/ld-musl-${cpu === "x64" ? "x86_64" : "aarch64"}.so.1`;
  if (!existsSync(loader)) return "this machine has no musl";
  // Without arguments it prints its version, and fails.
  const version = /^Version (.*)$/m.exec(spawnSync(loader, { encoding: "utf8" }).stderr)?.[1] ?? "";
  // musl before 1.2.4 does not know the relocations of the libstdc++ that the binary needs.
  if (Bun.semver.order(version, "1.2.4") < 0) return `this machine has musl ${version}; its libstdc++ needs 1.2.4`;
  if (!existsSync("/usr/lib/libstdc++.so.6")) return "this machine has no libstdc++ for musl";
  return null;
}

const otherMachine = "no machine of this platform was at hand";

export async function verifyArchive(
  project: ReleaseProject,
  platform: ReleasePlatform,
  outFolder: string,
): Promise<VerificationVerdict> {
  const reason = platform.name === platformOfThisMachine()?.name ? null : whyMuslCannotRun(platform);
  if (reason !== null) return { notRun: reason };
  return await inScratchFolder(async (folder) => {
    await runToolOrThrow(["tar", "-xzf", join(outFolder, archiveName(project, platform)), "-C", folder]);
    const unpacked = join(folder, archiveFolder(project, platform));
    await useBinaryLock([join(unpacked, "baton")], { folder });
    const also = [
      ...await verifyCompletions(join(unpacked, "completions")),
      ...await verifyManPages(unpacked),
      ...(platform.os === "linux" ? await verifyUnits(join(unpacked, "systemd"), unpacked) : []),
    ];
    return { used: ["unpacked: a lock was taken and given back", ...also].join("; ") };
  });
}

/** Checks that each shell can read its completion script. */
async function verifyCompletions(folder: string): Promise<string[]> {
  const checks = {
    bash: ["bash", "-n", "baton.bash"],
    zsh: ["zsh", "-n", "_baton"],
    fish: ["fish", "-n", "baton.fish"],
  };
  const shells = Object.entries(checks).filter(([shell]) => isProgramInPath(shell));
  await Promise.all(
    shells.map(([, [program = "", option = "", file = ""]]) => runToolOrThrow([program, option, join(folder, file)])),
  );
  return shells.length === 0 ? [] : [`completions read by ${shells.map(([shell]) => shell).join(", ")}`];
}

/** Checks that groff reads the pages without a warning. */
async function verifyManPages(folder: string): Promise<string[]> {
  const pages = filePathsBelow(folder).filter((path) => /^man\d\//.test(path));
  if (pages.length === 0 || !isProgramInPath("groff")) return [];
  for (const page of pages) {
    const { code, stderr } = await runTool(["groff", "-man", "-Tutf8", "-wall", "-z", join(folder, page)]);
    if (code !== 0 || stderr !== "") throw new ReleaseError(70, `groff reports about ${page}:\n${stderr}`);
  }
  return [`${pages.length} man pages read by groff`];
}

/** Checks the units with systemd-analyze. `root` contains the binary that they start, as usr/bin/baton or baton. */
export async function verifyUnits(folder: string, root: string): Promise<string[]> {
  if (!isProgramInPath("systemd-analyze")) return [];
  const units = readdirSync(folder).filter((name) => /^baton.*\.(service|timer)$/.test(name));
  return await inScratchFolder(async (copies) => {
    for (const name of units) {
      const text = readFileSync(join(folder, name), "utf8")
        .replaceAll("/usr/local/bin/baton", join(root, "baton"))
        .replaceAll("/usr/bin/baton", join(root, "usr/bin/baton"));
      writeFileSync(join(copies, name), text);
    }
    for (const name of units) {
      const { code, stdout, stderr } = await runTool(["systemd-analyze", "verify", join(copies, name)]);
      const said = stdout + stderr;
      if (code !== 0 || said !== "") throw new ReleaseError(70, `systemd-analyze reports about ${name}:\n${said}`);
    }
    return ["units verified by systemd-analyze"];
  });
}
