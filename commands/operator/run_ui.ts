/** Runs `baton ui`: checks who can reach the page, and serves it until a signal arrives. */
import { randomBytes } from "node:crypto";
import { addOriginToErrors } from "../../src/base/config/resolve_settings.ts";
import { BatonError, errorMessage } from "../../src/base/errors.ts";
import { HttpError } from "../../src/base/http/http_error.ts";
import { type HttpRequest, type HttpResponse, serveHttp } from "../../src/base/http/serve_http.ts";
import { StopRequestListener } from "../../src/base/process/supervise/signal_source.ts";
import { type Address, formatAddress } from "../../src/base/sockets/connection.ts";
import { TlsFiles } from "../../src/base/sockets/tls_files.ts";
import { whenAborted } from "../../src/base/support/abort.ts";
import { readBuildFacts } from "../../src/base/support/build.ts";
import { type Clock, systemClock } from "../../src/base/support/clock.ts";
import { checkPrivateFile, readConfiguredFile } from "../../src/base/support/private_file.ts";
import { createProcessLog } from "../../src/base/terminal/process_log.ts";
import { type RequestAccess, RequestGuard } from "../../src/operator/ui/request_guard.ts";
import type { ExitCode } from "../../src/base/exit_codes.ts";
import { rowKinds } from "../../src/base/rows/row_kinds.ts";
import type { PageAnswer, ProductView, UiPageRequests } from "../product.ts";
import { RowSources } from "./row_sources.ts";
import { parseListenAddressFlag } from "../../src/base/config/listen_address.ts";
import { UiActions } from "./ui_actions.ts";
import { UiDetails } from "./ui_details.ts";
import { UiFeed } from "./ui_feed.ts";
import { ownUiSettings, type UiCall } from "./ui_options.ts";
import { describeWhoReachesSocket, isLoopbackHost } from "../../src/base/sockets/socket_reach.ts";
import type { HttpResponseStream } from "../../src/base/http/response_stream.ts";
import { pageHtml, pageScript, pageStyle } from "../../src/operator/ui/page_files.ts";
import type { UiStreamHello } from "../../src/operator/ui/ui_rows.ts";

type TcpAddress = Extract<Address, { readonly kind: "tcp" }>;

/** Serves the page until a signal arrives. Always rejects: with StoppedBySignal or an error. */
export async function runUi(call: UiCall, views: readonly ProductView[]): Promise<ExitCode> {
  const { values, io } = call;
  const clock = systemClock();
  const address = listenAddressOf(call);
  const log = createProcessLog(io, { who: "baton", format: values.log, quiet: values.quiet, verbose: values.verbose });
  const tls = tlsOf(call, (text) => log("warning", "tls", text));
  const isLocal = isLoopbackHost(address.host);
  if (!isLocal && (tls === null || values.tokenFile === undefined)) {
    throw new BatonError(
      "CONFIG",
      `Cannot serve the page on ${
        formatAddress(address)
      }, which other machines reach: give --listen-cert, --listen-key and --token-file, ` +
        "or listen on 127.0.0.1 and use ssh -L",
    );
  }
  const { readToken, actToken } = tokensOf(values);
  const { release: version } = readBuildFacts();
  using stop = new StopRequestListener();
  await using sources = await RowSources.open(views, call, rowKinds);
  const requests = await pageRequests(call, sources);
  const feed = new UiFeed(call, { sources, answers: requests.answers, clock, log, version });
  const hosts = new Set(["localhost", "127.0.0.1", "[::1]", hostText(address), ...(values.hostName ?? []).map(lower)]);
  const guard = new RequestGuard({ hosts, readToken, actToken, clock });
  const shared = { zk: () => feed.zk, clock };
  const onChange = feed.showActions.bind(feed);
  const acting = { actions: requests.actions, log, signal: stop.signal, onChange };
  const actions = actToken === null ? null : new UiActions({ ...shared, ...acting });
  const details = new UiDetails({ ...shared, answers: { ...requests.answers, "/series": seriesAnswer(feed) } });
  const site = new UiSite({ feed, guard, clock, details, actions, showsBodies: values.showBodies });
  await using service = await serveHttp(address, {
    handle: (request) => site.handle(request),
    clock,
    action: `serve the page on ${formatAddress(address)}`,
    onFailure: (error) => log("detail", "failed", errorMessage(error)),
    ...(tls === null ? {} : { tls }),
  });
  const link = `${tls === null ? "http" : "https"}://${linkHost(service.address, values.hostName)}/`;
  if (values.tokenFile !== undefined) io.out(`${link}\n`);
  else {
    io.out(`${link}#token=${readToken}\n`);
    if (actToken !== null) io.out(`with actions: ${link}#token=${actToken}\n`);
  }
  log(
    "info",
    "serving",
    `serves the page for ${describeWhoReachesSocket(service.address, tls !== null)}, with the token`,
  );
  await Promise.race([feed.run(stop.signal), whenAborted(stop.signal)]);
  throw stop.signal.reason;
}

