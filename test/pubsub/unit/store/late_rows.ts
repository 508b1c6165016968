/**
 * The rows of an SQLite store as if they were elsewhere: every answer has to be waited for, and nothing can be read
 * that was not loaded before. The engine has to do the same with them as with rows that are here.
 */
import type { DiskSpace } from "../../../../src/base/storage/disk_space.ts";
import type { StepGenerator } from "../../../../src/base/support/steps.ts";
import { DataNotLoadedError } from "../../../../src/pubsub/store/rows/loaded_data.ts";
import type {
  ClientReader,
  FailedTopicCommit,
  MessageReader,
  MissingTopicData,
  NewRowNumbers,
  OpenedTopic,
  TopicChange,
  TopicCopyRows,
  TopicRow,
  TopicRows,
} from "../../../../src/pubsub/store/rows/topic_rows.ts";

/** A promise whose value is made when a test wants it to arrive. */
class LateAnswer<Value> extends Promise<Value> {
  arrive!: () => Value;

  static of<Value>(arrive: () => Value): LateAnswer<Value> {
    const answer = new LateAnswer<Value>(() => {});
    answer.arrive = arrive;
    return answer;
  }
}

/** Runs steps to their end: each answer arrives immediately, or fails. Pieces of an export are dropped. */
export function runArriving<Result>(steps: StepGenerator<Result, unknown>, onWait: () => void = () => {}): Result {
  let step = steps.next();
  while (step.done !== true) {
    let value: unknown;
    try {
      if (step.value instanceof LateAnswer) {
        onWait();
        value = step.value.arrive();
      }
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    step = steps.next(value);
  }
  return step.value;
}

export class LateRows implements TopicRows {
  readonly isShared = false;
  readonly #rows: TopicRows;
  readonly clients: ClientReader;
  readonly copies: TopicCopyRows;
  /** What was loaded since the last commit. */
  readonly #loaded = new Set<string>();

  constructor(rows: TopicRows) {
    this.#rows = rows;
    const { clients } = rows;
    this.clients = {
      notFoundError: (name) => clients.notFoundError(name),
      findClient: (topicId, name) =>
        this.#read({ kind: "findClient", topicId, name }, () => clients.findClient(topicId, name)),
      readWindows: (client) => this.#read({ kind: "readWindows", client }, () => clients.readWindows(client)),
      readKeys: (client) => this.#read({ kind: "readKeys", client }, () => clients.readKeys(client)),
      oldestPublishers: (topicId, most) =>
        this.#read({ kind: "oldestPublishers", topicId, most }, () => clients.oldestPublishers(topicId, most)),
      clientsAfter: (topicId, name) =>
        this.#read({ kind: "clientsAfter", topicId, name }, () => clients.clientsAfter(topicId, name)),
    };
    this.copies = new Proxy(rows.copies, {
      get: (copies, name) => (...values: unknown[]) =>
        LateAnswer.of(() => (Reflect.get(copies, name) as (...of: unknown[]) => unknown).apply(copies, values)),
    });
  }

  get numbers(): NewRowNumbers {
    return this.#rows.numbers;
  }

  get commits(): number {
    return this.#rows.commits;
  }

  get hasGarbage(): boolean {
    return this.#rows.hasGarbage;
  }

  open(id: number): Promise<OpenedTopic> {
    return LateAnswer.of(() => {
      const opened = this.#rows.open(id) as OpenedTopic;
      return { ...opened, messages: this.#messagesOf(id, opened.messages) };
    });
  }

  load(lacks: readonly MissingTopicData[]): Promise<void> {
    return LateAnswer.of(() => {
      for (const lack of lacks) this.#loaded.add(nameOf(lack));
    });
  }

  forgetLoaded(): void {
    this.#loaded.clear();
  }

  commit(changes: readonly TopicChange[]): Promise<readonly FailedTopicCommit[]> {
    return LateAnswer.of(() => {
      this.#loaded.clear();
      return this.#rows.commit(changes) as readonly FailedTopicCommit[];
    });
  }

  repair(topic: TopicRow, isDamaged: boolean): Promise<string[]> {
    return LateAnswer.of(() => this.#rows.repair(topic, isDamaged) as string[]);
  }

  checkIndexesAgain(): void {
    this.#rows.checkIndexesAgain();
  }

  space(): DiskSpace {
    return this.#rows.space();
  }

  freeLog(): boolean {
    return this.#rows.freeLog();
  }

  #messagesOf(topicId: number, rows: MessageReader): MessageReader {
    return {
      findRowUpTo: (id) => this.#read({ kind: "findRowUpTo", topicId, id }, () => rows.findRowUpTo(id)),
      findRowAfter: (id) => this.#read({ kind: "findRowAfter", topicId, id }, () => rows.findRowAfter(id)),
      rowReadAhead: () => undefined,
      load: (row) => this.#read({ kind: "load", topicId, id: row.id }, () => rows.load(row)),
      countBetween: (from, to) =>
        this.#read({ kind: "countBetween", topicId, from, to }, () => rows.countBetween(from, to)),
      rowsAfter: (last) => this.#read({ kind: "rowsAfter", topicId, id: last }, () => rows.rowsAfter(last)),
      firstStored: () => this.#read({ kind: "firstStored", topicId }, () => rows.firstStored()),
      cache: (row) => rows.cache(row),
      uncache: (row) => rows.uncache(row),
      missingRowError: (first, last) => rows.missingRowError(first, last),
    };
  }

  #read<Result>(lack: MissingTopicData, read: () => Result): Result {
    if (!this.#loaded.has(nameOf(lack))) throw new DataNotLoadedError(lack);
    return read();
  }
}

const nameOf = (lack: MissingTopicData) => "client" in lack ? `${lack.kind} ${lack.client.id}` : JSON.stringify(lack);
