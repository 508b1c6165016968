/** Reads from a binary's first bytes for which machine it is, since this machine cannot run every platform's binary. */

export interface ExecutableFormat {
  readonly os: "linux" | "darwin";
  readonly cpu: "x64" | "arm64";
  /** The program that loads it, as in /lib64/ld-linux-x86-64.so.2; null on macOS. */
  readonly loader: string | null;
}

const elfMachines: Record<number, ExecutableFormat["cpu"]> = { 62: "x64", 183: "arm64" };
const machCpuTypes: Record<number, ExecutableFormat["cpu"]> = { 0x0100_0007: "x64", 0x0100_000c: "arm64" };
const machMagic64 = 0xfeed_facf;
const programInterpreter = 3;

/** Returns the format. Throws if it is no 64-bit executable of a released platform. */
export function executableFormat(bytes: Uint8Array): ExecutableFormat {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0) === 0x7f45_4c46 && bytes[4] === 2) return elfFormat(bytes, view);
  if (view.getUint32(0, true) === machMagic64) return machFormat(view);
  throw new Error("the file is not an executable of Linux or macOS for a 64-bit processor");
}

function elfFormat(bytes: Uint8Array, view: DataView): ExecutableFormat {
  const cpu = elfMachines[view.getUint16(18, true)];
  if (cpu === undefined) throw new Error(`the ELF file is for machine ${view.getUint16(18, true)}`);
  const headers = Number(view.getBigUint64(32, true));
  const size = view.getUint16(54, true);
  const count = view.getUint16(56, true);
  for (let index = 0; index < count; index++) {
    const at = headers + index * size;
    if (view.getUint32(at, true) !== programInterpreter) continue;
    const start = Number(view.getBigUint64(at + 8, true));
    const length = Number(view.getBigUint64(at + 32, true));
    return { os: "linux", cpu, loader: Buffer.from(bytes.subarray(start, start + length - 1)).toString("latin1") };
  }
  throw new Error("the ELF file names no loader");
}

function machFormat(view: DataView): ExecutableFormat {
  const cpu = machCpuTypes[view.getUint32(4, true)];
  if (cpu === undefined) throw new Error(`the Mach-O file is for processor ${view.getUint32(4, true)}`);
  return { os: "darwin", cpu, loader: null };
}
