/** `kafka://broker,broker/Topic?option=value`: a Kafka topic as users write it. Pure; files that it names are read elsewhere. */
import { type KafkaCredentials, saslMechanisms } from "../../src/kafka/sasl_mechanisms.ts";
import { BatonError } from "../../src/errors.ts";
import type { Address } from "../../src/sockets/connection.ts";
import { parseAddress } from "../../src/sockets/parse_address.ts";

export interface KafkaPlace {
  readonly brokers: readonly Address[];
  readonly topic: string;
  /** How the topic is made when it is not there; null: it is not. -1 leaves it to the broker. */
  readonly makes: { readonly partitions: number; readonly replication: number } | null;
  /** File names; null: no TLS. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string } | null;
  readonly login: {
    readonly mechanism: KafkaCredentials["mechanism"];
    readonly user: string;
    readonly passwordFile: string;
  } | null;
}

/** As the help shows it. */
export const kafkaForm = "kafka://BROKER[:9092][,BROKER]/TOPIC[?create=yes]";

const optionNames = [
  "create",
  "partitions",
  "replication",
  "tls",
  "ca",
  "cert",
  "key",
  "user",
  "password-file",
  "mechanism",
] as const;
type Options = Partial<Record<(typeof optionNames)[number], string>>;

/** Throws USAGE. */
export function parseKafkaPlace(written: string): KafkaPlace {
  const [, hosts = "", topic = "", query = ""] = /^kafka:\/\/([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(written) ?? [];
  // Kafka, Topic.java: the names that a topic may have.
  if (!/^[A-Za-z0-9._-]{1,249}$/.test(topic) || topic === "." || topic === "..") {
    throw wrong(written, `"${topic}" cannot be a topic: write up to 249 letters, digits, dots, dashes and underlines`);
  }
  const options = optionsOf(written, query);
  const { create, partitions, replication, tls, ca, cert, key, user, "password-file": passwordFile, mechanism } =
    options;
  const makes = yesOrNo(written, "create", create);
  if (!makes && (partitions ?? replication) !== undefined) {
    throw wrong(written, "partitions and replication are for a topic that is made, by create=yes");
  }
  const isEncrypted = yesOrNo(written, "tls", tls ?? ([ca, cert, key].some(isGiven) ? "yes" : undefined));
  if (!isEncrypted && [ca, cert, key].some(isGiven)) throw wrong(written, "ca, cert and key are for tls=yes");
  if (isGiven(user) !== isGiven(passwordFile)) throw wrong(written, "user and password-file go together");
  if (isGiven(mechanism) && !isGiven(user)) throw wrong(written, "mechanism is for a user");
  return {
    brokers: brokersOf(written, hosts),
    topic,
    makes: makes
      ? {
        partitions: countOf(written, "partitions", partitions),
        replication: countOf(written, "replication", replication),
      }
      : null,
    tls: isEncrypted ? { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) } : null,
    login: user !== undefined && passwordFile !== undefined
      ? { mechanism: mechanismOf(written, mechanism ?? "PLAIN"), user, passwordFile }
      : null,
  };
}

function optionsOf(written: string, query: string): Options {
  const options: Options = {};
  for (const [name, value] of new URLSearchParams(query)) {
    const known = optionNames.find((each) => each === name);
    if (known === undefined) throw wrong(written, `there is no option "${name}", but ${optionNames.join(", ")}`);
    if (value === "") throw wrong(written, `${name} is empty`);
    options[known] = value;
  }
  return options;
}

function brokersOf(written: string, hosts: string): Address[] {
  if (hosts.includes("@")) throw wrong(written, "a user is named by user= and password-file=, everybody can read argv");
  return hosts.split(",").map((host) => {
    const address = parseAddress(/:\d+$/.test(host) ? host : `${host}:9092`);
    if (address === null || host.startsWith("unix:")) {
      throw wrong(written, `"${host}" is no broker: write HOST or HOST:PORT`);
    }
    return address;
  });
}

function mechanismOf(written: string, name: string): KafkaCredentials["mechanism"] {
  const known = saslMechanisms.find((each) => each === name.toUpperCase());
  if (known === undefined) throw wrong(written, `mechanism=${name} is none of ${saslMechanisms.join(", ")}`);
  return known;
}

function countOf(written: string, name: string, value: string | undefined): number {
  if (value === undefined) return -1;
  if (!/^[1-9]\d{0,4}$/.test(value) || Number(value) > 32_767) {
    throw wrong(written, `${name}=${value} is not a number from 1 to 32767`);
  }
  return Number(value);
}

function yesOrNo(written: string, name: string, value: string | undefined): boolean {
  if (value !== undefined && value !== "yes" && value !== "no") {
    throw wrong(written, `${name}=${value} is not yes or no`);
  }
  return value === "yes";
}

function isGiven(value: string | undefined): boolean {
  return value !== undefined;
}

function wrong(written: string, why: string): BatonError {
  return new BatonError("USAGE", `"${written}" is no Kafka topic: ${why}; wanted is ${kafkaForm}`);
}
