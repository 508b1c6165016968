/**
 * Reads the client list, in which each line gives permissions to a key. Its fields are the public key, client IDs,
 * topics, and allowed operations:
 *
 *   KEY  alice,app-*  news,sport/*  get,put
 *
 * Commas separate the entries of a list. An entry is a name, encoded as in a message's header. An entry with `*` at the
 * end means all names with this beginning. Several lines may have the same key.
 */
import { BatonError } from "../base/errors.ts";
import type { PubsubMessage } from "./wire/pubsub_messages.ts";
import { decodeNameToken } from "./wire/name_token.ts";

const operations = ["get", "put", "list"] as const;
type AclOperation = (typeof operations)[number];

/**
 * The operation that a client must be allowed to do for each message; null if every connected client may send it. Only
 * servers may send messages that are missing here.
 */
const requiredOperations: Partial<Record<PubsubMessage["name"], AclOperation | null>> = {
  SUBSCRIBE: "get",
  UNSUBSCRIBE: "get",
  GET: "get",
  SEEK: "get",
  INFO: "get",
  PUT: "put",
  TOPICS: "list",
  HELLO: null,
};

/** The parts of a message on which permissions depend. If a message is not about a topic, it has no `topic`. */
export interface MessageToAuthorize {
  readonly name: PubsubMessage["name"];
  readonly sender: string;
  readonly topic?: string;
}

interface NamePattern {
  readonly text: string;
  readonly isPrefix: boolean;
}

interface AclRule {
  readonly ids: readonly NamePattern[];
  readonly topics: readonly NamePattern[];
  readonly operations: readonly AclOperation[];
}

const keyLength = 40;

export class ClientAcl {
  readonly #rules: ReadonlyMap<string, readonly AclRule[]>;

  private constructor(rules: ReadonlyMap<string, readonly AclRule[]>) {
    this.#rules = rules;
  }

  /** Reads the client list `text`. Throws CONFIG with the number of an invalid line. */
  static parse(text: string, file: string): ClientAcl {
    const rules = new Map<string, AclRule[]>();
    for (const [index, line] of text.split("\n").entries()) {
      const words = line.split(/\s+/).filter((word) => word !== "");
      if (words.length === 0 || words[0] === "#") continue;
      const refuse = (why: string) => new BatonError("CONFIG", `${file}, line ${index + 1}: ${why}`);
      const [key = "", ids = "", topics = "", may = "", ...more] = words;
      if (may === "" || more.length > 0) throw refuse("a line has four fields: KEY IDS TOPICS get,put,list");
      if (key.length !== keyLength) {
        throw refuse(`"${key}" is not a public key in Z85, which has ${keyLength} characters`);
      }
      const rule = {
        ids: parsePatterns(ids, refuse),
        topics: parsePatterns(topics, refuse),
        operations: parseOperations(may, refuse),
      };
      rules.set(key, [...rules.get(key) ?? [], rule]);
    }
    return new ClientAcl(rules);
  }

  get size(): number {
    return this.#rules.size;
  }

  hasKey(publicKey: string): boolean {
    return this.#rules.has(publicKey);
  }

  /** Returns null if the message is allowed; otherwise a sentence that tells the client why the message is refused. */
  refusalReason(publicKey: string, message: MessageToAuthorize): string | null {
    const operation = requiredOperations[message.name];
    if (operation === null) return null;
    if (operation === undefined) return `${message.name} is for servers`;
    const { topic = null } = message;
    const rules = (this.#rules.get(publicKey) ?? []).filter(({ ids }) => matchesAny(ids, message.sender));
    if (rules.length === 0) return `this key may not use the client ID ${JSON.stringify(message.sender)}`;
    const mayDo = rules.some((rule) =>
      rule.operations.includes(operation) && (topic === null || matchesAny(rule.topics, topic))
    );
    if (mayDo) return null;
    return `this key may not ${operation}${topic === null ? "" : ` at topic ${JSON.stringify(topic)}`}`;
  }
}

function parsePatterns(list: string, refuse: (why: string) => BatonError): NamePattern[] {
  return list.split(",").map((entry) => {
    const isPrefix = entry.endsWith("*");
    const written = isPrefix ? entry.slice(0, -1) : entry;
    if (isPrefix && written === "") return { text: "", isPrefix };
    const text = decodeNameToken(written);
    if (text === undefined) throw refuse(`"${entry}" is not a percent-encoded name`);
    return { text, isPrefix };
  });
}

function parseOperations(list: string, refuse: (why: string) => BatonError): AclOperation[] {
  return list.split(",").map((word) => {
    const operation = operations.find((known) => known === word);
    if (operation === undefined) throw refuse(`"${word}" is none of ${operations.join(", ")}`);
    return operation;
  });
}

function matchesAny(all: readonly NamePattern[], name: string): boolean {
  return all.some(({ text, isPrefix }) => isPrefix ? name.startsWith(text) : name === text);
}
