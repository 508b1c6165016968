/** The endpoint that a role tells others, checked before anything is started. */
import { formatEndpoint, parseBindEndpoint, parseEndpoint } from "../../src/clients/zeromq/endpoint.ts";
import { BatonError } from "../../src/errors.ts";

/** Throws USAGE for what nobody could dial. */
export function checkAdvertised(listen: string, advertise: string | undefined): void {
  const address = parseBindEndpoint(listen);
  if (advertise !== undefined) return void parseEndpoint(advertise);
  if (address.kind !== "tcp" || !["0.0.0.0", "::"].includes(address.host)) return;
  throw new BatonError(
    "USAGE",
    `--listen ${formatEndpoint(address)} is every address of this machine, and none that others could be told: ` +
      "--advertise says where they reach it, as in --advertise tcp://HOST:PORT",
  );
}
