/** The platforms for which baton is released. */
import { closeSync, openSync, readSync } from "node:fs";
import process from "node:process";
import { executableFormat } from "./executable_format.ts";

export interface ReleasePlatform {
  /** The name in file names and npm packages, as in "linux-x64-musl". */
  readonly name: string;
  readonly os: "linux" | "darwin";
  readonly cpu: "x64" | "arm64";
  /** The C library of Linux; null on macOS. */
  readonly libc: "glibc" | "musl" | null;
  /** The npm package with the Bun executable from which the binary is made. */
  readonly runtimePackage: string;
  /** Bun's name of the platform, for `bun build --compile --target`. */
  readonly target: string;
}

export const releasePlatforms: readonly ReleasePlatform[] = [
  platform("linux", "x64", "glibc"),
  platform("linux", "arm64", "glibc"),
  platform("linux", "x64", "musl"),
  platform("linux", "arm64", "musl"),
  platform("darwin", "x64", null),
  platform("darwin", "arm64", null),
];

function platform(
  os: ReleasePlatform["os"],
  cpu: ReleasePlatform["cpu"],
  libc: ReleasePlatform["libc"],
): ReleasePlatform {
  const musl = libc === "musl" ? "-musl" : "";
  return {
    name: `${os}-${cpu}${musl}`,
    os,
    cpu,
    libc,
    runtimePackage: `@oven/bun-${os}-${cpu === "arm64" ? "aarch64" : "x64"}${musl}`,
    target: `bun-${os}-${cpu}${musl}`,
  };
}

/** Returns the platform of this machine's Bun and `dist/baton`; null if baton is not released for this machine. */
export function platformOfThisMachine(): ReleasePlatform | null {
  const { os, cpu, loader } = executableFormat(readStart(process.execPath));
  const musl = loader?.includes("musl") ?? false;
  return releasePlatforms.find((each) => each.os === os && each.cpu === cpu && (each.libc === "musl") === musl) ?? null;
}

/** Returns the part of an executable's format that names its machine. */
function readStart(path: string): Uint8Array {
  const file = openSync(path, "r");
  try {
    const start = Buffer.alloc(65_536);
    return start.subarray(0, readSync(file, start));
  } finally {
    closeSync(file);
  }
}
