/**
 * What `baton hold` and its holder, which runs on when that has ended, say to each other: lines of JSON in two pipes.
 * `baton hold` begins with a HolderRequest, and ends with "taken" when the script has been told what it holds, or with
 * "stop" when nobody wants it any more; the end of its pipe before that means "stop" too.
 */
import type { ErrorCode } from "../../errors.ts";
import type { ScriptProcess } from "./script_process.ts";

export const takenLine = "taken\n";
export const stopLine = "stop\n";

export interface HolderRequest<Options> {
  /** The command line, resolved. */
  readonly options: Options;
  readonly script: ScriptProcess;
  /** Variables that its own environment lacks: by a cookie it would count as one of the job's processes. */
  readonly env: Readonly<Record<string, string>>;
  /** Of the terminal on which the wait is shown; null when there is none. */
  readonly columns: number | null;
}

export type HolderMessage<Ending> =
  /** For the stderr of `baton hold`. */
  | { readonly kind: "says"; readonly text: string }
  /** The lock is held and the guard watches: the script may be told. */
  | {
    readonly kind: "held";
    readonly variables: Readonly<Record<string, string | null>>;
    readonly tokens: readonly string[];
    readonly waitedMs: number;
  }
  /** It was not got, or lost before the script was told. */
  | { readonly kind: "failed"; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: "ended"; readonly ending: Ending };
