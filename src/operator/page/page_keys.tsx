/**
 * The keyboard shortcuts of the page, and the dialog that lists them. Users can turn them off, because they are single
 * characters.
 */
import { signal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { rememberedBrowserChoice } from "./page_state.ts";
import { Fields } from "./row_parts.tsx";

const keys = rememberedBrowserChoice("baton-keys", ["on", "off"]);
const isHelpOpen = signal(false);

const help: readonly (readonly [key: string, does: string])[] = [
  ["/", "go to the filter"],
  ["j, k", "next row, previous row"],
  ["Enter", "details of the row"],
  ["Esc", "close the details; leave the filter"],
  ["?", "this list"],
];

export function watchPageKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target instanceof Element ? event.target : null;
    const isTyping = target?.matches("input, textarea, select") === true;
    if (target !== null && target.closest("dialog") !== null) return; // a dialog has its own keys: Escape closes it
    if (event.key === "Escape" && isTyping && target instanceof HTMLElement) {
      event.preventDefault(); // Chromium would empty the field and report no input
      return target.blur();
    }
    if (keys.choice.value === "off" || isTyping || document.querySelector("dialog[open]") !== null) return;
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  });
}

const actions: Readonly<Record<string, () => void>> = {
  "/": () => document.getElementById("filter")?.focus(),
  "?": () => void (isHelpOpen.value = true),
  j: () => moveFocus(1),
  k: () => moveFocus(-1),
};

function moveFocus(step: 1 | -1): void {
  const names = [...document.querySelectorAll<HTMLElement>("main button.name, main a.name")];
  const at = names.findIndex((name) => name === document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : names.length - 1) : at + step;
  names[next]?.focus();
}

export function KeyHelp(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useSignalEffect(() => {
    if (!isHelpOpen.value) dialog.current?.close();
    else if (dialog.current?.open === false) dialog.current.showModal();
  });
  return (
    <dialog ref={dialog} aria-label="Keys" onClose={() => isHelpOpen.value = false}>
      <header>
        <h2>Keys</h2>
        <button type="button" onClick={() => isHelpOpen.value = false}>Close</button>
      </header>
      <Fields fields={help} />
      <label>
        <input type="checkbox" checked={keys.choice.value === "on"} onChange={keys.next} /> Use these keys
      </label>
    </dialog>
  );
}
