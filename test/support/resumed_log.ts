/** A server that stores what `put --lines --resume` sends from a log, and a client whose process may be killed. */
import { join } from "node:path";
import { putInputMessages } from "../../commands/pubsub/client_put.ts";
import { openSplitPutInput } from "../../commands/pubsub/put_input.ts";
import { readRotatedName } from "../../commands/pubsub/resumed_file.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { ClientState, type PutFileMark } from "../../src/pubsub/client/client_state.ts";
import { PubsubClientSession } from "../../src/pubsub/client/pubsub_client_session.ts";
import type { PubsubRequester, PubsubRequestOptions, PubsubRequestOutcome } from "../../src/pubsub/client/requester.ts";
import type { PubsubMessageOf } from "../../src/pubsub/wire/pubsub_messages.ts";
import { fakeIo } from "./fake_io.ts";

type Fate = "done" | "done, unheard" | "lost";

/** The process ends at its write with this number, before or after the state has it. */
interface Kill {
  readonly write: number;
  readonly isWritten: boolean;
}

interface Put {
  /** The number of messages, with "not all" if some were not put; or the code of the error. */
  readonly result: number | string;
  readonly said: string;
}

export interface PutOptions {
  readonly path?: string;
  readonly resume?: boolean;
  readonly fate?: () => Fate;
  readonly kill?: Kill;
}

/** The log app.log in a folder, the state of the client that puts its lines, and the server. */
export class ResumedLog {
  readonly path: string;
  /** The lines that the server has stored. It stores each counter of a session once. */
  readonly stored: string[] = [];
  readonly #known = new Set<string>();
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    this.path = join(folder, "app.log");
  }

  openState(): Promise<ClientState> {
    return ClientState.open(join(this.#folder, "state"), "a", { waitMs: 0, clock: systemClock() });
  }

  async put({ path = this.path, resume = true, fate = () => "done", kill }: PutOptions = {}): Promise<Put> {
    using state = await this.openState();
    let writes = 0;
    const write = state.runTransaction.bind(state);
    state.runTransaction = (work, options) => {
      writes++;
      if (kill === undefined || writes < kill.write) return write(work, options);
      if (writes === kill.write && kill.isWritten) write(work, options);
      throw new Error("killed");
    };
    const request = (message: PubsubMessageOf<"PUT">, { onSent }: PubsubRequestOptions = {}) => {
      if (kill !== undefined && writes >= kill.write) return Promise.reject(new Error("killed"));
      onSent?.();
      return Promise.resolve(this.#serve(message, message.batch?.length === 0 ? "done" : fate()));
    };
    const io = fakeIo();
    const result = await putInputMessages({
      call: { values: { resume, json: false, progress: false, quiet: false, verbose: false } as never, io },
      client: new PubsubClientSession(state, { request } as unknown as PubsubRequester),
      topic: "news",
      stop: { finish: new AbortController().signal, now: new AbortController().signal },
      input: openSplitPutInput(path, "lines", resume),
      command: "baton publish news",
    }).then(
      ({ messages, isComplete }) => isComplete ? messages : `${messages}, not all`,
      (error) => `${error.code} ${error.message}`,
    );
    return { result, said: io.stderr() };
  }

  /** Changes what the state has of the log. */
  async changeMark(change: (mark: PutFileMark) => PutFileMark): Promise<void> {
    using state = await this.openState();
    const place = state.inputPosition("news", `the lines of ${this.path}`);
    if (place?.file === undefined) throw new Error("the log was not put");
    const file = change(place.file);
    state.runTransaction(() => state.setInput("news", { ...place, file }));
  }

  #serve({ counter, headers, body, batch }: PubsubMessageOf<"PUT">, fate: Fate): PubsubRequestOutcome {
    const { number, key } = headers?.fromSession ?? headers?.session ?? { number: 0, key: "" };
    for (const [at, item] of (batch ?? [body ?? new Uint8Array(0)]).entries()) {
      const id = `${number} ${key} ${counter + at}`;
      if (fate === "lost" || this.#known.has(id)) continue;
      this.#known.add(id);
      this.stored.push(new TextDecoder().decode(item));
    }
    if (fate !== "done") return { kind: "unknown", why: "nothing was heard", response: null };
    return { kind: "response", response: { name: "STATUS", sender: "s1", status: "OK", headers: {} } };
  }
}

export const nothingLeft = "baton: nothing was left to put\n";

/** A file beside a log, which has this end after the name of the log. */
export function fileOfLog(suffix: string, ino: number, modifiedMs: number) {
  const times = { modifiedMs, changedMs: modifiedMs, bornMs: 0 };
  return { path: suffix, ino, ...times, size: 0, ...readRotatedName(`log${suffix}`, ["log"]) };
}
