/** Copies a command into the clipboard. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

const shownMs = 2000;
const copyWords = "Copy command";

export function CopyButton({ text }: { readonly text: string }): JSX.Element {
  const state = useSignal(copyWords);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      state.value = "Copied";
    } catch {
      state.value = "Not allowed"; // browsers allow it on https and on this machine only
    }
    setTimeout(() => state.value = copyWords, shownMs);
  };
  return (
    <button type="button" class="small" aria-label={`Copy command: ${text}`} onClick={() => void copy()}>
      {state.value}
    </button>
  );
}

/** A command with a button that copies it. */
export function CommandLine({ text }: { readonly text: string }): JSX.Element {
  return (
    <div class="command">
      <code>{text}</code>
      <CopyButton text={text} />
    </div>
  );
}
