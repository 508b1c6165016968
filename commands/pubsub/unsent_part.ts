/**
 * The messages of an input that still have to be put. After a rotation there are two parts: the rest of the old file,
 * and the new file.
 */
import { statSync } from "node:fs";
import { BatonError } from "../../src/base/errors.ts";
import { shellQuoteIfNeeded } from "../../src/base/support/shell_quote.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import type {
  ClientState,
  EarlierFile,
  PutFileMark,
  PutInputProgress,
  PutOldFile,
} from "../../src/pubsub/client/client_state.ts";
import {
  emptyInputDigest,
  PutFilesCheckpoint,
  type PutInputCheckpoint,
  PutSequenceCheckpoint,
} from "../../src/pubsub/client/input_checkpoints.ts";
import { type ClientPutInput, type MessageSequence, readUnsentFiles, splitInputName } from "./put_input.ts";
import {
  addEarlierFile,
  compareResumedFile,
  decideReplacedFile,
  decompressor,
  findRotatedFiles,
  isReadable,
  isUnchanged,
  listEarlierFiles,
  noRotatedFiles,
  type OldFile,
  readUnsentMessages,
  ResumedFile,
  type RotatedFile,
  type RotatedFiles,
} from "./resumed_file.ts";

export interface UnsentPart {
  /** Records how far the input was put; null for a stream. */
  readonly notes: PutInputCheckpoint | null;
  readonly chunks: AsyncIterable<readonly Uint8Array[]>;
  /** How many messages of this part earlier calls have put. */
  readonly earlier: number;
}

/** The next part is read after the whole part before it was put. It gets the number of messages of that part. */
export type UnsentParts = AsyncGenerator<UnsentPart, void, number>;

export interface UnsentPartContext {
  readonly state: ClientState;
  readonly topic: string;
  readonly resume: boolean;
  /** The start of a command line that puts messages, without input and options. */
  readonly command: string;
  /** Tells the user one sentence. */
  readonly tell: (sentence: string) => void;
  /** Tells the user which messages were not put, and will not be by later calls. */
  readonly warn: (sentence: string) => void;
  /** Called with messages that earlier calls have put. */
  readonly onSkipped: (messages: number, bytes: number) => void;
}

type FileInput = MessageSequence & { readonly file: NonNullable<MessageSequence["file"]> };

/** Opens the parts of the input. `files` keeps the opened files. Throws BAD_DATA if it is unclear what was put. */
export async function* readUnsentParts(
  input: ClientPutInput,
  context: UnsentPartContext,
  files: AsyncDisposableStack,
): UnsentParts {
  const { state, topic, resume, onSkipped } = context;
  if (input.kind === "files") {
    const taken = (name: string) => resume ? state.inputPosition(topic, name) : null;
    const notes = new PutFilesCheckpoint(state, topic);
    yield { notes, chunks: readUnsentFiles(input, notes, { taken, onSkipped }), earlier: 0 };
    return;
  }
  const { file, name } = input;
  if (file !== null && resume) return yield* readResumedParts({ ...input, file }, context, files);
  const begin = beginOf(name);
  if (file !== null) {
    const earlier = await listEarlierFiles(file.path);
    const found = files.use(await ResumedFile.open(file.path, file.separator));
    const starts: string[] = [];
    const notes = new PutSequenceCheckpoint(state, topic, { ...begin, file: { ...markOf(found), starts, earlier } });
    yield { notes, chunks: withLastLine(await readUnsentMessages(found, begin, { starts }), found), earlier: 0 };
    return;
  }
  if (input.isStream) {
    yield { notes: null, chunks: input.read(), earlier: 0 };
    return;
  }
  const place = (resume ? state.inputPosition(topic, name) : null) ?? begin;
  const chunks = await readUnsentMessages({ messages: () => input.read(), unfinished: null }, place, { onSkipped });
  if (chunks === null) {
    throw new BatonError("BAD_DATA", `Cannot go on with ${changedInput(input, place)}; without --resume all are put`);
  }
  yield { notes: new PutSequenceCheckpoint(state, topic, place), chunks, earlier: place.taken };
}

function beginOf(name: string): PutInputProgress {
  return { name, taken: 0, digest: emptyInputDigest };
}

/** Adds the bytes after the last newline as a message, for a call without --resume. */
async function* withLastLine(
  chunks: AsyncIterable<readonly Uint8Array[]> | null,
  file: ResumedFile,
): AsyncGenerator<readonly Uint8Array[], void, void> {
  if (chunks !== null) yield* chunks;
  if (file.unfinished !== null) yield [file.unfinished];
}

/**
 * Yields the late messages of the file before, the rest of the one of which messages were put, and then each file that
 * has replaced it, up to the newest.
 */
