/** Receives the stream of rows, and reconnects when the stream is lost. Owns the connection and the token. */
import { EventStreamReader, type ServerSentEvent } from "../ui/event_stream.ts";
import type { UiStreamHello, UiTablePatch } from "../ui/ui_rows.ts";
import { applyStreamHello, applyTablePatch, streamFailureReason, streamState } from "./page_state.ts";

/**
 * How long the stream may be silent before it counts as lost, in milliseconds. `baton ui` sends a comment every 15 s.
 */
const silentMsMax = 45_000;
const againMs = { first: 500, max: 10_000 };

const tokenKey = "baton-token";

/** Moves the token from the URL into the storage of this tab. */
export function takeTokenFromAddress(): void {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return;
  storePageToken(token);
  history.replaceState(null, "", `${location.pathname}#overview`);
}

let memoryToken = "";

export function storePageToken(token: string): void {
  memoryToken = token;
  try {
    sessionStorage.setItem(tokenKey, token);
  } catch {
    // the browser's storage is disabled: the token is lost when the page is loaded again
  }
}

export function readPageToken(): string {
  try {
    return sessionStorage.getItem(tokenKey) ?? memoryToken;
  } catch {
    return memoryToken;
  }
}

/** Sends a request with the token: a POST if there is a body, otherwise a GET. */
export async function requestFromProgram(path: string, body?: object): Promise<Response> {
  return await fetch(path, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${readPageToken() || "none"}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    cache: "no-store",
    credentials: "omit",
  });
}

/** Requests JSON. Rejects with the error message that `baton ui` sent. */
export async function requestJsonFromProgram<T>(path: string): Promise<T> {
  const response = await requestFromProgram(path);
  if (!response.ok) throw new Error((await response.text()).trim().slice(0, 500));
  return await response.json() as T;
}

let lastEventId = "";
let current: AbortController | null = null;
let retryTimer: ReturnType<typeof setTimeout> | null = null;
let delayMs = againMs.first;

/**
 * Stays connected while the page is visible. A hidden page disconnects, because browsers allow few connections to one
 * host.
 */
export function followRowStream(): void {
  document.addEventListener("visibilitychange", () => document.hidden ? closeStream() : connect());
  if (!document.hidden) connect();
}

export function reconnectRowStream(): void {
  closeStream();
  delayMs = againMs.first;
  connect();
}

function closeStream(): void {
  if (retryTimer !== null) clearTimeout(retryTimer);
  retryTimer = null;
  current?.abort();
  current = null;
}

function connect(): void {
  closeStream();
  const connection = new AbortController();
  current = connection;
  void readEvents(connection).catch((thrown: unknown) => {
    if (current !== connection) return; // closed by `closeStream`, not lost
    current = null;
    connection.abort();
    streamFailureReason.value = thrown instanceof Error ? thrown.message : String(thrown);
    if (thrown instanceof WrongToken) {
      streamState.value = "refused";
      return;
    }
    streamState.value = "lost";
    retryTimer = setTimeout(connect, delayMs * (0.5 + Math.random() / 2));
    delayMs = Math.min(againMs.max, delayMs * 2);
  });
}

class WrongToken extends Error {}

/** Reads events until the connection is lost. Always rejects. */
async function readEvents(connection: AbortController): Promise<never> {
  let silence = setTimeout(() => connection.abort(), silentMsMax);
  try {
    const response = await fetch("/stream", {
      headers: {
        authorization: `Bearer ${readPageToken() || "none"}`,
        ...(lastEventId === "" ? {} : { "last-event-id": lastEventId }),
      },
      cache: "no-store",
      credentials: "omit",
      signal: connection.signal,
    });
    if (!response.ok || response.body === null) {
      const why = (await response.text()).trim().slice(0, 300);
      throw response.status === 401 || response.status === 429 ? new WrongToken(why) : new Error(why);
    }
    const reader = new EventStreamReader();
    const pieces = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await pieces.read();
      if (done) throw new Error("baton ui has closed the connection");
      clearTimeout(silence);
      silence = setTimeout(() => connection.abort(), silentMsMax);
      for (const event of reader.push(value)) takeEvent(event);
    }
  } finally {
    clearTimeout(silence);
  }
}

function takeEvent({ event, data, id }: ServerSentEvent): void {
  if (event === "hello") {
    applyStreamHello(JSON.parse(data) as UiStreamHello);
    streamState.value = "live";
    streamFailureReason.value = "";
    delayMs = againMs.first;
  } else if (event === "tables" || event === "patch") {
    applyTablePatch(JSON.parse(data) as UiTablePatch, event === "tables");
  }
  if (id !== null) lastEventId = id;
}
