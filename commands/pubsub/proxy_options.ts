/** Settings of `baton pubsub proxy`, and the identity of a proxy. */
import { pubsubKeySettings, pubsubProxySettings, pubsubServiceSettings } from "../../src/config/pubsub_settings.ts";
import { logSettings } from "../../src/config/command_settings.ts";
import type { SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import type { Call } from "../command.ts";
import { readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { basename } from "node:path";
import process from "node:process";
import { machineId } from "../../src/pubsub/server/server_identity.ts";

export const proxyCommandSettings = {
  ...pubsubProxySettings,
  ...pubsubKeySettings,
  ...pubsubServiceSettings,
  ...logSettings,
  ...connectionSettings,
} satisfies SettingTable;

export type PubsubProxyCall = Call<typeof proxyCommandSettings>;

const loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * Returns the same ID at each start, so that a killed proxy is recognized. The advertised address is part of it,
 * because containers and copied machines may share a host name and a port.
 */
export function defaultProxyId(endpoint: string): string {
  const [, host = "", port] = /^tcp:\/\/(.*):(\d+)$/.exec(endpoint) ?? [];
  if (port === undefined) return `${hostname()}-${basename(endpoint)}`;
  const place = port === "0" ? process.pid : port;
  if (loopback.test(host)) return `${hostname()}-${place}`;
  const isName = /[a-z]/i.test(host) && !host.includes(":");
  return isName ? `${host}-${place}` : `${hostname()}-${host.replace(/[[\]]/g, "")}-${place}`;
}

/**
 * Identifies the endpoints in their network, which only one process can use at a time: machine, boot and network
 * namespace. An announcement of another process for the same endpoints is therefore left over from an earlier process.
 */
export function proxyPlace(endpoints: readonly string[]): string {
  return [hostname(), machineId(), ...networkNamespace(), ...endpoints].join(" ");
}

/** Empty on systems without network namespaces, such as macOS. */
function networkNamespace(): string[] {
  try {
    const start = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return [start, String(statSync("/proc/self/ns/net", { bigint: true }).ino)];
  } catch {
    return [];
  }
}
