/** Checks the Homebrew formula and the container image, as far as this machine can. */
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { archiveName } from "./archives.ts";
import { platformOfThisMachine, type ReleasePlatform, releasePlatforms } from "./platforms.ts";
import type { ReleaseProject } from "./project.ts";
import { isProgramInPath, runTool, runToolOrThrow } from "./run_tool.ts";
import { inScratchFolder, useBinaryLock, type VerificationVerdict } from "./use_binary.ts";

/** Checks that Ruby can read the formula. Only `brew` could install it, and only from its published address. */
export async function verifyFormula(file: string): Promise<VerificationVerdict> {
  if (!isProgramInPath("ruby")) return { notRun: "this machine has neither Homebrew nor Ruby" };
  await runToolOrThrow(["ruby", "-c", file]);
  return { notRun: "its syntax was read by Ruby; brew installs from published addresses only" };
}

/** Builds the image and uses it, if a container engine runs and can get the base image. */
export async function verifyImage(
  project: ReleaseProject,
  built: readonly ReleasePlatform[],
  outFolder: string,
): Promise<VerificationVerdict> {
  const here = platformOfThisMachine();
  const platform = releasePlatforms.find(({ libc, cpu }) => libc === "musl" && cpu === here?.cpu);
  if (platform === undefined || !built.includes(platform)) {
    return { notRun: "the musl binary of this machine was not built" };
  }
  const engine = ["docker", "podman"].find(isProgramInPath);
  if (engine === undefined) return { notRun: "this machine has no container engine" };
  const info = await runTool([engine, "info"], { minutesMax: 1 });
  if (info.code !== 0) return { notRun: `${engine} is installed and does not run here` };
  return await inScratchFolder(async (context) => {
    copyFileSync(join(outFolder, archiveName(project, platform)), join(context, archiveName(project, platform)));
    copyFileSync(join(outFolder, "Dockerfile"), join(context, "Dockerfile"));
    const tag = `baton-release-check:${project.version}`;
    const target = platform.cpu === "x64" ? "amd64" : "arm64";
    const build = [engine, "build", "--tag", tag, "--build-arg", `TARGETARCH=${target}`, context];
    const result = await runTool(build, { minutesMax: 10 });
    if (result.code !== 0) {
      const base = /^FROM (\S+:\S+)/m.exec(readFileSync(join(context, "Dockerfile"), "utf8"))?.[1] ?? "";
      const pulled = await runTool([engine, "pull", base], { minutesMax: 2 });
      if (pulled.code !== 0) return { notRun: `${engine} cannot get the base image ${base}` };
      throw new Error(`${build.join(" ")} failed:\n${result.stdout}${result.stderr}`);
    }
    try {
      await useBinaryLock([engine, "run", "--rm", "--interactive", "--read-only", tag], {
        folder: context,
        env: { HOME: process.env["HOME"] },
      });
    } finally {
      await runTool([engine, "rmi", "--force", tag], { minutesMax: 2 });
    }
    return { used: `built and run by ${engine}: a lock was taken and given back` };
  });
}