async function* readResumedParts(
  input: FileInput,
  context: UnsentPartContext,
  files: AsyncDisposableStack,
): UnsentParts {
  const { state, topic, onSkipped } = context;
  const { path, separator } = input.file;
  const earlier = await listEarlierFiles(path);
  const file = await ResumedFile.openIfPresent(path, separator);
  files.use(file);
  const watch: Watch = { file: null, known: new Set(), earlier };
  yield* readLateMessages(file?.ino ?? null, watch, input, context, files);
  for (let isRead = false; !isRead;) {
    const place = state.inputPosition(topic, input.name) ?? beginOf(input.name);
    const starts: string[] = [];
    const chunks = file && await readUnsentMessages(file, place, { starts, onSkipped });
    // A file that was seen empty has new messages only, even if they are the same as the old ones.
    const isSame = place.file === undefined || place.file.ino === file?.ino;
    const continues = chunks !== null && place.file?.emptyIno !== file?.ino && (isSame || place.taken > 0);
    const rotated = continues && isSame && place.taken > 0
      ? noRotatedFiles
      : await findRotatedFiles(input.file, file?.ino ?? null, place, watch);
    const { old } = rotated;
    const parts = { ...rotated, file, watch, place, input, context, files };
    // Programs that copy a file often replace its name, so another inode alone does not mean another file.
    if (file !== null && continues && !(old?.isRenamed ?? false)) {
      const mark = { ...markOf(file), starts, old: place.file?.old, earlier: watch.earlier };
      yield partOf(chunks, { ...place, file: mark }, context);
      tellOfUnfinishedLine(file, context);
      // A file that had no messages yet may have been copied and truncated.
      if (place.taken === 0) warnOfDoubtfulFiles(rotated.doubtful, watch, input, context);
      isRead = true;
    } else isRead = yield* old === null ? goOnWithoutOldFile(parts) : readOldFile({ ...parts, old });
  }
}

/** The file before the one of which messages were put, if this call found something in it, or ended in it. */
interface Watch {
  file: ResumedFile | null;
  /** The inodes of the old files that this call has read or named. */
  readonly known: Set<number>;
  /** The numbered files that are older than the file that has the name of the input now; undefined if unknown. */
  earlier: readonly EarlierFile[] | undefined;
}

/** Yields what a program has added to a file after another one had replaced it. */
async function* readLateMessages(
  ino: number | null,
  watch: Watch,
  input: FileInput,
  context: UnsentPartContext,
  files: AsyncDisposableStack,
): UnsentParts {
  const { state, topic, tell, warn } = context;
  const { path, separator } = input.file;
  const place = state.inputPosition(topic, input.name);
  const known = place?.file?.old;
  const late = known === undefined ? null : state.inputPosition(topic, known.name);
  if (place?.file === undefined || known === undefined || late?.file === undefined) return;
  const { file } = place;
  const keep = (old: PutOldFile | undefined) =>
    state.runTransaction(() => state.setInput(topic, { ...place, file: { ...file, old } }));
  const { old } = await findRotatedFiles(input.file, ino, late, known);
  if (old === null) {
    const say = known.quietSize === null ? warn : tell;
    say(
      `the file before ${path} is not in its folder, or was changed; ${wereTaken(late)}; ` +
        `to put what was added later: ${putRestCommand(late, input, context)}`,
    );
    return keep(undefined);
  }
  watch.known.add(old.ino);
  if (isUnchanged(old, late.file, known.quietSize)) return;
  const found = files.use(await ResumedFile.openRotated(old.path, separator));
  const chunks = await readUnsentMessages(found, late);
  if (chunks === null) return; // it was changed just now; the next call says so
  const count = yield partOf(chunks, { ...late, file: { ...late.file, ...markOf(found) } }, context);
  if (count > 0) {
    tell(`put ${countWithNoun(count, "message")} that ${count === 1 ? "was" : "were"} added to ${old.path} late`);
  }
  const isQuiet = count === 0 && found.unfinished === null;
  if (!isQuiet) watch.file = found;
  if (old.isRenamed) tellOfUnfinishedLine(found, context);
  else warnOfLastLine(found, input, context);
  keep(old.isRenamed ? { name: known.name, quietSize: isQuiet ? found.size : null } : undefined);
}

interface ReplacedFile extends RotatedFiles {
  /** The file that has the name of the input now. */
  readonly file: ResumedFile | null;
  readonly watch: Watch;
  readonly place: PutInputProgress;
  readonly input: FileInput;
  readonly context: UnsentPartContext;
  readonly files: AsyncDisposableStack;
}

