/** Makes the binary of one platform. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { executableFormat } from "./executable_format.ts";
import { checkMachSignature, signMach } from "./mach_signature.ts";
import { platformOfThisMachine, type ReleasePlatform } from "./platforms.ts";
import { ReleaseError, type ReleaseProject } from "./project.ts";
import { runToolOrThrow } from "./run_tool.ts";
import { runtimeExecutable } from "./runtime_executable.ts";

/** Writes the binary of the platform into a file. */
export async function compileBinary(
  project: ReleaseProject,
  platform: ReleasePlatform,
  outFile: string,
): Promise<void> {
  mkdirSync(dirname(outFile), { recursive: true });
  const here = platform.name === platformOfThisMachine()?.name;
  const runtime = here ? process.execPath : await runtimeExecutable(project.root, platform);
  const script = '. scripts/compile.sh && compile_baton "$1" "$2" "" "$3"';
  const env = { SOURCE_DATE_EPOCH: String(project.epoch) };
  await runToolOrThrow(["sh", "-c", script, "sh", outFile, platform.target, runtime], { cwd: project.root, env });
  const binary = readFileSync(outFile);
  const { os, cpu, loader } = executableFormat(binary);
  const musl = loader?.includes("musl") ?? false;
  if (os !== platform.os || cpu !== platform.cpu || musl !== (platform.libc === "musl")) {
    throw new ReleaseError(70, `${outFile} was compiled for ${os} ${cpu} (${loader}), not for ${platform.name}`);
  }
  if (os === "darwin") sign(binary, outFile);
}

/** Replaces an invalid signature, because macOS kills a program that has one. */
function sign(binary: Uint8Array, outFile: string): void {
  try {
    checkMachSignature(binary);
  } catch {
    const signed = signMach(binary, "baton");
    checkMachSignature(signed);
    writeFileSync(outFile, signed);
  }
}