/** Answers with what was recorded after the time that the page names. */
const seriesAnswer = ({ recorder }: UiFeed): PageAnswer => (query) => {
  const after = query.get("after") ?? "0";
  if (!/^\d{1,15}$/.test(after)) throw new HttpError(400, `"after" must be a time in milliseconds\n`);
  return Promise.resolve(recorder.hourAfter(Number(after), Date.now()));
};

/** Returns the requests of the page that the products answer. Rejects with USAGE or CONFIG for invalid settings. */
async function pageRequests(call: UiCall, { all }: RowSources): Promise<UiPageRequests> {
  const found = await Promise.all(all.map(({ view, source }) => view?.page?.(call, source)));
  const { "/body": body, ...answers }: UiPageRequests["answers"] = Object.assign(
    {},
    ...found.map((one) => one?.answers),
  );
  return {
    answers: body === undefined || !call.values.showBodies ? answers : { ...answers, "/body": body },
    actions: Object.assign({}, ...found.map((one) => one?.actions)),
  };
}

const lower = (name: string) => name.toLowerCase();

const hostText = ({ host }: TcpAddress) => lower(host.includes(":") ? `[${host}]` : host);

/** Returns the address of --listen. Throws USAGE for a unix socket. */
function listenAddressOf({ values, sources }: UiCall): TcpAddress {
  const address = addOriginToErrors(
    "listen",
    ownUiSettings.listen,
    sources,
    () => parseListenAddressFlag(values.listen),
  );
  if (address.kind === "tcp") return address;
  throw new BatonError("USAGE", `--listen ${values.listen}: a browser cannot open a unix socket; write host:port`);
}

/** Returns the files of --listen-cert and --listen-key, or null without them. Throws USAGE or CONFIG. */
function tlsOf({ values, sources }: UiCall, warn: (text: string) => void): TlsFiles | null {
  const { listenCert: cert, listenKey: key } = values;
  if (cert === undefined && key === undefined) return null;
  const settingOf = { ca: "listenCert", cert: "listenCert", key: "listenKey" } as const;
  return new TlsFiles({ cert, key }, {
    at: (name, act) => addOriginToErrors(settingOf[name], ownUiSettings[settingOf[name]], sources, act),
    warn,
  });
}

const newToken = () => randomBytes(32).toString("base64url");

const tokenCharactersMin = 32;

/**
 * Returns the tokens for reading and for actions, from --token-file or newly made. Throws CONFIG for an unsuitable
 * file.
 */
function tokensOf({ tokenFile, allowActions }: UiCall["values"]): {
  readonly readToken: string;
  readonly actToken: string | null;
} {
  if (tokenFile === undefined) return { readToken: newToken(), actToken: allowActions ? newToken() : null };
  const [first, second] = linesOf(tokenFile);
  const readToken = tokenOf(first, tokenFile, "first");
  const actToken = allowActions ? tokenOf(second, tokenFile, "second") : null;
  if (readToken !== actToken) return { readToken, actToken };
  throw new BatonError(
    "CONFIG",
    `--token-file ${tokenFile}: the token for actions must differ from the one for reading`,
  );
}

/** Reads the lines of the token file. Throws CONFIG if other users can read it. */
function linesOf(file: string): string[] {
  const bytes = readConfiguredFile(file, `--token-file ${file}`);
  checkPrivateFile(file, "--token-file");
  return new TextDecoder().decode(bytes).split(/\r?\n/);
}

function tokenOf(token: string | undefined, file: string, line: "first" | "second"): string {
  if (token !== undefined && token.length >= tokenCharactersMin && /^[\w.~+/=-]+$/.test(token)) return token;
  const what = line === "first" ? "" : ", the token for actions,";
  throw new BatonError(
    "CONFIG",
    `--token-file ${file}: its ${line} line${what} must have at least ${tokenCharactersMin} of the characters ` +
      "A-Z a-z 0-9 - _ . ~ + / =, such as the output of: openssl rand -hex 32",
  );
}

/**
 * Returns the host and port for the printed link. A browser cannot open 0.0.0.0, so a host name replaces that address.
 */
function linkHost(address: Address, [name]: readonly string[] = []): string {
  if (address.kind === "unix") return formatAddress(address);
  const isAll = address.host === "0.0.0.0" || address.host === "::";
  return formatAddress({ ...address, host: isAll ? name ?? "localhost" : address.host });
}

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

/** Answers the HTTP requests of the page: its files, the stream of rows, details and actions. */
class UiSite {
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
