/**
 * What a program has done to its files and not synced, from the journal of storage_faults.c, and the loss of it: as
 * after a power failure each write and each name may be there or not. A file's content is durable by its own sync, a
 * name by the folder's; of what a folder's names went through an end is lost, never a middle.
 */
import {
  closeSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";

/** As in storage_faults.c. */
const kinds = ["", "write", "truncate", "sync", "syncFailed", "create", "rename", "unlink", "mkdir", "rmdir"] as const;
const headerBytes = 72;
/** What a disk writes as a whole. */
const sectorBytes = 512;

interface Entry {
  readonly kind: typeof kinds[number];
  readonly sequence: number;
  /** Of the file that is written, truncated, synced. */
  readonly inode: bigint;
  /** Of the folder whose names change. */
  readonly folder: bigint;
  readonly offset: number;
  readonly length: number;
  readonly oldSize: number;
  readonly old: Uint8Array;
  readonly path: string;
  /** A rename's target and what was there, an unlinked file under another name. */
  readonly other: string;
}

/** What was lost, for a failure's message. */
export interface Lost {
  readonly writes: number;
  readonly torn: number;
  readonly names: number;
}

/**
 * Undoes what `random`, numbers from 0 to 1, takes of what the journal has and no sync has made durable; all of it when
 * they are 1. Nobody may use the files.
 */
export function loseUnsynced(journal: string, under: string, random: () => number): Lost {
  const entries = readEntries(journal);
  const paths = inodesUnder([under, join(dirname(journal), "trash")]);
  const lost = { writes: 0, torn: 0, names: 0 };
  const contents = Map.groupBy(entries.filter(({ kind }) => kind === "write" || kind === "truncate"), byInode);
  const syncs = Map.groupBy(entries.filter(({ kind }) => kind === "sync" || kind === "syncFailed"), byInode);
  for (const [inode, changes] of contents) {
    const path = paths.get(inode);
    if (path !== undefined) loseContent(path, changes, syncs.get(inode) ?? [], random, lost);
  }
  const isName = ({ kind }: Entry) => ["create", "rename", "unlink", "mkdir", "rmdir"].includes(kind);
  const names = Map.groupBy(entries.filter(isName), ({ folder }) => folder);
  const undone: Entry[] = [];
  for (const [folder, changes] of names) {
    const synced = Math.max(-1, ...(syncs.get(folder) ?? []).filter(isGood).map(({ sequence }) => sequence));
    const pending = changes.filter(({ sequence }) => sequence > synced);
    undone.push(...pending.slice(Math.floor((1 - random()) * (pending.length + 1))));
  }
  for (const entry of undone.sort((a, b) => b.sequence - a.sequence)) undoName(entry);
  return { ...lost, names: undone.length };
}

const byInode = ({ inode }: Entry) => inode;
const isGood = ({ kind }: Entry) => kind === "sync";

function loseContent(
  path: string,
  changes: Entry[],
  syncs: Entry[],
  random: () => number,
  lost: { writes: number; torn: number },
) {
  // Linux takes what a failed sync has not written for written: no later sync writes it.
  const isDurable = ({ sequence }: Entry) => syncs.find((sync) => sync.sequence > sequence)?.kind === "sync";
  const first = changes.findIndex((change) => !isDurable(change));
  if (first < 0) return;
  const file = openSync(path, "r+");
  try {
    const again: (() => void)[] = [];
    for (const change of changes.slice(first).reverse()) {
      const isKept = isDurable(change) || random() < 0.5;
      const isTorn = !isKept && change.kind === "write" && change.length > sectorBytes && random() < 0.5;
      const bytes = isKept || isTorn ? contentOf(file, change) : new Uint8Array(0);
      if (!isKept) lost.writes++;
      if (isTorn) lost.torn++;
      if (isTorn) again.push(() => writePart(file, change.offset, bytes, random));
      if (isKept) again.push(() => doAgain(file, change, bytes));
      undoContent(file, change);
    }
    for (const work of again.reverse()) work();
  } finally {
    closeSync(file);
  }
}

/** What the change has written: everything behind it is undone. */
function contentOf(file: number, { kind, offset, length }: Entry): Uint8Array {
  if (kind === "truncate") return new Uint8Array(0);
  const bytes = new Uint8Array(length);
  return bytes.subarray(0, readSync(file, bytes, 0, length, offset));
}

function undoContent(file: number, { offset, old, oldSize }: Entry): void {
  ftruncateSync(file, oldSize);
  if (old.byteLength > 0) writeAll(file, old, offset);
}

function doAgain(file: number, { kind, offset }: Entry, bytes: Uint8Array): void {
  if (kind === "truncate") ftruncateSync(file, offset);
  else writeAll(file, bytes, offset);
}

/** Some sectors from the beginning, or some up to the end. */
function writePart(file: number, offset: number, bytes: Uint8Array, random: () => number): void {
  const cut = (1 + Math.floor(random() * (Math.ceil(bytes.byteLength / sectorBytes) - 1))) * sectorBytes;
  if (random() < 0.5) writeAll(file, bytes.subarray(0, cut), offset);
  else writeAll(file, bytes.subarray(cut), offset + cut);
}

function writeAll(file: number, bytes: Uint8Array, offset: number): void {
  for (let at = 0; at < bytes.byteLength;) at += writeSync(file, bytes, at, bytes.byteLength - at, offset + at);
}

function undoName({ kind, path, other }: Entry): void {
  try {
    if (kind === "create") rmSync(path);
    else if (kind === "unlink") linkSync(other, path);
    else if (kind === "mkdir") rmSync(path, { recursive: true });
    else if (kind === "rmdir") mkdirSync(path);
    else {
      const [to = "", aside = ""] = other.split("\n");
      renameSync(to, path);
      if (aside !== "") linkSync(aside, to);
    }
  } catch (thrown) {
    // In a folder that is lost as well, or taken away by somebody who is not watched.
    if (!["ENOENT", "EEXIST"].includes((thrown as NodeJS.ErrnoException).code ?? "")) throw thrown;
  }
}

function readEntries(journal: string): Entry[] {
  const bytes = readFileSync(journal);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const decoder = new TextDecoder();
  const entries: Entry[] = [];
  for (let at = 0; at + headerBytes <= bytes.byteLength;) {
    const number = (place: number) => Number(view.getBigUint64(at + place * 8, true));
    const pathBytes = view.getUint32(at + 64, true);
    const otherBytes = view.getUint32(at + 68, true);
    const pathAt = at + headerBytes;
    const otherAt = pathAt + pathBytes;
    const oldAt = otherAt + otherBytes;
    const end = oldAt + number(7);
    if (end > bytes.byteLength) break; // killed while it was written, and so before what it is about
    entries.push({
      kind: kinds[number(0)] ?? "",
      sequence: number(1),
      inode: view.getBigUint64(at + 16, true),
      folder: view.getBigUint64(at + 24, true),
      offset: number(4),
      length: number(5),
      oldSize: number(6),
      old: bytes.subarray(oldAt, end),
      path: decoder.decode(bytes.subarray(pathAt, otherAt)),
      other: decoder.decode(bytes.subarray(otherAt, oldAt)),
    });
    at = end;
  }
  return entries.sort((a, b) => a.sequence - b.sequence);
}

/** Where each file is; under several names under any. */
function inodesUnder(folders: readonly string[]): Map<bigint, string> {
  const paths = new Map<bigint, string>();
  for (const folder of folders) {
    for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
      const path = join(folder, name);
      const status = lstatSync(path, { bigint: true });
      if (status.isFile()) paths.set(status.ino, path);
    }
  }
  return paths;
}
