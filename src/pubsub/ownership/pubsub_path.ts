/**
 * The paths of publish/subscribe in the tree:
 *
 *   <root>/pubsub/servers/<id>            ephemeral: a running server
 *   <root>/pubsub/proxies/<id>            ephemeral: a running proxy
 *   <root>/pubsub/topics/<00-ff>/<name>   a topic's owner; the shard is the first byte of the name's SHA-256
 *   <root>/pubsub/owners/<id>/<name>      counts a topic for its owner, for assignments only
 *   <root>/pubsub/stores/<store id>       the last recorded generation of a server's store
 *   <root>/pubsub/stores/<store id>/<id>  the same for a server of a shared store
 *
 * A list of children is one frame of at most 1 MB. 256 shards therefore have room for 400,000 topics with short names,
 * or for 60,000 topics with the longest names.
 */
import { sha256Hex } from "../../base/support/digest.ts";
import { BatonError } from "../../base/errors.ts";
import { nameTokenBytesMax } from "../wire/message_limits.ts";
import { defaultRootNode } from "../../coordination/nodes/node_paths.ts";

/** The longest node name. If a name would be longer, its hash is used. */
const nodeNameLengthMax = 200;

const utf8 = new TextEncoder();

export class PubsubPath {
  readonly base: string;
  readonly servers: string;
  readonly proxies: string;
  readonly topics: string;

  /** `root` is a ZooKeeper path without a slash at its end. */
  constructor(root: string = defaultRootNode) {
    this.base = root === "/" ? "/pubsub" : `${root}/pubsub`;
    this.servers = `${this.base}/servers`;
    this.proxies = `${this.base}/proxies`;
    this.topics = `${this.base}/topics`;
  }

  server(id: string): string {
    return `${this.servers}/${encodeNodeName(id)}`;
  }

  proxy(id: string): string {
    return `${this.proxies}/${encodeNodeName(id)}`;
  }

  store(storeId: string): string {
    return `${this.base}/stores/${encodeNodeName(storeId)}`;
  }

  storeMark(storeId: string, server: string): string {
    return `${this.store(storeId)}/${encodeNodeName(server)}`;
  }

  topic(topic: string): string {
    return `${this.topics}/${hashOf(topic).slice(0, 2)}/${encodeNodeName(topic)}`;
  }

  /** The parent node of all nodes that count topics for a server. */
  ownedTopics(id: string): string {
    return `${this.base}/owners/${encodeNodeName(id)}`;
  }

  ownedTopic(id: string, topic: string): string {
    return `${this.ownedTopics(id)}/${encodeNodeName(topic)}`;
  }

  shards(): string[] {
    return Array.from({ length: 256 }, (_, byte) => `${this.topics}/${byte.toString(16).padStart(2, "0")}`);
  }
}

/**
 * Encodes a name as one path component. Keeps letters, digits, `.`, `-` and `_`, and writes other bytes as %XX, so that
 * different names stay different. A long name becomes `~` and its hash; no other encoded name starts with `~`. The
 * node's data contains the complete name. Throws BAD_DATA for an invalid name.
 */
export function encodeNodeName(name: string): string {
  const refuse = (why: string) =>
    new BatonError("BAD_DATA", `${JSON.stringify(name.slice(0, 64))} is not a valid name: ${why}`);
  if (name === "") throw refuse("it is empty");
  if (!name.isWellFormed()) throw refuse("it is not valid Unicode");
  const bytes = utf8.encode(name);
  if (bytes.length > nameTokenBytesMax) throw refuse(`it has ${bytes.length} bytes; the limit is ${nameTokenBytesMax}`);
  let written = "";
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    const isPlain = /[\w.-]/.test(character) && !(character === "." && written === "");
    written += isPlain ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return written.length <= nodeNameLengthMax ? written : `~${hashOf(name)}`;
}

function hashOf(name: string): string {
  return sha256Hex(name);
}
