/**
 * Where publish/subscribe stands in the tree, and any string as one name in it:
 *
 *   <root>/pubsub/servers/<id>            ephemeral: a server that is there
 *   <root>/pubsub/proxies/<id>            ephemeral: a proxy that is there
 *   <root>/pubsub/topics/<00-ff>/<name>   who owns a topic; the shard is the first byte of its SHA-256
 *   <root>/pubsub/owners/<id>/<name>      a topic counted for its owner: what assignments go by, and nothing else
 *   <root>/pubsub/stores/<store id>       how old a server's store was when it said so last
 *
 * Shards, because a list of children comes in one frame of a megabyte: 400,000 topics of short names, 60,000 of the longest.
 */
import { createHash } from "node:crypto";
import { BatonError } from "../../errors.ts";
import { tokenBytesMax } from "../../wire/pubsub/message_limits.ts";
import { defaultRoot } from "../../coordination/lock/lock_path.ts";

/** Names that are longer when written into a path are written as their hash. */
const nodeNameLengthMax = 200;

const utf8 = new TextEncoder();

export class PubsubPath {
  readonly base: string;

  /** `root` is a path of ZooKeeper's, without a slash at its end. */
  constructor(root: string = defaultRoot) {
    this.base = root === "/" ? "/pubsub" : `${root}/pubsub`;
  }

  get servers(): string {
    return `${this.base}/servers`;
  }

  get proxies(): string {
    return `${this.base}/proxies`;
  }

  get topics(): string {
    return `${this.base}/topics`;
  }

  server(id: string): string {
    return `${this.servers}/${nodeName(id)}`;
  }

  proxy(id: string): string {
    return `${this.proxies}/${nodeName(id)}`;
  }

  store(storeId: string): string {
    return `${this.base}/stores/${nodeName(storeId)}`;
  }

  topic(topic: string): string {
    return `${this.topics}/${shardOf(topic)}/${nodeName(topic)}`;
  }

  /** The node whose children are counted for a server. */
  ownedBy(id: string): string {
    return `${this.base}/owners/${nodeName(id)}`;
  }

  owned(id: string, topic: string): string {
    return `${this.ownedBy(id)}/${nodeName(topic)}`;
  }

  /** Every shard that may have topics, in order. */
  shards(): string[] {
    return Array.from({ length: 256 }, (_, byte) => `${this.topics}/${byte.toString(16).padStart(2, "0")}`);
  }
}

function shardOf(topic: string): string {
  return hashOf(topic).slice(0, 2);
}

/**
 * Letters, digits, `-` and `_` as they are, all else as %XX, so that no two names meet; a long one as `~` and its hash, which
 * no other name begins with. The name itself stands in the node's data. Throws BAD_DATA for what is no name at all.
 */
export function nodeName(name: string): string {
  const refuse = (why: string) => new BatonError("BAD_DATA", `${JSON.stringify(name.slice(0, 64))} is no name: ${why}`);
  if (name === "") throw refuse("it is empty");
  if (!name.isWellFormed()) throw refuse("it is not valid Unicode");
  const bytes = utf8.encode(name);
  if (bytes.length > tokenBytesMax) throw refuse(`it has ${bytes.length} bytes, and ${tokenBytesMax} is the most`);
  let written = "";
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    const isPlain = /[\w.-]/.test(character) && !(character === "." && written === "");
    written += isPlain ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return written.length <= nodeNameLengthMax ? written : `~${hashOf(name)}`;
}

function hashOf(name: string): string {
  return createHash("sha256").update(name).digest("hex");
}
