/** Installs deb and rpm into separate root folders and uses what they installed. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { linuxPackageFile } from "./linux_packages.ts";
import { platformOfThisMachine, type ReleasePlatform } from "./platforms.ts";
import { ReleaseError, type ReleaseProject } from "./project.ts";
import { isProgramInPath, runTool, runToolOrThrow } from "./run_tool.ts";
import { inScratchFolder, useBinaryLock, type VerificationVerdict } from "./use_binary.ts";
import { verifyUnits } from "./verify_archive.ts";

const keeperUnit = "usr/lib/systemd/system/baton-keeper.service";

/** Installs, configures and removes the deb in an empty root with dpkg, which passes DPKG_ROOT to the scripts. */
export async function verifyDeb(
  project: ReleaseProject,
  platform: ReleasePlatform,
  outFolder: string,
): Promise<VerificationVerdict> {
  if (platform.name !== platformOfThisMachine()?.name) return { notRun: "no machine of this platform was at hand" };
  if (!isProgramInPath("dpkg")) return { notRun: "this machine has no dpkg" };
  const file = join(outFolder, linuxPackageFile(project, platform, "deb"));
  return await inScratchFolder(async (folder) => {
    const root = join(folder, "root");
    if (process.getuid?.() !== 0) {
      await runToolOrThrow(["dpkg-deb", "--extract", file, root]);
      return { used: `unpacked without root's rights, its scripts did not run; ${await useInstalled(root, folder)}` };
    }
    for (const name of ["etc", "var/lib/dpkg/info", "var/lib/dpkg/updates"]) {
      mkdirSync(join(root, name), { recursive: true });
    }
    for (const name of ["status", "available"]) writeFileSync(join(root, "var/lib/dpkg", name), "");
    const dpkg = ["dpkg", `--root=${root}`, "--force-script-chrootless", "--force-depends", "--force-not-root"];
    await runToolOrThrow([...dpkg, "--install", file]);
    const used = await useInstalled(root, folder);
    const user = existsSync(join(root, "etc/passwd")) ? readFileSync(join(root, "etc/passwd"), "utf8") : "";
    if (isProgramInPath("systemd-sysusers") && !/^baton:/m.test(user)) {
      throw new ReleaseError(70, "the deb did not create the user baton");
    }
    await runToolOrThrow([...dpkg, "--remove", "baton"]);
    const left = [keeperUnit, "usr/bin/baton"].filter((name) => existsSync(join(root, name)));
    if (left.length > 0) throw new ReleaseError(70, `dpkg --remove left ${left.join(", ")}`);
    return { used: `installed by dpkg into a root of its own; ${used}; removed by dpkg` };
  });
}

/**
 * Installs the rpm without its scripts, which rpm cannot run in a root without a shell; they are the same as the deb's.
 */
export async function verifyRpm(
  project: ReleaseProject,
  platform: ReleasePlatform,
  outFolder: string,
): Promise<VerificationVerdict> {
  if (platform.name !== platformOfThisMachine()?.name) return { notRun: "no machine of this platform was at hand" };
  if (!isProgramInPath("rpm")) return { notRun: "this machine has no rpm" };
  const file = join(outFolder, linuxPackageFile(project, platform, "rpm"));
  return await inScratchFolder(async (folder) => {
    const root = join(folder, "root");
    mkdirSync(root);
    await runToolOrThrow(["rpm", "--checksig", "--nosignature", file]);
    const rpm = ["rpm", "--root", root, "--nodeps", "--noscripts", "--nosignature"];
    await runToolOrThrow([...rpm, "--ignorearch", "--install", file]);
    await runToolOrThrow([...rpm, "--verify", "baton"]);
    const used = await useInstalled(root, folder);
    await runToolOrThrow([...rpm, "--erase", "baton"]);
    if (existsSync(join(root, "usr/bin/baton"))) throw new ReleaseError(70, "rpm --erase left usr/bin/baton");
    return { used: `installed by rpm into a root of its own; ${used}; removed by rpm` };
  });
}

/** Checks that the installed binary takes a lock, that the units are valid, and that none is enabled. */
async function useInstalled(root: string, folder: string): Promise<string> {
  await useBinaryLock([join(root, "usr/bin/baton")], { folder });
  if (existsSync(join(root, "etc/systemd/system"))) {
    throw new ReleaseError(70, "the package enables a unit; it must not start a service by itself");
  }
  const units = await verifyUnits(join(root, "usr/lib/systemd/system"), root);
  const { stdout } = await runTool([join(root, "usr/bin/baton"), "--version"]);
  return [`${stdout.trim().split("\n")[0]} took and released a lock`, ...units].join("; ");
}
