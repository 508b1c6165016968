/**
 * Shows the dialog for an action: a description before the request is sent, and then the result. For a dangerous action
 * the user must type the name of the target.
 */
import { signal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { shownText } from "../ui/shown_text.ts";
import type { FollowedCoordinationRow, HolderRow } from "../../base/rows/object_row.ts";
import { receivedStreamHello } from "./page_state.ts";
import { requestFromProgram } from "./read_stream.ts";
import { participantText } from "./row_parts.tsx";

export interface ProposedAction {
  readonly verb: "break" | "resign" | "redrive" | "drop" | "drain" | "move";
  readonly title: string;
  readonly words: string;
  /** Fields of the request: the target, and its state as the page showed it when the user chose the action. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The name that the user must type to confirm. */
  readonly typed?: string;
  /** True if the user may enter a reason, which the holder sees. */
  readonly hasReason?: boolean;
  /** Names from which the user chooses the field `to` of the request. */
  readonly choices?: readonly string[];
  readonly onDone?: () => void;
}

const proposed = signal<ProposedAction | null>(null);
const state = signal<{ readonly kind: "asking" | "sending" | "done" | "failed"; readonly text: string }>({
  kind: "asking",
  text: "",
});

/** A button that opens the dialog. Returns null on a read-only page. */
export function ActionButton({ label, action }: {
  readonly label: string;
  readonly action: () => ProposedAction;
}): JSX.Element | null {
  if (receivedStreamHello.value?.mayAct !== true) return null;
  const open = () => {
    state.value = { kind: "asking", text: "" };
    proposed.value = action();
  };
  return <button type="button" onClick={open}>{label}…</button>;
}

export function ActionDialog(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useSignalEffect(() => {
    if (proposed.value === null) dialog.current?.close();
    else if (dialog.current?.open === false) dialog.current.showModal();
  });
  const action = proposed.value;
  return (
    <dialog ref={dialog} class="action" aria-label={action?.title ?? ""} onClose={() => proposed.value = null}>
      {action !== null && <ActionForm action={action} />}
    </dialog>
  );
}

function ActionForm({ action }: { readonly action: ProposedAction }): JSX.Element {
  const { title, words, typed, hasReason, choices } = action;
  const { kind, text } = state.value;
  const isOver = kind === "done" || kind === "failed";
  return (
    <form onSubmit={(event) => send(event, action)}>
      <h2>{title}</h2>
      <p>{words}</p>
      {!isOver && hasReason && (
        <label>
          Reason, which the holder sees <input name="reason" maxLength={200} autoComplete="off" />
        </label>
      )}
      {!isOver && choices !== undefined && (
        <label>
          To{" "}
          <select name="to" required>
            {choices.map((one) => <option key={one} value={one}>{shownText(one)}</option>)}
          </select>
        </label>
      )}
      {!isOver && typed !== undefined && (
        <label>
          Type {shownText(typed)} to confirm <input name="typed" required autoComplete="off" />
        </label>
      )}
      <p role="status" class={`state ${kind === "failed" ? "bad" : "good"}`}>
        {kind === "sending" ? "Sent; waiting for the result." : shownText(text)}
      </p>
      <div class="buttons">
        {!isOver && <button type="submit" disabled={kind === "sending"}>{title}</button>}
        <button type="button" onClick={() => proposed.value = null}>{isOver ? "Close" : "Cancel"}</button>
      </div>
    </form>
  );
}

async function send(
  event: SubmitEvent & { readonly currentTarget: HTMLFormElement },
  action: ProposedAction,
): Promise<void> {
  event.preventDefault();
  const fields = Object.fromEntries(new FormData(event.currentTarget));
  if (action.typed !== undefined && fields["typed"] !== shownText(action.typed)) {
    state.value = { kind: "asking", text: "The name is not the same. Nothing was sent." };
    return;
  }
  state.value = { kind: "sending", text: "" };
  try {
    const response = await requestFromProgram(`/actions/${action.verb}`, { ...action.body, ...fields });
    const text = (await response.text()).trim();
    if (proposed.peek() === action) state.value = { kind: response.ok ? "done" : "failed", text };
  } catch {
    const text = "The connection was lost. The outcome is unknown: look at the row and at the list of actions.";
    if (proposed.peek() === action) state.value = { kind: "failed", text };
  }
  action.onDone?.();
}

export function HolderActions({ row: { kind, name }, person }: {
  readonly row: Pick<FollowedCoordinationRow, "kind" | "name">;
  readonly person: HolderRow;
}): JSX.Element | null {
  const { id, fencing_token: token } = person;
  if (id === null || token === null || (kind !== "lock" && kind !== "election")) return null;
  const body = { name, holder: id, token };
  const who = shownText(participantText(person));
  const what = shownText(name);
  if (kind === "election") {
    return (
      <ActionButton
        label="Ask to step down"
        action={() => ({
          verb: "resign",
          body,
          title: "Ask to step down",
          hasReason: true,
          words: `${who} leads "${what}". Its baton stops its command and lets the next candidate lead.`,
        })}
      />
    );
  }
  return (
    <>
      <ActionButton
        label="Ask to release"
        action={() => ({
          verb: "break",
          body,
          title: "Ask to release",
          hasReason: true,
          words: `${who} holds "${what}". Its baton stops its command, and releases the lock.`,
        })}
      />
      <ActionButton
        label="Take by force"
        action={() => ({
          verb: "break",
          body: { ...body, force: true },
          title: "Take by force",
          typed: name,
          words: `${who} holds "${what}". If it has not released the lock within its session timeout, the lock is ` +
            "given to the next one while its command may still run.",
        })}
      />
    </>
  );
}
