/**
 * The messages of an input that still have to be put. After a rotation there are two parts: the rest of the old file,
 * and the new file.
 */
import { BatonError } from "../../src/base/errors.ts";
import { shellQuoteIfNeeded } from "../../src/base/support/shell_quote.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import type { ClientState, PutFileMark, PutInputProgress } from "../../src/pubsub/client/client_state.ts";
import {
  emptyInputDigest,
  PutFilesCheckpoint,
  type PutInputCheckpoint,
  PutSequenceCheckpoint,
} from "../../src/pubsub/client/input_checkpoints.ts";
import { type ClientPutInput, type MessageSequence, readUnsentFiles, splitInputName } from "./put_input.ts";
import {
  compareResumedFile,
  decideReplacedFile,
  findOldFile,
  type OldFile,
  readUnsentMessages,
  type ReplacedFileDecision,
  ResumedFile,
} from "./resumed_file.ts";

export interface UnsentPart {
  /** Records how far the input was put; null for a stream. */
  readonly notes: PutInputCheckpoint | null;
  readonly chunks: AsyncIterable<readonly Uint8Array[]>;
  /** How many messages of this part earlier calls have put. */
  readonly earlier: number;
  /** Called when the whole part, which had `count` messages, was put. Returns true if another part follows. */
  readonly finish: (count: number) => boolean;
}

export interface UnsentPartContext {
  readonly state: ClientState;
  readonly topic: string;
  readonly resume: boolean;
  /** The start of a command line that puts messages, without input and options. */
  readonly command: string;
  /** Tells the user one sentence. */
  readonly tell: (sentence: string) => void;
  /** Called with messages that earlier calls have put. */
  readonly onSkipped: (messages: number, bytes: number) => void;
}

type FileInput = MessageSequence & { readonly file: NonNullable<MessageSequence["file"]> };

/** Opens the next part of the input. `files` keeps the opened files. Throws BAD_DATA if it is unclear what was put. */
export async function openUnsentPart(
  input: ClientPutInput,
  context: UnsentPartContext,
  files: AsyncDisposableStack,
): Promise<UnsentPart> {
  const { state, topic, resume, onSkipped } = context;
  if (input.kind === "files") {
    const taken = (name: string) => resume ? state.inputPosition(topic, name) : null;
    const notes = new PutFilesCheckpoint(state, topic);
    return { notes, chunks: readUnsentFiles(input, notes, { taken, onSkipped }), earlier: 0, finish: () => false };
  }
  const { file, name } = input;
  const begin = { name, taken: 0, digest: emptyInputDigest };
  if (file !== null) {
    const found = files.use(await ResumedFile.open(file.path, file.separator));
    if (resume) return await openResumedPart({ ...input, file }, found, context, files);
    const starts: string[] = [];
    const notes = new PutSequenceCheckpoint(state, topic, { ...begin, file: { ...markOf(found), starts } });
    const chunks = withLastLine(await readUnsentMessages(found, begin, { starts }), found);
    return { notes, chunks, earlier: 0, finish: () => false };
  }
  if (input.isStream) return { notes: null, chunks: input.read(), earlier: 0, finish: () => false };
  const place = (resume ? state.inputPosition(topic, name) : null) ?? begin;
  const chunks = await readUnsentMessages({ messages: () => input.read(), unfinished: null }, place, { onSkipped });
  if (chunks === null) {
    throw new BatonError("BAD_DATA", `Cannot go on with ${changedInput(input, place)}; without --resume all are put`);
  }
  const notes = new PutSequenceCheckpoint(state, topic, place);
  return { notes, chunks, earlier: place.taken, finish: () => false };
}

/** Adds the bytes after the last newline as a message, for a call without --resume. */
async function* withLastLine(
  chunks: AsyncIterable<readonly Uint8Array[]> | null,
  file: ResumedFile,
): AsyncGenerator<readonly Uint8Array[], void, void> {
  if (chunks !== null) yield* chunks;
  if (file.unfinished !== null) yield [file.unfinished];
}

