/**
 * Runs the actions that users request on the page. A request contains the target's state as the page showed it, so that
 * the product can reject the action if the target has changed since. Owns the running actions and the last results.
 */
import { BatonError, errorMessage } from "../../src/base/errors.ts";
import { parseJsonBody } from "../../src/base/http/body_fields.ts";
import { HttpError } from "../../src/base/http/http_error.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import { resultInTimeOrNull } from "../../src/base/support/deadline.ts";
import type { Log } from "../../src/base/support/log.ts";
import { printable } from "../../src/base/support/text.ts";
import { ownUserName } from "../../src/base/support/user_name.ts";
import { shownText } from "../../src/operator/ui/shown_text.ts";
import type { ActionRow } from "../../src/operator/ui/ui_rows.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { ReadUiActionRequest, RequestedUiAction } from "../product.ts";

interface UiActionsOptions {
  readonly actions: Readonly<Record<string, ReadUiActionRequest>>;
  readonly zk: () => ZooKeeper | null;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the actions in progress when it aborts. */
  readonly signal: AbortSignal;
  readonly onChange: (actions: readonly ActionRow[]) => void;
}

/** How many actions may run at the same time, and how many results the page lists. */
const runningMax = 4;
const keptMax = 20;
/** How long a request waits for its action, in milliseconds. The list of actions shows later results. */
const responseMsMax = 8000;

export class UiActions {
  readonly #options: UiActionsOptions;
  /** The requester's name, as holders see it. */
  readonly #by = `${ownUserName()} via baton ui`;
  #rows: readonly ActionRow[] = [];
  #running = 0;
  #number = 0;

  constructor(options: UiActionsOptions) {
    this.#options = options;
  }

  /**
   * Runs the action with the name `verb`, and resolves with an HTTP status and a sentence. Rejects with an HttpError if
   * the request is invalid or too many actions are running.
   */
  async run(verb: string, body: Uint8Array): Promise<{ readonly status: number; readonly text: string }> {
    const { what, run } = this.#parse(verb, body);
    if (this.#running >= runningMax) {
      throw new HttpError(503, `${runningMax} actions are in progress: try again later\n`);
    }
    const row: ActionRow = { number: ++this.#number, atMs: Date.now(), what, state: "running", result: "" };
    this.#show(row);
    this.#options.log("info", "action", `${what}: requested in the page`, { action: verb });
    this.#running++;
    const running = this.#finish(row, verb, run);
    const ended = await resultInTimeOrNull(this.#options.clock, responseMsMax, running);
    return ended ?? { status: 202, text: `${what}: this takes longer; the result will be in the overview` };
  }

  #parse(verb: string, body: Uint8Array): RequestedUiAction {
    const { actions, clock, signal, zk } = this.#options;
    const parse = Object.hasOwn(actions, verb) ? actions[verb] : undefined;
    if (parse === undefined) throw new HttpError(404, `There is no action "${printable(verb)}"\n`);
    const fields = parseJsonBody(body);
    const action = parse(fields, { zk: () => demandSession(zk()), clock, signal, by: this.#by });
    const { mustType: name } = action;
    if (name !== undefined && fields["typed"] !== name && fields["typed"] !== shownText(name)) {
      throw new HttpError(400, `"typed" must be the name of the target\n`);
    }
    return action;
  }

  /** Runs the action and records its result. Never rejects. */
  async #finish(
    row: ActionRow,
    verb: string,
    run: RequestedUiAction["run"],
  ): Promise<{ status: number; text: string }> {
    const { log } = this.#options;
    try {
      const text = await run();
      this.#show({ ...row, state: "done", result: text });
      log("info", "action", `${row.what}: ${text}`, { action: verb });
      return { status: 200, text };
    } catch (thrown) {
      const text = errorMessage(thrown);
      this.#show({ ...row, state: "failed", result: printable(text) });
      log("warning", "action", `${row.what}: ${printable(text)}`, { action: verb });
      return { status: statusOf(thrown), text };
    } finally {
      this.#running--;
    }
  }

  #show(row: ActionRow): void {
    const others = this.#rows.filter(({ number }) => number !== row.number);
    this.#rows = [row, ...others].sort((a, b) => b.number - a.number).slice(0, keptMax);
    this.#options.onChange(this.#rows);
  }
}

/** Returns the HTTP status for a failure. 409 means that the page showed an old state. */
function statusOf(thrown: unknown): number {
  if (thrown instanceof HttpError) return thrown.status;
  if (!(thrown instanceof BatonError)) return 500;
  if (thrown.code === "NOT_FOUND") return 409;
  return thrown.code === "USAGE" ? 400 : thrown.code === "UNREACHABLE" ? 503 : 500;
}

function demandSession(session: ZooKeeper | null): ZooKeeper {
  if (session !== null) return session;
  throw new BatonError(
    "UNREACHABLE",
    "there is no session with the coordination servers: no page is open, or they do not respond; nothing was done",
  );
}
