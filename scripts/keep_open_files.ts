/**
 * Takes from a compiled binary that it raises its soft limit of open files at its start: Bun does, and keeps no note of the limit that its
 * parent has set, so that no command could get it. Bun calls setrlimit(2) for nothing else. Its import becomes getrlimit(2),
 * which has the same arguments and changes nothing. For ELF files; others are left as they are.
 * Usage: bun scripts/keep_open_files.ts FILE
 */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import process from "node:process";

const [file = ""] = process.argv.slice(2);
const bytes = readFileSync(file);
if (bytes.subarray(0, 4).equals(Buffer.from("\x7fELF", "latin1"))) {
  const at = nameOfImport(bytes, "setrlimit");
  const fd = openSync(file, "r+");
  writeSync(fd, Buffer.from("getrlimit", "latin1"), 0, "getrlimit".length, at);
  closeSync(fd);
}

/** The place of an imported function's name in the file. Throws if the file does not import it under this name. */
function nameOfImport(elf: Buffer, name: string): number {
  const sections = Number(elf.readBigUInt64LE(40));
  const [size, count] = [elf.readUInt16LE(58), elf.readUInt16LE(60)];
  const headers = Array.from({ length: count }, (_, index) => sections + index * size);
  const dynamicSymbols = 11;
  const table = headers.find((header) => elf.readUInt32LE(header + 4) === dynamicSymbols);
  const strings = table === undefined ? undefined : headers[elf.readUInt32LE(table + 40)];
  if (table === undefined || strings === undefined) throw new Error(`${file} imports no functions`);
  const [start, length] = [Number(elf.readBigUInt64LE(table + 24)), Number(elf.readBigUInt64LE(table + 32))];
  for (let symbol = start; symbol < start + length; symbol += 24) {
    const at = Number(elf.readBigUInt64LE(strings + 24)) + elf.readUInt32LE(symbol);
    if (elf.toString("latin1", at, at + name.length + 1) === `${name}\0`) return at;
  }
  throw new Error(`${file} does not import ${name}: find out how this release of Bun raises the limit of open files`);
}