async function openResumedPart(
  input: FileInput,
  file: ResumedFile,
  context: UnsentPartContext,
  files: AsyncDisposableStack,
): Promise<UnsentPart> {
  const { state, topic } = context;
  const place = state.inputPosition(topic, input.name) ?? { name: input.name, taken: 0, digest: emptyInputDigest };
  const starts: string[] = [];
  const chunks = await readUnsentMessages(file, place, { starts, onSkipped: context.onSkipped });
  // A file that was seen empty has new messages only, even if they are the same as the old ones.
  const continues = chunks !== null && place.file?.emptyIno !== file.ino;
  const old = continues && place.file?.ino === file.ino ? null : await findOldFile(file, input.file.separator, place);
  // Programs that copy a file often replace its name, so another inode alone does not mean another file.
  if (continues && !(old?.isRenamed ?? false)) {
    return partOf(file, chunks, { ...place, file: { ...markOf(file), starts } }, context);
  }
  const decision = decideReplacedFile(place, await compareResumedFile(file, place), old);
  if (decision === "unclear") throw unclearInputError(input, place, context);
  if (old !== null) return await openOldFile({ old, file, decision, place, input, context, files });
  if (decision === "no messages yet") return partOf(file, nothing(), place, context);
  const { taken } = place;
  const rest = `${tail(`+${taken + 1}`, input.file.separator)} OLD-FILE | ${putStdinCommand(input, context)}`;
  const were = `${countWithNoun(taken, "message")} of it ${taken === 1 ? "was" : "were"} put`;
  context.tell(`${file.path} is a new file; the old one is not in its folder, ${were}; to put its rest: ${rest}`);
  replaceFile(input, file, context);
  return await openResumedPart(input, file, context, files);
}

/** Opens the rest of the old file. Its position keeps the name of the input until the whole old file was put. */
async function openOldFile({ old, file, decision, place, input, context, files }: {
  readonly old: OldFile;
  /** The new file. */
  readonly file: ResumedFile;
  readonly decision: ReplacedFileDecision;
  readonly place: PutInputProgress;
  readonly input: FileInput;
  readonly context: UnsentPartContext;
  readonly files: AsyncDisposableStack;
}): Promise<UnsentPart> {
  const { state, topic, onSkipped, tell } = context;
  const { separator } = input.file;
  const oldFile = files.use(await ResumedFile.open(old.path, separator));
  const chunks = await readUnsentMessages(oldFile, place, { onSkipped });
  if (chunks === null || place.file === undefined) throw unclearInputError(input, place, context);
  const isEmpty = decision === "no messages yet" && file.isEmpty;
  const part = partOf(
    oldFile,
    chunks,
    { ...place, file: isEmpty ? { ...place.file, emptyIno: file.ino } : place.file },
    context,
  );
  // The program may write to the old file until it has opened the new one.
  if (decision === "no messages yet") return part;
  const finish = (count: number) => {
    const left = count === 0
      ? "and all of it was put"
      : `and the rest of it was put first: ${countWithNoun(count, "message")}`;
    tell(`${file.path} is a new file; the old one is ${old.path}, ${left}`);
    const stdin = putStdinCommand(input, context);
    if (oldFile.unfinished !== null) {
      const last = `${tail(1, separator)} ${shellQuoteIfNeeded(old.path)} | ${stdin}`;
      tell(`the last line of ${old.path} has no newline, and was not put; to put it as it is: ${last}`);
    }
    for (const path of old.newer) {
      tell(`${path} is newer than ${old.path}; if it was never put: ${stdin} <${shellQuoteIfNeeded(path)}`);
    }
    const progress = state.inputPosition(topic, input.name) ?? place;
    replaceFile(input, file, context, { ...progress, name: splitInputName(old.path, separator) });
    return true;
  };
  return { ...part, finish };
}

/** Makes later calls begin at the start of the new file. `old` is the position in the old file, under its new name. */
function replaceFile(
  { name }: FileInput,
  file: ResumedFile,
  { state, topic }: UnsentPartContext,
  old: PutInputProgress | null = null,
): void {
  state.runTransaction(() => {
    if (old !== null) state.setInput(topic, old);
    state.setInput(topic, { name, taken: 0, digest: emptyInputDigest, file: { ...markOf(file), starts: [] } });
  });
}

function partOf(
  file: ResumedFile,
  chunks: AsyncIterable<readonly Uint8Array[]>,
  begin: PutInputProgress,
  { state, topic, tell }: UnsentPartContext,
): UnsentPart {
  const finish = () => {
    if (file.unfinished !== null) {
      tell(`the last line of ${file.path} has no newline yet; --resume puts it when it has one`);
    }
    return false;
  };
  return { notes: new PutSequenceCheckpoint(state, topic, begin), chunks, earlier: begin.taken, finish };
}

async function* nothing(): AsyncGenerator<never, void, void> {}

/** Returns what later calls need to recognize the file. */
function markOf({ ino, modifiedMs }: ResumedFile): Pick<PutFileMark, "ino" | "modifiedMs"> {
  return { ino, modifiedMs };
}

function tail(messages: number | string, separator: number): string {
  return `tail ${separator === 0 ? "-z " : ""}-n ${messages}`;
}

function putStdinCommand({ file: { separator } }: FileInput, { command }: UnsentPartContext): string {
  return `${command} --${separator === 0 ? "null" : "lines"} -`;
}

function unclearInputError(input: FileInput, place: PutInputProgress, context: UnsentPartContext): BatonError {
  const path = shellQuoteIfNeeded(input.file.path);
  const old = shellQuoteIfNeeded(`${input.file.path}.changed`);
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