/** Yields the rest of the old file, and returns true if that was the last part. Its position keeps the input's name. */
async function* readOldFile(
  { old, newer, doubtful, order, file, watch, place, input, context, files }: ReplacedFile & { readonly old: OldFile },
): AsyncGenerator<UnsentPart, boolean, number> {
  const { onSkipped, tell, warn } = context;
  const { path, separator } = input.file;
  let next: RotatedFile | null = newer.find(isReadable) ?? null;
  let emptyIno = {};
  if (next === null && file !== null) {
    const decision = decideReplacedFile(place, await compareResumedFile(file, place), old);
    if (decision === "unclear") throw unclearInputError(input, place, context);
    if (decision === "new") next = file;
    else if (file.size === 0) emptyIno = { emptyIno: file.ino };
  }
  const oldFile = files.use(await ResumedFile.openRotated(old.path, separator));
  const starts: string[] = [];
  const chunks = await readUnsentMessages(oldFile, place, { starts, onSkipped });
  if (chunks === null || place.file === undefined) throw unclearInputError(input, place, context);
  const count = yield partOf(chunks, { ...place, file: { ...place.file, starts, ...emptyIno } }, context);
  const rest = count > 0
    ? `, and the rest of it was put${next === null ? "" : " first"}: ${countWithNoun(count, "message")}`
    : oldFile.unfinished === null
    ? ", and all of it was put"
    : "";
  // The program may write to the old file until it has opened the new one.
  if (next === null) {
    if (file === null) tell(`${path} is not there yet; the old one is ${old.path}${rest}`);
    tellOfUnfinishedLine(oldFile, context);
    return true;
  }
  tell(`${next.path} is a new file; the old one is ${old.path}${rest}`);
  warnOfEndedWatch(watch, oldFile, input, context);
  if (old.isRenamed) tellOfUnfinishedLine(oldFile, context);
  else warnOfLastLine(oldFile, input, context);
  watch.file = old.isRenamed ? oldFile : null;
  watch.known.add(old.ino);
  for (const other of newer.slice(0, next === file ? newer.length : newer.indexOf(next))) {
    warn(`${other.path} is compressed, and was not put; to put it: ${putFileCommand(other.path, input, context)}`);
  }
  warnOfDoubtfulFiles(doubtful, watch, input, context);
  watch.earlier = addEarlierFile(watch.earlier, old);
  // A file after a rotated one may have been written before a late line in that one, but not before the old one.
  const mark = next === file ? { ...markOf(next), earlier: watch.earlier } : {
    ino: next.ino,
    modifiedMs: place.file.modifiedMs,
    earlier: addEarlierFile(place.file.earlier, old),
    order: order ?? undefined,
  };
  replaceFile(input, mark, context, { file: oldFile, isWatched: old.isRenamed });
  return false;
}

/** Goes on with a new file although the old one is not there. Returns true if the new file has no messages yet. */
async function* goOnWithoutOldFile(
  { doubtful, file, watch, place, input, context }: ReplacedFile,
): AsyncGenerator<UnsentPart, boolean, number> {
  const { path } = input.file;
  if (file === null) {
    const isKnown = place.file !== undefined;
    const advice = isKnown
      ? `the old one is not in its folder; ${wereTaken(place)}`
      : "--resume continues a file that it has read";
    throw new BatonError("IO", `Cannot read ${path}: there is no such file; ${advice}`);
  }
  const decision = decideReplacedFile(place, await compareResumedFile(file, place), null);
  if (decision === "unclear") throw unclearInputError(input, place, context);
  if (decision === "no messages yet") {
    yield partOf(nothing(), place, context);
    tellOfUnfinishedLine(file, context);
    return true;
  }
  const say = file.size === 0 && wasMovedByUser(path, place) ? context.tell : context.warn;
  say(
    `${path} is a new file; the old one is not in its folder, ${wereTaken(place)}; to put its rest: ${
      putRestCommand(place, input, context)
    }`,
  );
  warnOfDoubtfulFiles(doubtful, watch, input, context);
  replaceFile(input, { ...markOf(file), earlier: watch.earlier }, context);
  return false;
}

/** Makes later calls begin at the start of the new file. The position in the old file gets its new name. */
function replaceFile(
  { name, file: { separator } }: FileInput,
  next: Omit<PutFileMark, "starts" | "old">,
  { state, topic }: UnsentPartContext,
  old: { readonly file: ResumedFile; readonly isWatched: boolean } | null = null,
): void {
  const place = state.inputPosition(topic, name) ?? beginOf(name);
  state.runTransaction(() => {
    let watched = place.file?.old;
    if (old !== null) {
      const oldName = splitInputName(old.file.path, separator);
      const starts = place.file?.starts ?? [];
      state.setInput(topic, { ...place, name: oldName, file: { ...markOf(old.file), starts } });
      watched = old.isWatched ? { name: oldName, quietSize: null } : undefined;
    }
    state.setInput(topic, { ...beginOf(name), file: { ...next, starts: [], old: watched } });
  });
}

