/** Shows the dead letters of one store, 100 at a time. */
import { type Signal, useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { countText, shownText } from "../ui/shown_text.ts";
import type {
  DeadLetterGroupRow,
  DeadLetterGroups,
  ListedMessageRow,
  MessageListPage,
  StoreRow,
} from "../../base/rows/store_row.ts";
import { ActionButton, type ProposedAction } from "./action_dialog.tsx";
import { receivedStreamHello } from "./page_state.ts";
import { requestJsonFromProgram } from "./read_stream.ts";
import { AgeText, bytesText, RelativeTimeText, ShortTable } from "./row_parts.tsx";

interface LetterPlace {
  /** The number of the message before each page of letters, up to this page. */
  readonly after: readonly number[];
  readonly field: string;
  readonly value: string;
}

const fields = { error: "last error contains", key: "key is", reason: "reason is" } as const;

interface LettersState {
  readonly store: StoreRow;
  readonly place: Signal<LetterPlace>;
  readonly answer: Signal<MessageListPage | null>;
  /** Why the dead letters could not be read; empty if they were read. */
  readonly why: Signal<string>;
  readonly body: Signal<string>;
  readonly read: () => Promise<void>;
}

const messageOf = (thrown: unknown) => thrown instanceof Error ? thrown.message : String(thrown);

function useLetters(store: StoreRow): LettersState {
  const place = useSignal<LetterPlace>({ after: [0], field: "error", value: "" });
  const answer = useSignal<MessageListPage | null>(null);
  const why = useSignal("");
  const body = useSignal("");
  const read = async () => {
    const wanted = place.peek();
    const { after, field, value } = wanted;
    const query = new URLSearchParams({ store: store.folder, after: String(after.at(-1) ?? 0), [field]: value });
    try {
      const found = await requestJsonFromProgram<MessageListPage>(`/dead?${query}`);
      if (place.peek() === wanted) answer.value = found;
      why.value = "";
    } catch (thrown) {
      why.value = messageOf(thrown);
    }
  };
  useSignalEffect(() => {
    void place.value;
    void read();
  });
  return { store, place, answer, why, body, read };
}

export function DeadLetters({ store }: { readonly store: StoreRow }): JSX.Element {
  const state = useLetters(store);
  const { place, answer: { value: answer }, why, body } = state;
  const { after } = place.value;
  const next = answer?.next ?? null;
  return (
    <section aria-label="Dead letters">
      <LetterGroups store={store} onShow={(group) => place.value = { after: [0], ...filterForGroup(group) }} />
      <h3>Dead letters</h3>
      <LetterFilter place={place} />
      {why.value !== "" && <p role="status" class="state bad">{shownText(why.value)}</p>}
      {answer !== null && (answer.messages.length === 0 ? <p>None.</p> : <LetterTable state={state} page={answer} />)}
      {body.value !== "" && <pre class="body">{shownText(body.value)}</pre>}
      <p class="buttons">
        {after.length > 1 && (
          <button
            type="button"
            onClick={() => place.value = { ...place.value, after: after.slice(0, -1) }}
          >
            Previous 100
          </button>
        )}
        {next !== null && (
          <button
            type="button"
            onClick={() => place.value = { ...place.value, after: [...after, next] }}
          >
            Next 100
          </button>
        )}
      </p>
    </section>
  );
}

/** How often the groups of a store are read at most, in milliseconds: one reading looks at all of its dead letters. */
const groupsEveryMs = 10_000;

/** Shows the dead letters of a store by reason and last error. `onShow` is called for the group that a user chooses. */
export function LetterGroups({ store: { folder, name, states: { dead: { count } } }, onShow }: {
  readonly store: StoreRow;
  readonly onShow: (group: DeadLetterGroupRow) => void;
}): JSX.Element | null {
  const groups = useSignal<DeadLetterGroups | null>(null);
  const readMs = useRef(-Infinity);
  useEffect(() => {
    if (count === 0) return;
    const read = async () => {
      readMs.current = performance.now();
      groups.value = await requestJsonFromProgram(`/groups?${new URLSearchParams({ store: folder })}`);
    };
    const waitMs = Math.max(0, readMs.current + groupsEveryMs - performance.now());
    const timer = setTimeout(() => void read().catch(() => {}), waitMs); // the letters below say why they are not read
    return () => clearTimeout(timer);
  }, [folder, count]);
  if (count === 0 || groups.value === null || groups.value.groups.length === 0) return null;
  const { groups: rows, counted } = groups.value;
  const caption = `${countText(count)} dead letters of ${shownText(name)}, by reason and last error`;
  return (
    <ShortTable
      name="groups"
      caption={counted < count ? `${caption}: the ${countText(counted)} oldest` : caption}
      rows={rows}
      columns={[
        ["Letters", (row) => <button type="button" onClick={() => onShow(row)}>{countText(row.count)}</button>],
        ["Last error", ({ last_error, reason }) => (
          <>
            {shownText(last_error ?? "no error")}
            <span class="sub">{shownText(reason ?? "")}</span>
          </>
        )],
        ["Destination of the newest", ({ destination }) => <code>{shownText(destination ?? "-")}</code>],
        ["Accepted", ({ newest, oldest }) => (
          <>
            <RelativeTimeText at={newest} />
            <span class="sub">
              the first <RelativeTimeText at={oldest} />
            </span>
          </>
        )],
      ]}
    />
  );
}

/** Returns the filter for the letters of a group. The page does not know what was redacted in an error. */
function filterForGroup({ reason, last_error }: DeadLetterGroupRow): Omit<LetterPlace, "after"> {
  const error = last_error?.split("[redacted]")[0] ?? "";
  return error === "" ? { field: "reason", value: reason ?? "" } : { field: "error", value: error };
}

function LetterFilter({ place }: Pick<LettersState, "place">): JSX.Element {
  const filter = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    place.value = { after: [0], field: String(given.get("field")), value: String(given.get("value")) };
  };
  return (
    <form class="filter" onSubmit={filter}>
      <label>
        Only those whose{" "}
        <select name="field">
          {Object.entries(fields).map(([field, text]) => <option key={field} value={field}>{text}</option>)}
        </select>
      </label>
      <label>
        <span class="unseen">Text of the filter</span>
        <input name="value" id="dead-filter" />
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

function LetterTable({ state, page: { messages: letters } }: {
  readonly state: LettersState;
  readonly page: MessageListPage;
}): JSX.Element {
  const open = letters.filter(({ forwarding }) => forwarding !== "forwarded");
  const { mayAct = false, showsBodies = false } = receivedStreamHello.value ?? {};
  const hasButtons = mayAct || showsBodies;
  return (
    <>
      <p class="buttons">
        {open.length > 0 && (
          <ActionButton
            label={`Redrive these ${countText(open.length)}`}
            action={() => proposedChange(state, "redrive", open)}
          />
        )}
        <ActionButton
          label={`Drop these ${countText(letters.length)}`}
          action={() => proposedChange(state, "drop", letters)}
        />
      </p>
      <ShortTable
        name="letters"
        caption={`Page ${countText(state.place.value.after.length)}, the oldest first`}
        rows={letters}
        columns={[
          ["Id", ({ id }) => shownText(id)],
          ["Reason", ({ reason, forwarding }) => {
            return `${shownText(reason ?? "")}${forwarding === "forwarded" ? ", forwarded" : ""}`;
          }],
          ["Tries", ({ tries }) => countText(tries)],
          ["Age", ({ first_at }) => <AgeText since={first_at} />],
          ["Key", ({ key }) => shownText(key ?? "")],
          ["Last error", ({ last_error }) => shownText(last_error ?? "")],
          ["Size", ({ bytes }) => bytesText(bytes)],
          ["Actions", (letter) => hasButtons ? <LetterButtons state={state} letter={letter} /> : ""],
        ]}
      />
    </>
  );
}

function LetterButtons({ state, letter }: {
  readonly state: LettersState;
  readonly letter: ListedMessageRow;
}): JSX.Element {
  return (
    <>
      {letter.forwarding !== "forwarded" && (
        <ActionButton
          label="Redrive"
          action={() => proposedChange(state, "redrive", [letter])}
        />
      )}
      {receivedStreamHello.value?.showsBodies === true && (
        <button
          type="button"
          onClick={() => void showBody(state, letter.id)}
        >
          Body
        </button>
      )}
    </>
  );
}

async function showBody({ store, body }: LettersState, id: string): Promise<void> {
  try {
    const query = new URLSearchParams({ store: store.folder, id });
    const { text, isCut } = await requestJsonFromProgram<{ text: string; isCut: boolean }>(`/body?${query}`);
    body.value = `${text}${isCut ? "\n… (cut)" : ""}`;
  } catch (thrown) {
    body.value = messageOf(thrown);
  }
}

function proposedChange(
  { store, read }: LettersState,
  verb: "redrive" | "drop",
  chosen: readonly ListedMessageRow[],
): ProposedAction {
  const count = `${countText(chosen.length)} dead ${chosen.length === 1 ? "letter" : "letters"}`;
  const what = `${count} of store "${shownText(store.name)}"`;
  const body = { store: store.folder, letters: chosen.map(({ id, last_at }) => ({ id, last_at })) };
  const onDone = () => void read();
  return verb === "redrive"
    ? { verb, title: "Redrive", body, onDone, words: `${what} will be tried again, with all their tries.` }
    : {
      verb,
      title: "Drop",
      body,
      onDone,
      typed: store.name,
      words: `${what} will be dropped, and never tried again.`,
    };
}
