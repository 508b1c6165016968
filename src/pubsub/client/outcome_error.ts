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
  const { status } = outcome.response;
  const sentence = reasonText(outcome.response);
  return new BatonError(codes[status], `Cannot ${what}: ${status}${sentence === "" ? "" : `, ${sentence}`}`);
}
