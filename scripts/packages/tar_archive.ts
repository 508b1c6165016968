/**
 * Makes archives whose bytes depend only on their files: sorted, owned by root, all with one time. The format is ustar,
 * which every tar reads.
 */
import { promisify } from "node:util";
import { gzip } from "node:zlib";

export interface PackedFile {
  /** The path in the archive, without a leading slash. */
  readonly path: string;
  readonly content: Uint8Array;
  readonly executable?: true;
}

const blockBytes = 512;
const namePartBytes = 100;

/** Returns a .tar.gz of the files, below a folder. */
export async function tarGzArchive(folder: string, files: readonly PackedFile[], epoch: number): Promise<Uint8Array> {
  return await gzipReproducibly(tarArchive(files.map((file) => ({ ...file, path: `${folder}/${file.path}` })), epoch));
}

/** The gzip header has no name and no time. */
export function gzipReproducibly(bytes: Uint8Array, level = 6): Promise<Uint8Array> {
  return promisify(gzip)(bytes, { level });
}

export function tarArchive(files: readonly PackedFile[], epoch: number): Uint8Array {
  const sorted = files.toSorted((a, b) => a.path < b.path ? -1 : 1);
  const folders = new Set(sorted.flatMap(({ path }) => foldersOf(path)));
  const parts: Uint8Array[] = [...folders].sort().map((path) =>
    header({ path: `${path}/`, mode: 0o755, size: 0, epoch })
  );
  for (const { path, content, executable } of sorted) {
    parts.push(header({ path, mode: executable ? 0o755 : 0o644, size: content.length, epoch }), content);
    parts.push(new Uint8Array(-content.length & (blockBytes - 1)));
  }
  parts.push(new Uint8Array(2 * blockBytes));
  return Buffer.concat(parts);
}

function foldersOf(path: string): string[] {
  const names = path.split("/").slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join("/"));
}

function header(entry: { path: string; mode: number; size: number; epoch: number }): Uint8Array {
  const block = Buffer.alloc(blockBytes);
  const octal = (value: number, at: number, digits: number) =>
    block.write(`${value.toString(8).padStart(digits, "0")}\0`, at, "latin1");
  if (Buffer.byteLength(entry.path) > namePartBytes) throw new Error(`the path is too long for ustar: ${entry.path}`);
  block.write(entry.path, 0);
  octal(entry.mode, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(entry.size, 124, 11);
  octal(entry.epoch, 136, 11);
  block.write(entry.path.endsWith("/") ? "5" : "0", 156);
  block.write("ustar\x0000", 257, "latin1");
  block.write("root", 265);
  block.write("root", 297);
  octal(0, 329, 7);
  octal(0, 337, 7);
  block.fill(" ", 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}
