/**
 * Takes from a compiled binary what the runtime does before the first line of baton, and no option of Bun turns off.
 * For ELF files; others are left as they are.
 *
 *   the limit of open files   Bun raises the soft limit, and keeps no note of the one that its parent has set, so
 *                             that no command could get it. Bun calls setrlimit(2) for nothing else. Its import
 *                             becomes getrlimit(2), which has the same arguments and changes nothing.
 *   variables                 BUN_OPTIONS, BUN_INSPECT, NODE_CHANNEL_FD and the like. Their names get a small first
 *                             letter.
 *
 * Usage: bun scripts/runtime_patch.ts FILE
 */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import process from "node:process";

interface Section {
  readonly type: number;
  readonly flags: number;
  readonly start: number;
  readonly length: number;
  readonly link: number;
}

/** elf(5): SHT_DYNSYM; SHF_ALLOC | SHF_STRINGS: texts that the program reads. */
const dynamicSymbols = 11;
const strings = 0x22;

const [file = ""] = process.argv.slice(2);
const elf = readFileSync(file);
if (elf.subarray(0, 4).equals(Buffer.from("\x7fELF", "latin1"))) {
  const sections = readSections();
  const changes = [{ at: nameOfImport("setrlimit", sections), text: "getrlimit" }, ...variableNames(sections)];
  const fd = openSync(file, "r+");
  for (const { at, text } of changes) writeSync(fd, Buffer.from(text, "latin1"), 0, text.length, at);
  closeSync(fd);
}

function readSections(): Section[] {
  const start = Number(elf.readBigUInt64LE(40));
  const size = elf.readUInt16LE(58);
  const count = elf.readUInt16LE(60);
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * size;
    return {
      type: elf.readUInt32LE(at + 4),
      flags: Number(elf.readBigUInt64LE(at + 8)),
      start: Number(elf.readBigUInt64LE(at + 24)),
      length: Number(elf.readBigUInt64LE(at + 32)),
      link: elf.readUInt32LE(at + 40),
    };
  });
}

/** Returns the offset of an imported function's name in the file. Throws if the file does not import it. */
function nameOfImport(name: string, sections: readonly Section[]): number {
  const table = sections.find(({ type }) => type === dynamicSymbols);
  const names = table === undefined ? undefined : sections[table.link];
  if (table === undefined || names === undefined) throw new Error(`${file} imports no functions`);
  for (let symbol = table.start; symbol < table.start + table.length; symbol += 24) {
    const at = names.start + elf.readUInt32LE(symbol);
    if (elf.toString("latin1", at, at + name.length + 1) === `${name}\0`) return at;
  }
  throw new Error(`${file} does not import ${name}: find out how this release of Bun raises the limit of open files`);
}

/** Returns the names of variables that native code reads, with their new text. Throws if the known ones are missing. */
function variableNames(sections: readonly Section[]): { at: number; text: string }[] {
  const found = sections.filter(({ flags }) => (flags & strings) === strings).flatMap(({ start, length }) => {
    const text = elf.toString("latin1", start, start + length);
    return [...text.matchAll(/(?<=\0)(BUN|NODE)_[A-Z0-9_]+(?=\0)/g)].map(({ index, 0: name }) => ({
      at: start + index,
      text: name[0]?.toLowerCase() + name.slice(1),
    }));
  });
  for (const known of ["bUN_OPTIONS", "bUN_BE_BUN", "bUN_INSPECT", "nODE_CHANNEL_FD"]) {
    if (!found.some(({ text }) => text === known)) {
      throw new Error(`${file} has no ${known.toUpperCase()}: find out how this release of Bun reads its variables`);
    }
  }
  return found;
}
