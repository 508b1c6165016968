/** Answers requests of the page about message stores, which list, show, redrive and drop dead letters. */
import { setImmediate } from "node:timers/promises";
import { BatonError } from "../../src/base/errors.ts";
import { requireTextField } from "../../src/base/http/body_fields.ts";
import { HttpError } from "../../src/base/http/http_error.ts";
import type { DeadLetterGroupRow, DeadLetterGroups, MessageListPage } from "../../src/base/rows/store_row.ts";
import { isJsonObject, type JsonFields } from "../../src/base/support/json_fields.ts";
import { countWithNoun, printable } from "../../src/base/support/text.ts";
import { formatUtcTimeOrNull, makeListedMessageRow } from "../../src/retry/dead_letters/dead_letter_record.ts";
import { redactHead, type Redaction, redactText } from "../../src/retry/dead_letters/redaction.ts";
import type { MessageFilter } from "../../src/retry/queue/store_methods.ts";
import type { MessageHead } from "../../src/retry/queue/stored_message.ts";
import type { FoundStore, FoundStores } from "../../src/retry/view/found_stores.ts";
import type { PageAnswer, ReadUiActionRequest, UiPageRequests } from "../product.ts";

/** The most dead letters on a page and in one action. */
const lettersMax = 100;
const bodyBytesMax = 64 << 10;
/** Maximum number of dead letters that are counted in groups, and how many one call reads. */
const groupedMax = 10_000;
const lettersOfOneRead = 500;
const groupsMax = 50;

export function retryPageRequests(stores: FoundStores, redaction: Redaction): UiPageRequests {
  return {
    answers: {
      "/dead": deadLettersAnswer(stores, redaction),
      "/groups": groupsAnswer(stores, redaction),
      "/body": bodyAnswer(stores),
    },
    actions: { redrive: letterAction(stores, "redrive"), drop: letterAction(stores, "purge") },
  };
}

function storeOf(stores: FoundStores, query: URLSearchParams): FoundStore {
  const found = stores.at(query.get("store") ?? "");
  if (found === null) throw new HttpError(404, "There is no such store\n");
  return found;
}

const deadLettersAnswer = (stores: FoundStores, redaction: Redaction): PageAnswer => async (query) => {
  const { name, store } = storeOf(stores, query);
  const after = query.get("after") ?? "0";
  if (!/^\d{1,15}$/.test(after)) throw new HttpError(400, `"after" must be a number\n`);
  const filter: MessageFilter = {
    states: ["dead"],
    ...Object.fromEntries((["key", "reason", "error"] as const).flatMap((field) => {
      const value = query.get(field) ?? "";
      return value === "" ? [] : [[field, value]];
    })),
  };
  const found = await store.read("list", filter, { afterSeq: Number(after), max: lettersMax + 1 });
  const shown = found.slice(0, lettersMax);
  const page: MessageListPage = {
    messages: shown.map((one) => makeListedMessageRow({ ...one, error: redactText(one.error, redaction) }, name)),
    next: found.length > lettersMax ? shown.at(-1)?.seq ?? null : null,
  };
  return page;
};

const groupsAnswer = (stores: FoundStores, redaction: Redaction): PageAnswer => async (query) => {
  const { name, store } = storeOf(stores, query);
  const groups = new Map<string, { row: Omit<DeadLetterGroupRow, "destination">; readonly newestId: string }>();
  let counted = 0;
  for (let afterSeq = 0; counted < groupedMax;) {
    const found = await store.read("list", { states: ["dead"] }, { afterSeq, max: lettersOfOneRead });
    for (const message of found) {
      const { id, reason, last_error, first_at } = makeListedMessageRow(message, name);
      const key = JSON.stringify([reason, last_error]);
      const { count, oldest } = groups.get(key)?.row ?? { count: 0, oldest: first_at };
      groups.set(key, { row: { reason, last_error, count: count + 1, oldest, newest: first_at }, newestId: id });
    }
    counted += found.length;
    const last = found.at(-1);
    if (last === undefined || found.length < lettersOfOneRead) break;
    afterSeq = last.seq;
    await setImmediate(); // the rows of the page come between two readings
  }
  const largest = [...groups.values()].sort((a, b) => b.row.count - a.row.count).slice(0, groupsMax);
  const rows = await Promise.all(largest.map(async ({ row, newestId }) => {
    const head = (await store.read("show", newestId))?.head;
    const destination = head === undefined ? null : destinationText(redactHead(head, redaction));
    return { ...row, last_error: redactText(row.last_error, redaction), destination };
  }));
  return { groups: rows, counted } satisfies DeadLetterGroups;
};

/** Returns the method and URL, or the first word of the command, because arguments may contain secrets. */
function destinationText(head: MessageHead): string | null {
  return head.kind === "http" ? `${head.method} ${head.origin ?? ""}${head.path}` : head.argv?.[0] ?? null;
}

const bodyAnswer = (stores: FoundStores): PageAnswer => async (query) => {
  const message = await storeOf(stores, query).store.read("show", query.get("id") ?? "");
  if (message?.body === undefined) throw new HttpError(404, "The body is no longer stored\n");
  const { body } = message;
  return { text: new TextDecoder().decode(body.subarray(0, bodyBytesMax)), isCut: body.byteLength > bodyBytesMax };
};

/**
 * Returns the function that reads a request to redrive or drop dead letters. A dead letter that was tried again after
 * the page was shown is not changed.
 */
const letterAction = (stores: FoundStores, change: "redrive" | "purge"): ReadUiActionRequest => (body) => {
  const folder = requireTextField(body, "store");
  const letters = lettersIn(body);
  const found = stores.at(folder);
  if (found === null) throw new HttpError(409, "The page is old: there is no such store now; nothing was done\n");
  const { name, store } = found;
  const word = change === "redrive" ? "redrive" : "drop";
  return {
    what: `${word} ${countWithNoun(letters.length, "dead letter")} of store "${printable(name)}"`,
    ...(change === "purge" ? { mustType: name } : {}),
    async run() {
      let changed = 0;
      for (const { id, lastAt } of letters) {
        const now = await store.read("show", id);
        if (now?.state !== "dead" || formatUtcTimeOrNull(now.lastMs) !== lastAt) continue;
        if (await store.call("change", id, change, Date.now()) === null) changed++;
      }
      const rest = letters.length - changed;
      if (changed === 0) {
        throw new BatonError("NOT_FOUND", "The page is old: these dead letters have changed; nothing was done");
      }
      const done = `${countWithNoun(changed, "dead letter")} ${change === "redrive" ? "redriven" : "dropped"}`;
      return rest === 0 ? done : `${done}; ${rest} had changed meanwhile`;
    },
  };
};

function lettersIn(body: JsonFields): { readonly id: string; readonly lastAt: string | null }[] {
  const letters = body["letters"];
  if (!Array.isArray(letters) || letters.length === 0 || letters.length > lettersMax) {
    throw new HttpError(400, `"letters" must be a list of 1 to ${lettersMax} dead letters\n`);
  }
  return letters.map((letter: unknown) => {
    const { last_at: lastAt = null, ...fields } = isJsonObject(letter) ? letter : {};
    if (lastAt !== null && typeof lastAt !== "string") throw new HttpError(400, `"last_at" must be a text or null\n`);
    return { id: requireTextField(fields, "id"), lastAt };
  });
}
