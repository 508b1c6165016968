/** Parses `--where` and `--state`, which select messages. Pure. */
import { BatonError } from "../../src/errors.ts";
import { type MessageState, messageStates } from "../../src/retry/queue/message_life.ts";
import type { MessageFilter } from "../../src/retry/queue/retry_admin.ts";
import { didYouMean } from "../../src/support/did_you_mean.ts";

const fields = ["key", "reason", "error"] as const;

/** `key=K`, `reason=R`, `error=TEXT` (a part of the last error). Throws USAGE. */
export function parseWhere(written: readonly string[] | undefined): Omit<MessageFilter, "states"> {
  const filter: { key?: string; reason?: string; error?: string } = {};
  for (const condition of written ?? []) {
    const at = condition.indexOf("=");
    const name = condition.slice(0, at);
    const field = fields.find((one) => one === name);
    if (field === undefined || at < 0) {
      throw new BatonError("USAGE", `--where: "${condition}" is not a condition: use key=…, reason=… or error=…`);
    }
    filter[field] = condition.slice(at + 1);
  }
  return filter;
}

/** Throws USAGE. */
export function parseStates(written: readonly string[] | undefined): readonly MessageState[] {
  return (written ?? messageStates).map((word) => {
    const state = messageStates.find((one) => one === word.replace("-", "_"));
    if (state !== undefined) return state;
    throw new BatonError(
      "USAGE",
      `--state: "${word}" is not a state: use ${messageStates.join(", ")}${didYouMean(word, messageStates)}`,
    );
  });
}
