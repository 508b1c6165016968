/** Changes of messages that an operator asks for by their ids, or of all that fit a condition. */
import { BatonError } from "../../src/errors.ts";
import type { Change } from "../../src/retry/queue/retry_admin.ts";
import { changesMax } from "../../src/retry/queue/retry_store_limits.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { RetryChangesJson } from "../json_shapes/retry_shapes.ts";
import type { ChangeCall, ControlCall } from "./control.ts";
import { whereOf } from "./message_filter.ts";
import { OpenStore } from "./open_store.ts";
import { idleRules, placeOf } from "./retry_rules.ts";

// deno-lint-ignore require-await -- a command is asynchronous, these write to a disk
export async function change(call: ChangeCall, kind: Change): Promise<ExitCode> {
  const { values, names, sources } = call;
  const where = whereOf(values.where);
  checkChoice(call, kind);
  const place = placeOf(values, sources);
  using store = new OpenStore(place.folder, idleRules, { mustExist: true });
  if (!values.all) return tellChanges(call, changeEach(store, names, kind), kind);
  let changed = 0;
  const state = kind === "redrive" || kind === "purge" ? "dead" : "waiting";
  for (let afterSeq = 0;;) {
    const found = store.ask("list", { states: [state], ...where }, { afterSeq, max: changesMax });
    if (found.length === 0) return tellChanges(call, { changed, refused: [] }, kind);
    changed += changeEach(store, found.map(({ id }) => id), kind).changed;
    afterSeq = found.at(-1)?.seq ?? afterSeq;
  }
}

type Changes = Pick<RetryChangesJson, "changed" | "refused">;

/** In one transaction each: a long list holds nobody up. */
export function changeEach(store: OpenStore, ids: readonly string[], kind: Change): Changes {
  const refused: Changes["refused"] = [];
  for (const id of ids) {
    const state = store.call("change", id, kind, Date.now());
    if (state !== null) refused.push({ id, state });
  }
  return { changed: ids.length - refused.length, refused };
}

/** Throws USAGE unless either ids are given or --all. */
export function checkChoice({ values, names }: ChangeCall, word: string): void {
  if (values.all && names.length > 0) throw new BatonError("USAGE", `${word} takes ids or --all, not both`);
  if (!values.all && names.length === 0) throw new BatonError("USAGE", `${word} takes ids of messages, or --all`);
  if (!values.all && values.where !== undefined) throw new BatonError("USAGE", "--where goes with --all");
}

const pasts: Readonly<Record<Change, string>> = {
  retry: "due now",
  cancel: "cancelled",
  redrive: "redriven",
  purge: "purged",
};

export function tellChanges(call: ChangeCall, { changed, refused }: Changes, kind: Change): ExitCode {
  const { values, io, sources } = call;
  const { name } = placeOf(values, sources);
  if (values.json) {
    const answer: RetryChangesJson = { version: 1, name, changed, refused };
    io.out(`${JSON.stringify(answer)}\n`);
  } else {
    for (const { id, state } of refused) io.err(`baton: ${id} was not ${pasts[kind]}: ${whyNot(state, name)}\n`);
    if (!values.quiet) io.err(`baton: ${changed} ${changed === 1 ? "message is" : "messages are"} ${pasts[kind]}\n`);
  }
  return refused.length === 0 ? exitCodes.SUCCESS : exitCodes.FALSE;
}

function whyNot(state: Changes["refused"][number]["state"], name: string): string {
  if (state === "unknown") return `there is no such message in "${name}"`;
  return state === "sent" ? "its letter has left the store" : `it is ${state.replace("_", " ")}`;
}

// deno-lint-ignore require-await -- as above
export async function pause({ values, names: [word], sources, io }: ControlCall, isPaused: boolean): Promise<ExitCode> {
  if (word !== undefined) throw new BatonError("USAGE", `"${word}" is too much; --name says which store`);
  const { name, folder } = placeOf(values, sources);
  using store = new OpenStore(folder, idleRules, { mustExist: true });
  const was = store.ask("isPaused");
  store.call("setPaused", isPaused);
  if (values.json) {
    const answer: RetryChangesJson = { version: 1, name, changed: was === isPaused ? 0 : 1, refused: [] };
    io.out(`${JSON.stringify(answer)}\n`);
  } else if (!values.quiet) {
    const before = was === isPaused ? " was before, and" : "";
    io.err(`baton: "${name}"${before} is ${isPaused ? "paused" : "not paused any more"}\n`);
  }
  return exitCodes.SUCCESS;
}
