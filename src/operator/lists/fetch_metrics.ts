/** Fetches the /metrics page of a baton process over HTTP. */
import { request } from "node:http";
import { type Address, formatAddress } from "../../base/sockets/connection.ts";
import { describeSocketFailure } from "../../base/sockets/describe_failure.ts";
import type { MetricsProcessKind, ProcessMetricsRow } from "../../base/rows/process_row.ts";
import { parseProcessMetrics } from "./parse_metrics.ts";

/** How long to wait for a response, in milliseconds; short, because watched lists are read every few seconds. */
const responseMsMax = 1500;
const bytesMax = 4 << 20;

/** Returns the address to connect to. For a process that listens on all addresses, this is the loopback address. */
export function localDialAddress(address: Address): Address {
  if (address.kind === "unix") return address;
  const host = address.host === "0.0.0.0" ? "127.0.0.1" : address.host === "::" ? "::1" : address.host;
  return { ...address, host };
}

/** Fetches and parses the metrics of a process. A failure does not reject; the field `error` of the row contains it. */
export async function fetchProcessMetrics(
  address: Address,
  { kinds, signal }: { readonly kinds: readonly MetricsProcessKind[]; readonly signal: AbortSignal },
): Promise<ProcessMetricsRow> {
  const name = formatAddress(address);
  try {
    const text = await fetchText(localDialAddress(address), signal);
    return parseProcessMetrics(name, text, kinds) ?? unreachable(name, "these are no metrics of baton");
  } catch (thrown) {
    return unreachable(name, describeSocketFailure(thrown));
  }
}

const unreachable = (address: string, error: string): ProcessMetricsRow => ({
  address,
  process: null,
  error,
  counters: {},
  gauges: {},
  disk_free_bytes: null,
});

function fetchText(address: Address, stop: AbortSignal): Promise<string> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(responseMsMax)]);
  const place = address.kind === "unix" ? { socketPath: address.path } : { host: address.host, port: address.port };
  return new Promise((resolve, reject) => {
    const sent = request({ ...place, path: "/metrics", agent: false, signal }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > bytesMax) sent.destroy(new Error("the response is too long"));
      });
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`HTTP status ${response.statusCode}`));
      });
    });
    sent.on("error", (error) => reject(signal.aborted && !stop.aborted ? new Error("no response in time") : error));
    sent.end();
  });
}
