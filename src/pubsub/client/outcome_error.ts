/** An outcome that is not OK, as a failure with its row in the table of errors. Pure. */
import { BatonError, type ErrorCode } from "../../errors.ts";
import type { StatusCode } from "../../wire/pubsub/status_codes.ts";
import { reasonText, type RequestOutcome } from "./requester.ts";

const codes = {
  OK: "INTERNAL",
  NO_MESSAGE: "NOT_FOUND",
  NOT_SUBSCRIBED: "NOT_SUBSCRIBED",
  NOT_OWNER: "UNREACHABLE",
  COUNTER_REUSE: "BAD_DATA",
  STALE_OP: "BAD_DATA",
  FENCED: "FENCED",
  UNREGISTERED: "BAD_DATA",
  FULL: "STORE_FULL",
  DAMAGED: "IO",
  OVERLOADED: "UNREACHABLE",
  BAD_REQUEST: "BAD_DATA",
  DENIED: "REFUSED",
  ERROR: "INTERNAL",
} as const satisfies Record<StatusCode, ErrorCode>;

/** What was asked for is damaged on the server's disk; `isWholeTopic`: all of the topic, which is to be restored or deleted. */
export class TopicDamagedError extends BatonError {
  readonly isWholeTopic: boolean;

  constructor(message: string, { isWholeTopic }: { readonly isWholeTopic: boolean }) {
    super(codes.DAMAGED, message);
    this.isWholeTopic = isWholeTopic;
  }
}

/** `what` was tried, to stand behind "Cannot". */
export function outcomeError(what: string, outcome: RequestOutcome): BatonError {
  if (outcome.kind === "unknown") {
    return new BatonError("OUTCOME_UNKNOWN", `Nobody can say whether this was done, ${what}: ${outcome.why}`);
  }
  const { response } = outcome;
  if (outcome.kind === "fail") {
    const code = outcome.isRefused ? "REFUSED" : response?.status === "ERROR" ? "INTERNAL" : "UNREACHABLE";
    return new BatonError(code, `Cannot ${what}; definitely not done: ${outcome.why}`);
  }
  const { status, headers } = outcome.response;
  const sentence = reasonText(outcome.response);
  const message = `Cannot ${what}: ${status}${sentence === "" ? "" : `, ${sentence}`}`;
  if (status !== "DAMAGED") return new BatonError(codes[status], message);
  return new TopicDamagedError(message, { isWholeTopic: headers?.state === "missing" });
}
