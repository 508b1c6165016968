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
import { machineId } from "../../src/pubsub/server/store_location.ts";

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
 * The same at each start, so that a proxy that was killed is known again; made of the address that others dial, where it is
 * one: containers and machines that were copied may have the same name, and listen on the same port.
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
 * What only one process at a time can have: these endpoints, in this network. A port belongs to one process of a network
 * namespace, and the machine, its start and the namespace's number say which one that is: what another process has announced of
 * the same is what an earlier life has left.
 */
export function proxyPlace(endpoints: readonly string[]): string {
  return [hostname(), machineId(), ...networkNamespace(), ...endpoints].join(" ");
}

/** Empty where there are none, as on macOS. */
function networkNamespace(): string[] {
  try {
    const start = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return [start, String(statSync("/proc/self/ns/net", { bigint: true }).ino)];
  } catch {
    return [];
  }
}
