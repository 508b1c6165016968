/** Answers the HTTP requests of the page: its files, the stream of rows, details and actions. */
import { BatonError, errorMessage } from "../../src/base/errors.ts";
import { HttpError } from "../../src/base/http/http_error.ts";
import { type HttpRequest, type HttpResponse } from "../../src/base/http/serve_http.ts";
import type { HttpResponseStream } from "../../src/base/http/response_stream.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import { pageHtml, pageScript, pageStyle } from "../../src/operator/ui/page_files.ts";
import type { RequestAccess, RequestGuard } from "../../src/operator/ui/request_guard.ts";
import type { UiStreamHello } from "../../src/operator/ui/ui_rows.ts";
import type { UiActions } from "./ui_actions.ts";
import type { UiDetails } from "./ui_details.ts";
import type { UiFeed } from "./ui_feed.ts";

interface UiSiteOptions {
  readonly feed: UiFeed;
  readonly guard: RequestGuard;
  readonly clock: Clock;
  readonly details: UiDetails;
  readonly actions: UiActions | null;
  readonly showsBodies: boolean;
}

/** Allows only this program's own script and style, and forbids showing the page in a frame. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

const securityHeaders = {
  "content-security-policy": contentSecurityPolicy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store, no-transform",
};

const files: ReadonlyMap<string, { readonly type: string; readonly text: string }> = new Map([
  ["/", { type: "text/html; charset=utf-8", text: pageHtml }],
  ["/page.js", { type: "text/javascript; charset=utf-8", text: pageScript }],
  ["/page.css", { type: "text/css; charset=utf-8", text: pageStyle }],
]);

const actionsPath = "/actions/";
const detailPaths: readonly string[] = ["/stream", "/series", "/dead", "/topic", "/groups", "/body", "/history"];

function accessOf(path: string): RequestAccess {
  if (path.startsWith(actionsPath)) return "act";
  return detailPaths.includes(path) ? "read" : "page";
}

const plainText = "text/plain; charset=utf-8";
const notFound = (): HttpResponse => ({ status: 404, headers: securityHeaders, body: "There is no such page\n" });

/** Runs `work`, and turns its failure into a response with the message and the security headers. */
async function withErrors(work: () => Promise<HttpResponse>): Promise<HttpResponse> {
  try {
    return await work();
  } catch (thrown) {
    const status = statusOf(thrown);
    if (status === null) throw thrown;
    const headers = { ...securityHeaders, "content-type": plainText };
    return { status, headers, body: `${errorMessage(thrown).trimEnd()}\n` };
  }
}

function statusOf(thrown: unknown): number | null {
  if (thrown instanceof HttpError) return thrown.status;
  if (!(thrown instanceof BatonError)) return null;
  return thrown.code === "USAGE" || thrown.code === "BAD_DATA" ? 400 : thrown.code === "NOT_FOUND" ? 404 : 503;
}

/** Silence, in milliseconds, after which a comment is sent so that the page notices a lost connection. */
const commentEveryMs = 15_000;
/** Maximum bytes of one write; small, because the connection's time limit applies to each write. */
const pieceBytes = 64 << 10;

export class UiSite {
  readonly #options: UiSiteOptions;

  constructor(options: UiSiteOptions) {
    this.#options = options;
  }

  async handle(request: HttpRequest): Promise<HttpResponse> {
    const { path } = request;
    const access = accessOf(path);
    const refusal = this.#options.guard.check(request, access);
    if (refusal !== null) {
      const { status, why, headers } = refusal;
      return { status, headers: { ...securityHeaders, ...headers }, body: `${why}\n` };
    }
    if (path === "/stream") return this.#stream(request);
    if (access === "act") return await this.#act(request);
    if (access === "read") return await this.#answer(request);
    const file = files.get(path);
    if (file === undefined) return notFound();
    return { status: 200, headers: { ...securityHeaders, "content-type": file.type }, body: file.text };
  }

  async #act(request: HttpRequest): Promise<HttpResponse> {
    const { actions } = this.#options;
    if (actions === null) return notFound();
    return await withErrors(async () => {
      const { status, text } = await actions.run(request.path.slice(actionsPath.length), await request.readBody());
      return { status, headers: { ...securityHeaders, "content-type": plainText }, body: `${text}\n` };
    });
  }

  async #answer({ path, query, signal }: HttpRequest): Promise<HttpResponse> {
    return await withErrors(async () => {
      const answer = this.#options.details.answer(path, query, signal);
      if (answer === null) return notFound();
      const headers = { ...securityHeaders, "content-type": "application/json; charset=utf-8" };
      return { status: 200, headers, body: JSON.stringify(await answer) };
    });
  }

  #stream(request: HttpRequest): HttpResponse {
    const hello: UiStreamHello = {
      nowMs: Date.now(),
      mayAct: this.#options.guard.mayAct(request),
      showsBodies: this.#options.showsBodies,
    };
    const last = request.headers["last-event-id"];
    return {
      status: 200,
      headers: { ...securityHeaders, "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" },
      body: (stream) => this.#sendRows(stream, hello, this.#resumeAfter(typeof last === "string" ? last : "")),
    };
  }

  /** Returns the number of the last patch that the page has, or null if it needs all rows. */
  #resumeAfter(lastEventId: string): number | null {
    const [instance, number] = lastEventId.split("-");
    return instance === this.#options.feed.instance && number !== undefined && /^\d{1,15}$/.test(number)
      ? Number(number)
      : null;
  }

  /** Sends rows until the page is closed. A slow page gets several patches together, or all rows again. */
  async #sendRows(stream: HttpResponseStream, hello: UiStreamHello, resumeAfter: number | null): Promise<void> {
    const { feed } = this.#options;
    const { model } = feed;
    using _reader = feed.open();
    await writeEvent(stream, "hello", null, JSON.stringify(hello));
    const send = (event: string, patch: { readonly number: number; readonly text: string }) =>
      writeEvent(stream, event, `${feed.instance}-${patch.number}`, patch.text);
    let number = resumeAfter;
    for (;;) {
      const patches = number === null ? null : model.patchesAfter(number);
      if (patches === null) {
        const snapshot = model.snapshot();
        await send("tables", snapshot);
        number = snapshot.number;
      }
      for (const patch of patches ?? []) {
        await send("patch", patch);
        number = patch.number;
      }
      const sent = number ?? 0;
      await feed.nextPatch(sent, commentEveryMs, stream.signal);
      if (model.number === sent) await stream.write(":\n\n");
    }
  }
}

/** Writes one server-sent event. `text` is JSON, so it contains no line breaks. */
async function writeEvent(stream: HttpResponseStream, event: string, id: string | null, text: string): Promise<void> {
  const bytes = Buffer.from(`event: ${event}\n${id === null ? "" : `id: ${id}\n`}data: ${text}\n\n`);
  for (let at = 0; at < bytes.length; at += pieceBytes) await stream.write(bytes.subarray(at, at + pieceBytes));
}
