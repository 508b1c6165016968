/** The endpoint that a role tells others, checked before anything is started. */
import { formatEndpoint, parseBindEndpoint, parseEndpoint } from "../../src/clients/zeromq/endpoint.ts";
import { BatonError } from "../../src/errors.ts";

/** 0.0.0.0 and ::, in every way to write them. */
const everyAddress = /^[0:.]+$/;

/** Throws USAGE for what nobody could dial. */
export function checkAdvertised(listen: string, advertise: string | undefined): void {
  const listened = parseBindEndpoint(listen);
  const told = advertise === undefined ? listened : parseEndpoint(advertise);
  if (told.kind !== "tcp" || !everyAddress.test(told.host)) return;
  const endpoint = formatEndpoint(told);
  const example = "as in --advertise tcp://HOST:PORT";
  throw new BatonError(
    "USAGE",
    advertise === undefined
      ? `--listen ${endpoint} is every address of this machine, and none that others could be told: ` +
        `--advertise says where they reach it, ${example}`
      : `--advertise ${endpoint} is every address of a machine, and none that others could dial: wanted is ` +
        `this machine's name or one of its addresses, ${example}`,
  );
}
