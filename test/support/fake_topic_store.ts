/**
 * A server's topic store in memory that survives its process: what a disk would. Durable as soon as a call resolves.
 */
import { createHash } from "node:crypto";
import type {
  IncomingContent,
  OutgoingContent,
  OwnedStore,
  TopicContentId,
  TopicCopies,
  TopicCopy,
} from "../../src/pubsub/store/operations/owned_store.ts";
import { BatonError } from "../../src/base/errors.ts";
import { newGuid } from "../../src/base/support/guid.ts";

export interface FakeContent {
  readonly log: readonly string[];
  /** Sequence number up to which the subscriber is done. */
  readonly cursor: number;
}

interface Row {
  copy: (TopicCopy & FakeContent) | null;
  staged: (TopicContentId & FakeContent) | null;
  dropped: TopicCopies["dropped"];
  readonly aside: FakeContent[];
}

const utf8 = new TextEncoder();

export class FakeTopicStore implements OwnedStore {
  readonly storeId = newGuid();
  readonly rows = new Map<string, Row>();
  /** Says FULL to what is sent to it. */
  isFull = false;
  #age = 0;
  #isChanged = true;

  generation(): Promise<number> {
    return Promise.resolve(this.#age);
  }

  raiseGeneration(above = 0): Promise<number | null> {
    if (!this.#isChanged && above === 0) return Promise.resolve(null);
    this.#isChanged = false;
    return Promise.resolve(this.#age = Math.max(this.#age, above) + 1);
  }

  /** A publisher's message: the sequence number. Throws when the copy is not open at the epoch it was let in for. */
  put(topic: string, epoch: number, id: string): number {
    const { copy } = this.row(topic);
    if (copy === null || copy.epoch !== epoch || copy.sealedFor !== null) {
      throw new BatonError("UNREACHABLE", "NOT_OWNER");
    }
    const log = copy.log.includes(id) ? copy.log : [...copy.log, id];
    this.#isChanged = true;
    this.row(topic).copy = { ...copy, log };
    return copy.baseOffset + log.indexOf(id) + 1;
  }

  /** A subscriber is done with everything up to `seq`. */
  move(topic: string, epoch: number, seq: number): void {
    const { copy } = this.row(topic);
    if (copy === null || copy.epoch !== epoch || copy.sealedFor !== null) {
      throw new BatonError("UNREACHABLE", "NOT_OWNER");
    }
    this.row(topic).copy = { ...copy, cursor: Math.max(copy.cursor, seq) };
  }

  content(topic: string): FakeContent | null {
    const { copy } = this.row(topic);
    return copy === null ? null : { log: copy.log, cursor: copy.cursor };
  }

  row(topic: string): Row {
    let row = this.rows.get(topic);
    if (row === undefined) this.rows.set(topic, row = { copy: null, staged: null, dropped: null, aside: [] });
    return row;
  }

  async isEmpty(): Promise<boolean> {
    return (await this.topics()).length === 0;
  }

  topics(): Promise<readonly string[]> {
    const stored = [...this.rows].filter(([, { copy, staged }]) => copy !== null || staged !== null);
    return Promise.resolve(stored.map(([topic]) => topic));
  }

  copiesOf(topic: string): Promise<TopicCopies> {
    return Promise.resolve(this.row(topic));
  }

  async create(topic: string, copy: Omit<TopicCopy, "sealedFor">): Promise<void> {
    await Promise.resolve();
    const there = this.row(topic).copy;
    if (there !== null && there.log.length > 0) throw new Error(`${topic} is there, with messages`);
    this.row(topic).copy = { ...copy, sealedFor: null, log: [], cursor: copy.baseOffset };
  }

  async seal(topic: string, epoch: number, to: string): Promise<void> {
    await Promise.resolve();
    const { copy } = this.row(topic);
    if (copy?.epoch !== epoch || copy.sealedFor !== null) throw new Error(`${topic} is not open at ${epoch}`);
    this.row(topic).copy = { ...copy, sealedFor: to };
  }

  release(): Promise<void> {
    return Promise.reject(new Error("this store is not shared"));
  }

  releaseAll(): Promise<void> {
    return Promise.resolve();
  }

  export(topic: string, epoch: number, seal: () => Promise<void>): OutgoingContent {
    const hash = createHash("sha256");
    const row = this.row(topic);
    const copy = () => {
      if (row.copy?.epoch === epoch) return row.copy;
      throw new BatonError("STALE_TOKEN", `${topic} is not at ${epoch}`);
    };
    const pieces = async function* () {
      let sent = 0;
      const some = (from: (copy: FakeContent) => string) => {
        const piece = utf8.encode(from(copy()));
        hash.update(piece);
        return piece;
      };
      const messages = ({ log }: FakeContent) => {
        const text = log.slice(sent).map((id) => `${JSON.stringify(id)}\n`).join("");
        sent = log.length;
        return text;
      };
      await Promise.resolve();
      yield some(messages);
      if (copy().sealedFor === null) {
        yield null;
        yield some(messages);
        await seal();
      }
      if (copy().sealedFor === null) throw new Error(`${topic} is not sealed at ${epoch}`);
      yield some((content) => messages(content) + JSON.stringify(content.cursor));
    };
    return { pieces: pieces(), hash: () => hash.digest("hex") };
  }

  async importStaged(topic: string, content: TopicContentId, { pieces, hash }: IncomingContent): Promise<void> {
    if (this.isFull) throw new BatonError("IO", "FULL");
    const bytes: number[] = [];
    for await (const piece of pieces) bytes.push(...piece);
    const all = Uint8Array.from(bytes);
    if (createHash("sha256").update(all).digest("hex") !== hash()) throw new BatonError("BAD_DATA", "The hash differs");
    const row = this.row(topic);
    if (row.staged?.incarnation === content.incarnation && row.staged.epoch > content.epoch) return;
    const lines = new TextDecoder().decode(all).split("\n");
    const log = lines.slice(0, -1).map((line) => JSON.parse(line) as string);
    row.staged = { ...content, log, cursor: Number(lines.at(-1)) };
  }

  async activate(topic: string, epoch: number, what: "copy" | "staged"): Promise<void> {
    await Promise.resolve();
    const row = this.row(topic);
    const from = row[what];
    if (from === null) throw new Error(`${topic} has no ${what} to open`);
    const { incarnation, baseOffset, log, cursor } = from;
    row.copy = { incarnation, baseOffset, log, cursor, epoch, sealedFor: null };
    if (what === "staged") row.staged = null;
  }

  async drop(topic: string, epoch: number): Promise<void> {
    await Promise.resolve();
    const row = this.row(topic);
    if (row.copy === null || row.copy.epoch >= epoch) return;
    row.dropped = { incarnation: row.copy.incarnation, epoch };
    row.copy = null;
  }

  async discard(topic: string): Promise<void> {
    await Promise.resolve();
    this.row(topic).staged = null;
  }

  async setAside(topic: string): Promise<void> {
    await Promise.resolve();
    const row = this.row(topic);
    if (row.copy !== null) row.aside.push({ log: row.copy.log, cursor: row.copy.cursor });
    row.copy = null;
  }
}
