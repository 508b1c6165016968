/**
 * Gets the Bun executables from which binaries for other platforms are made: from npm, checked against
 * package-lock.json, and cached.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { ReleasePlatform } from "./platforms.ts";
import { ReleaseError } from "./project.ts";
import { runToolOrThrow } from "./run_tool.ts";

/** Returns the cache for tools and runtimes, which all clones of this user share. */
export function releaseCache(): string {
  const base = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return join(base, "baton-release");
}

/** Returns the version and the checksum that package-lock.json pins. */
function pinned(root: string, name: string): { version: string; integrity: string } {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, { version?: string; integrity?: string }>;
  };
  const { version, integrity } = lock.packages[`node_modules/${name}`] ?? {};
  if (version === undefined || integrity === undefined) {
    throw new ReleaseError(78, `package-lock.json has no checksum of ${name}`);
  }
  return { version, integrity };
}

/** Returns the path of the platform's Bun executable. Downloads it with npm if it is not in the cache. */
export async function runtimeExecutable(root: string, platform: ReleasePlatform): Promise<string> {
  const name = platform.runtimePackage;
  const { version, integrity } = pinned(root, name);
  const folder = join(releaseCache(), `${name.replace("@oven/", "")}-${version}`);
  const executable = join(folder, "package/bin/bun");
  if (existsSync(executable)) return executable;
  const next = `${folder}.${process.pid}`;
  mkdirSync(next, { recursive: true });
  try {
    const packed = await runToolOrThrow(
      ["npm", "pack", "--silent", "--pack-destination", next, `${name}@${version}`],
      { cwd: next, minutesMax: 10 },
    );
    const archive = join(next, packed.trim().split("\n").at(-1) ?? "");
    const found = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
    if (found !== integrity) {
      throw new ReleaseError(
        65,
        `${name}@${version} from npm has the checksum ${found}; package-lock.json has ${integrity}`,
      );
    }
    await runToolOrThrow(["tar", "-xzf", archive, "-C", next]);
    rmSync(archive);
    if (!existsSync(folder)) renameSync(next, folder);
    return executable;
  } finally {
    rmSync(next, { recursive: true, force: true });
  }
}
