/** What is in a store, for people and for programs. Changes nothing. */
import { writeSync } from "node:fs";
import { ReaderGone } from "../../src/terminal/io.ts";
import { printTable } from "../../src/terminal/table.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import { messageStates } from "../../src/retry/queue/message_life.ts";
import { redactedHead, redactedText } from "../../src/retry/dead_letters/redaction.ts";
import { verifyStore } from "../../src/retry/queue/verify_retry_store.ts";
import { counted } from "../../src/support/text.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { RetryListJson, RetryShowJson, RetryStatsJson, RetryVerifyJson } from "../json_shapes/retry_shapes.ts";
import type { InspectCall, ListCall, ShowCall } from "./inspect.ts";
import { statesOf, whereOf } from "./message_filter.ts";
import { listHead, messageJson, messageRow } from "./message_json.ts";
import { OpenStore } from "./open_store.ts";
import { idleRules, placeOf, redactionFor } from "./retry_rules.ts";

// deno-lint-ignore require-await -- a command is asynchronous, these read a disk
export async function list(call: ListCall): Promise<ExitCode> {
  const { values, io } = call;
  refuseNames(call);
  const filter = { states: statesOf(values.state), ...whereOf(values.where) };
  const { name, store } = openToRead(call);
  using _ = store;
  const found = store.ask("list", filter, { afterSeq: 0, max: values.limit + 1 });
  const messages = found.slice(0, values.limit);
  const more = found.length > values.limit;
  const damages = store.ask("damages");
  if (damages > 0) {
    io.err(`baton: ${counted(damages, "damaged row")} left out: baton retry-processor verify names what is damaged\n`);
  }
  if (values.json) {
    const answer: RetryListJson = { version: 1, name, messages: messages.map((one) => messageJson(one, name)), more };
    io.out(`${JSON.stringify(answer)}\n`);
    return exitCodes.SUCCESS;
  }
  const nowMs = Date.now();
  if (messages.length > 0) printTable(io, [[...listHead], ...messages.map((one) => messageRow(one, nowMs))]);
  else if (!values.quiet) io.err(`baton: no such message is in "${name}"\n`);
  if (more && !values.quiet) io.err(`baton: there are more than ${values.limit}; --limit shows more\n`);
  return exitCodes.SUCCESS;
}

// deno-lint-ignore require-await -- as above
export async function show(call: ShowCall): Promise<ExitCode> {
  const { values, names: [id, more], io } = call;
  if (id === undefined || more !== undefined) throw new BatonError("USAGE", "show takes the id of one message");
  const { name, store } = openToRead(call);
  using _ = store;
  const message = store.ask("show", id);
  if (message === null) throw new BatonError("NOT_FOUND", `There is no message ${id} in "${name}"`);
  const { body } = message;
  const redaction = redactionFor(values, call.sources);
  const head = message.head && redactedHead(message.head, redaction);
  if (values.body) {
    if (body === undefined) {
      throw new BatonError("NOT_FOUND", `The message ${id} is ${message.state}, and its body is not kept any more`);
    }
    writeBytes(body);
    return exitCodes.SUCCESS;
  }
  const answer: RetryShowJson = {
    version: 1,
    ...messageJson({ ...message, error: redactedText(message.error, redaction) }, name),
    command: head?.kind === "command" && head.argv !== null ? [...head.argv] : null,
    cwd: head?.kind === "command" ? head.cwd : null,
    request: head?.kind === "http"
      ? { method: head.method, path: head.path, headers: head.headers.map((pair) => [...pair]) }
      : null,
    body: body === undefined ? null : Buffer.from(body).toString("base64"),
  };
  if (values.json) io.out(`${JSON.stringify(answer)}\n`);
  else {
    const { version: _, body: __, command, request, ...rest } = answer;
    const lines = { ...rest, command: command?.join(" "), request: request && `${request.method} ${request.path}` };
    const rows = Object.entries(lines).filter(([, value]) => value !== null && value !== undefined && value !== "");
    printTable(io, rows.map(([field, value]) => [field, String(value)]));
  }
  return exitCodes.SUCCESS;
}

// deno-lint-ignore require-await -- as above
export async function stats(call: InspectCall): Promise<ExitCode> {
  const { values, io } = call;
  refuseNames(call);
  const { name, folder, store } = openToRead(call);
  using _ = store;
  const totals = store.ask("totals");
  const paused = store.ask("isPaused");
  const { oldestMs, nextMs } = store.ask("outlook");
  const letters = store.ask("lettersOwed");
  const { usedBytes, freeBytes } = store.ask("disk");
  const instant = (atMs: number | null) => (atMs === null ? null : new Date(atMs).toISOString());
  const states = { ...totals };
  const answer: RetryStatsJson = {
    version: 1,
    name,
    folder,
    paused,
    states,
    oldest: instant(oldestMs),
    next: instant(nextMs),
    letters: { owed: letters.count, error: letters.trouble },
    disk: { usedBytes, freeBytes },
  };
  if (values.json) {
    io.out(`${JSON.stringify(answer)}\n`);
    return exitCodes.SUCCESS;
  }
  printTable(io, [
    ["STATE", "MESSAGES", "BYTES"],
    ...messageStates.map((state) => [state, String(totals[state].count), String(totals[state].bytes)]),
  ]);
  const nowMs = Date.now();
  if (oldestMs !== null) {
    io.out(`the oldest that waits was accepted ${formatDuration(Math.max(0, nowMs - oldestMs))} ago\n`);
  }
  if (nextMs !== null) {
    io.out(`the next try is ${nextMs <= nowMs ? "due" : `due in ${formatDuration(nextMs - nowMs)}`}\n`);
  }
  if (letters.count > 0) {
    const why = letters.trouble === null ? "" : `: ${letters.trouble}`;
    io.out(`${counted(letters.count, "dead letter is", "dead letters are")} still to be sent${why}\n`);
  }
  if (paused) io.out("paused: nothing is tried until baton retry-processor resume\n");
  return exitCodes.SUCCESS;
}

// deno-lint-ignore require-await -- as above
export async function verify(call: InspectCall): Promise<ExitCode> {
  const { values, sources, io } = call;
  refuseNames(call);
  const { folder } = placeOf(values, sources);
  const { messages, bytes, problems } = verifyStore(folder);
  const answer: RetryVerifyJson = { version: 1, folder, messages, bytes, problems: [...problems] };
  if (values.json) io.out(`${JSON.stringify(answer)}\n`);
  else if (problems.length === 0) {
    io.out(`${folder} is whole: ${counted(messages, "message")}, ${counted(bytes, "byte")}\n`);
  } else for (const problem of problems) io.out(`${problem}\n`);
  return problems.length === 0 ? exitCodes.SUCCESS : exitCodes.IO;
}

function openToRead({ values, sources }: InspectCall) {
  const place = placeOf(values, sources);
  return { ...place, store: new OpenStore(place.folder, idleRules, { mustExist: true }) };
}

function refuseNames({ names: [word] }: InspectCall): void {
  if (word !== undefined) throw new BatonError("USAGE", `"${word}" is too much; --name says which store`);
}

/** As they are, to stdout. */
function writeBytes(bytes: Uint8Array): void {
  try {
    for (let at = 0; at < bytes.byteLength;) at += writeSync(1, bytes, at);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EPIPE") throw new ReaderGone();
    throw new BatonError("IO", `Cannot write to stdout: ${messageOf(error)}`, { cause: error });
  }
}