function partOf(
  chunks: AsyncIterable<readonly Uint8Array[]>,
  begin: PutInputProgress,
  { state, topic }: UnsentPartContext,
): UnsentPart {
  return { notes: new PutSequenceCheckpoint(state, topic, begin), chunks, earlier: begin.taken };
}

function tellOfUnfinishedLine({ path, unfinished }: ResumedFile, { tell }: UnsentPartContext): void {
  if (unfinished !== null) tell(`the last line of ${path} has no newline yet; --resume puts it when it has one`);
}

/** Warns of a last line that no program will end, because the file is a copy or is no longer read. */
function warnOfLastLine({ path, unfinished }: ResumedFile, input: FileInput, context: UnsentPartContext): void {
  if (unfinished === null) return;
  const read = decompressor(path);
  const from = shellQuoteIfNeeded(path);
  const line = tail(1, input.file.separator);
  const last = `${read === null ? `${line} ${from}` : `${read} ${from} | ${line}`} | ${
    putStdinCommand(input, context)
  }`;
  context.warn(`the last line of ${path} has no newline, and was not put; to put it as it is: ${last}`);
}

/** Warns if the file before the old one may get more lines: only one old file is watched. */
function warnOfEndedWatch({ file }: Watch, old: ResumedFile, input: FileInput, context: UnsentPartContext): void {
  if (file === null) return;
  warnOfLastLine(file, input, context);
  if (file.unfinished !== null || file.modifiedMs <= old.modifiedMs) return;
  context.warn(`a program still adds lines to ${file.path}, which later calls do not read: let it open the new file`);
}

/** Warns once of each file of which it is unknown whether its messages were put. */
function warnOfDoubtfulFiles(
  files: readonly RotatedFile[],
  { known }: Watch,
  input: FileInput,
  context: UnsentPartContext,
): void {
  for (const { path, ino } of files) {
    const put = putFileCommand(path, input, context);
    context.warn(`${path} was written since the last call; if it was never put, to put it: ${put}`);
    known.add(ino);
  }
}

async function* nothing(): AsyncGenerator<never, void, void> {}

/** Returns what later calls need to recognize the file. */
function markOf({ ino, modifiedMs }: RotatedFile): Pick<PutFileMark, "ino" | "modifiedMs"> {
  return { ino, modifiedMs };
}

function tail(messages: number | string, separator: number): string {
  return `tail ${separator === 0 ? "-z " : ""}-n ${messages}`;
}

function putStdinCommand({ file: { separator } }: FileInput, { command }: UnsentPartContext): string {
  return `${command} --${separator === 0 ? "null" : "lines"} -`;
}

function wereTaken({ taken }: PutInputProgress): string {
  return `${countWithNoun(taken, "message")} of it ${taken === 1 ? "was" : "were"} put`;
}

/** Returns the command that puts the rest of a file whose name is unknown. */
function putRestCommand({ taken }: PutInputProgress, input: FileInput, context: UnsentPartContext): string {
  return `${tail(`+${taken + 1}`, input.file.separator)} OLD-FILE | ${putStdinCommand(input, context)}`;
}

/** Returns the command that puts a whole rotated file. */
function putFileCommand(path: string, input: FileInput, context: UnsentPartContext): string {
  const from = shellQuoteIfNeeded(path);
  const read = decompressor(path);
  const stdin = putStdinCommand(input, context);
  return read === null ? `${stdin} <${from}` : `${read} ${from} | ${stdin}`;
}

/** Where a file goes of which it is unclear what was put, according to the advice. */
function changedPath(path: string): string {
  return `${path}.changed`;
}

/** Returns true if the user followed that advice since the last call. */
function wasMovedByUser(path: string, { file: mark }: PutInputProgress): boolean {
  const moved = statSync(changedPath(path), { throwIfNoEntry: false });
  return moved !== undefined && mark !== undefined && moved.ctimeMs >= mark.modifiedMs;
}

function unclearInputError(input: FileInput, place: PutInputProgress, context: UnsentPartContext): BatonError {
  const path = shellQuoteIfNeeded(input.file.path);
  const old = shellQuoteIfNeeded(changedPath(input.file.path));
  return new BatonError(
    "BAD_DATA",
    `Cannot go on with ${changedInput(input, place)}, and it may contain messages that were. ` +
      `To go on with an empty file: mv ${path} ${old} && touch ${path}; ` +
      `then, to put the messages of ${old} from number N on: ${tail("+N", input.file.separator)} ${old} | ${
        putStdinCommand(input, context)
      }`,
  );
}

function changedInput({ name }: MessageSequence, { taken }: PutInputProgress): string {
  const first = taken === 1
    ? "its first message is not the one that was"
    : `its first ${taken} messages are not those that were`;
  return `${name}: ${first} put`;
}
