/** Parses a stream of server-sent events, as WHATWG HTML defines them. Owns no connection. */

export interface ServerSentEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string | null;
}

/** The maximum length of an event, in characters. */
const eventLengthMax = 64 << 20;

export class EventStreamReader {
  #pieces: string[] = [];
  #length = 0;

  /** Adds received text and returns the events that are now complete. Throws an Error if an event is too long. */
  push(text: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    let from = 0;
    // An event ends with an empty line, that is, with two line feeds. The first of them may be the last character of
    // the previous piece.
    const last = this.#pieces.at(-1);
    if (last?.endsWith("\n") && text.startsWith("\n")) {
      events.push(...this.#finish(""));
      from = 1;
    }
    for (let end = text.indexOf("\n\n", from); end >= 0; end = text.indexOf("\n\n", from)) {
      events.push(...this.#finish(text.slice(from, end)));
      from = end + 2;
    }
    if (from < text.length) {
      this.#pieces.push(text.slice(from));
      this.#length += text.length - from;
      if (this.#length > eventLengthMax) throw new Error("an event of the program is too long");
    }
    return events;
  }

  #finish(end: string): ServerSentEvent[] {
    const lines = (this.#pieces.join("") + end).split("\n");
    this.#pieces = [];
    this.#length = 0;
    let event = "message";
    let id: string | null = null;
    const data: string[] = [];
    for (const line of lines) {
      const [, field = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
      if (field === "event") event = value;
      else if (field === "id") id = value;
      else if (field === "data") data.push(value);
    }
    return data.length === 0 ? [] : [{ event, id, data: data.join("\n") }];
  }
}
