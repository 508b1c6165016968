/** Failures of `fetch`, for people. */
import { messageOf } from "../errors.ts";

/** The error with its code, without hints for programmers. */
export function whyNotSent(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  const message = messageOf(error).replace(/\.? For more information, pass `verbose.*$/s, "")
    .replace("Unable to connect. Is the computer able to access the url?", "no connection");
  return code === undefined || message.startsWith(code) ? message : `${code}: ${message}`;
}
