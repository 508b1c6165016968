/** `baton retry-processor serve`: its words. What it does is in run_serve.ts. */
import {
  retryLimitSettings,
  retryPolicySettings,
  retryProcessorSettings,
  retryRedactSettings,
  retryServeSettings,
  retryStoreSettings,
} from "../../src/config/retry_settings.ts";
import { logSettings } from "../../src/config/command_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { duration, text, toggle } from "../../src/config/value_types.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";
import { topicSettings } from "./topic_words.ts";

export const serveSettings = {
  ...retryStoreSettings,
  listen: setting(text("host:port|unix:PATH"), {
    flag: "--listen",
    once: true,
    help: "where callers reach it; :PORT means this machine only, port 0 any that is free",
    default: "127.0.0.1:0",
  }),
  url: setting(text("url"), { flag: "--url", help: "the backend; what callers ask for stands behind its path" }),
  noProcess: setting(toggle(), {
    flag: "--no-process",
    help: "only answer and store; baton retry-processor run tries what is stored",
    default: false,
  }),
  killAfter: setting(duration(), {
    flag: "--kill-after",
    help: "how long the command of --dead-letter exec: has to end before it is killed",
    default: 5000,
  }),
  ...retryServeSettings,
  ...logSettings,
  ...retryPolicySettings,
  ...retryRedactSettings,
  ...retryProcessorSettings,
  ...retryLimitSettings,
  ...topicSettings,
} satisfies SettingTable;

export type ServeCall = Call<typeof serveSettings>;

export const retryServeCommand = defineCommand({
  name: "retry-processor serve",
  summary: "an HTTP proxy that stores what its backend could not take, and redelivers it",
  usage: "--url URL [--listen ADDRESS] [options]",
  details: [
    "Passes each request to the backend: method, path, headers, body, and its answer back. When the backend cannot be reached the " +
    "caller has a fault at once and the message is stored, on the disk before the fault is sent: 502, 504 when it did not answer within " +
    "--attempt-timeout, 503 when the breaker is open. A status that is worth another try (408, 425, 429, 5xx) is passed on as it came, and " +
    "stored. The header Baton-Message-Id has the stored message's id; without it nothing is stored.",
    "503 with `NOT STORED` in its body: the store is full, or failed. 413: the body is over --max-body. Requests that ask for nothing to be done " +
    "(GET, HEAD, OPTIONS) are passed on and never stored. A fault is JSON, or a SOAP 1.1 fault for who sends a SOAPAction.",
    "A backend that hangs delays no other caller: at most --max-backend-requests are there at the same time, and one more is stored without a " +
    "first try (503 with Baton-Message-Id). A body that does not arrive within --body-timeout is refused (408). When requests in progress take " +
    "--body-memory, no more is read from connections; one that is too slow, or gets no memory within --body-timeout, is refused (503 with Retry-After, " +
    "NOT STORED). A " +
    "connection above --max-connections takes the place of the one that has been without a request for longest.",
    "Every request gets an Idempotency-Key unless it has one, the same for all tries of it: a backend that knows it deals with no message twice.",
    "With --elect each of several answers and stores, and one of them tries what is stored, as with run --elect.",
    "Stored messages are tried again as by run, unless --no-process; with --from-topic also what is put into a topic. It runs until SIGTERM, SIGINT or SIGHUP.",
  ],
  examples: [
    [
      "baton retry-processor serve --name stock --url http://backend:9000/stock --interval 3s --max-retries 10",
      "the article's proxy service: N tries, each T later",
    ],
    [
      "baton retry-processor serve --listen :8280 --url https://backend/api --breaker-failures 5",
      "spare a backend that is down",
    ],
  ],
  settings: serveSettings,
  runsNothing: true,
  run: async (call): Promise<ExitCode> => (await import("./run_serve.ts")).runServe(call),
});
