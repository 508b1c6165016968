/**
 * Parses the destination of dead letters: `store`, `drop`, `file:PATH`, `exec:LINE`, `topic:NAME`,
 * `kafka://broker,broker/Topic?option=value`. Reads none of the files that a destination names.
 */
import { resolve } from "node:path";
import { addOriginToErrors, type ConfigSources } from "../../base/config/resolve_settings.ts";
import { retryPolicySettings } from "../settings/retry_settings.ts";
import type { SettingValues } from "../../base/config/setting.ts";
import { type KafkaCredentials, kafkaSaslMechanisms } from "../../protocols/kafka/sasl_mechanisms.ts";
import { BatonError } from "../../base/errors.ts";
import type { Address } from "../../base/sockets/connection.ts";
import { parseAddress } from "../../base/sockets/parse_address.ts";

export interface KafkaDestination {
  readonly brokers: readonly Address[];
  readonly topic: string;
  /** How to create a missing topic; -1 means the broker's default. Null if a missing topic is not created. */
  readonly create: { readonly partitions: number; readonly replication: number } | null;
  /** The names of the TLS files; null means no TLS. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string } | null;
  readonly login: {
    readonly mechanism: KafkaCredentials["mechanism"];
    readonly user: string;
    readonly passwordFile: string;
  } | null;
}

export type DeadLetterDestination =
  | { readonly kind: "store" }
  | { readonly kind: "drop" }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "exec"; readonly line: string }
  | { readonly kind: "topic"; readonly topic: string }
  | { readonly kind: "kafka"; readonly topic: KafkaDestination };

/** Parses the destination of dead letters. Throws USAGE. */
export function readDeadLetterDestination(
  { retryDeadLetter: written }: SettingValues<typeof retryPolicySettings>,
  sources: ConfigSources,
): DeadLetterDestination {
  if (written === "store") return { kind: "store" };
  if (written === "drop") return { kind: "drop" };
  const [, kind, rest] = /^(file|exec|topic):(.+)$/s.exec(written) ?? [];
  if (kind === "file" && rest !== undefined) return { kind, path: resolve(rest) };
  if (kind === "exec" && rest !== undefined) return { kind, line: rest };
  if (kind === "topic" && rest !== undefined) return { kind, topic: rest };
  return addOriginToErrors("retryDeadLetter", retryPolicySettings.retryDeadLetter, sources, () => {
    if (written.startsWith("kafka://")) return { kind: "kafka", topic: parseKafkaDestination(written) };
    throw new BatonError(
      "USAGE",
      `"${written}" is not a destination for dead letters: use store, drop, file:PATH, exec:LINE, topic:NAME or ` +
        kafkaDestinationForm,
    );
  });
}

/** The form that help and messages show. */
export const kafkaDestinationForm = "kafka://BROKER[:9092][,BROKER]/TOPIC[?create=yes]";

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
type KafkaOptions = Partial<Record<(typeof optionNames)[number], string>>;

/** Parses a Kafka destination. Throws USAGE. */
export function parseKafkaDestination(written: string): KafkaDestination {
  const [, hosts = "", topic = "", query = ""] = /^kafka:\/\/([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(written) ?? [];
  // Names that Kafka allows (Topic.java).
  if (!/^[A-Za-z0-9._-]{1,249}$/.test(topic) || topic === "." || topic === "..") {
    throw invalidDestinationError(
      written,
      `"${topic}" is not a valid topic name: use 1 to 249 letters, digits, dots, dashes and underscores`,
    );
  }
  const options = optionsOf(written, query);
  const { create, partitions, replication, tls, ca, cert, key, user, "password-file": passwordFile, mechanism } =
    options;
  const isCreated = parseYesOrNo(written, "create", create);
  if (!isCreated && (partitions ?? replication) !== undefined) {
    throw invalidDestinationError(written, "partitions and replication need create=yes");
  }
  const isEncrypted = parseYesOrNo(written, "tls", tls ?? ([ca, cert, key].some(isGiven) ? "yes" : undefined));
  if (!isEncrypted && [ca, cert, key].some(isGiven)) {
    throw invalidDestinationError(written, "ca, cert and key need tls=yes");
  }
  if (isGiven(user) !== isGiven(passwordFile)) {
    throw invalidDestinationError(written, "user and password-file need each other");
  }
  if (isGiven(mechanism) && !isGiven(user)) throw invalidDestinationError(written, "mechanism needs user");
  return {
    brokers: brokersOf(written, hosts),
    topic,
    create: isCreated
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

function optionsOf(written: string, query: string): KafkaOptions {
  const options: KafkaOptions = {};
  for (const [name, value] of new URLSearchParams(query)) {
    const known = optionNames.find((each) => each === name);
    if (known === undefined) {
      throw invalidDestinationError(written, `unknown option "${name}"; known are ${optionNames.join(", ")}`);
    }
    if (value === "") throw invalidDestinationError(written, `${name} is empty`);
    options[known] = value;
  }
  return options;
}

function brokersOf(written: string, hosts: string): Address[] {
  if (hosts.includes("@")) {
    throw invalidDestinationError(
      written,
      "give the user by user= and password-file=: a password on a command line is visible to all users",
    );
  }
  return hosts.split(",").map((host) => {
    const address = parseAddress(/:\d+$/.test(host) ? host : `${host}:9092`);
    if (address === null || host.startsWith("unix:")) {
      throw invalidDestinationError(written, `"${host}" is not a broker address: use HOST or HOST:PORT`);
    }
    return address;
  });
}

function mechanismOf(written: string, name: string): KafkaCredentials["mechanism"] {
  const known = kafkaSaslMechanisms.find((each) => each === name.toUpperCase());
  if (known === undefined) {
    throw invalidDestinationError(written, `mechanism=${name} is unknown; known are ${kafkaSaslMechanisms.join(", ")}`);
  }
  return known;
}

function countOf(written: string, name: string, value: string | undefined): number {
  if (value === undefined) return -1;
  if (!/^[1-9]\d{0,4}$/.test(value) || Number(value) > 32_767) {
    throw invalidDestinationError(written, `${name}=${value} is not a number from 1 to 32767`);
  }
  return Number(value);
}

function parseYesOrNo(written: string, name: string, value: string | undefined): boolean {
  if (value !== undefined && value !== "yes" && value !== "no") {
    throw invalidDestinationError(written, `${name}=${value} is not yes or no`);
  }
  return value === "yes";
}

function isGiven(value: string | undefined): boolean {
  return value !== undefined;
}

function invalidDestinationError(written: string, why: string): BatonError {
  return new BatonError("USAGE", `"${written}" is not a valid Kafka destination: ${why}; use ${kafkaDestinationForm}`);
}
