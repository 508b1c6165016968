/**
 * Clients of one topic, whose requests are asked again until they are answered: publishers, two readers, and
 * subscribers who come and read only in the end. What was answered OK is remembered, and `problems` says what of it
 * does not hold.
 */
import { bytesOf, type PubsubTalker, textOf } from "./pubsub_talker.ts";

const patienceMs = 60_000;
const readers = ["alice", "carol"];

interface Put {
  readonly body: string;
  /** Moments: numbers that only rise. */
  readonly begunAt: number;
  doneAt: number;
  id: number | null;
  /** There was no room for it: it is never to come. */
  isRefused: boolean;
}

interface Got {
  readonly body: string;
  readonly id: number;
}

export class TopicTraffic {
  readonly topic: string;
  readonly #say: PubsubTalker;
  readonly #puts: Put[] = [];
  readonly #had = new Map<string, Got[]>(readers.map((name) => [name, []]));
  /** When a subscriber was told OK. */
  readonly #subscribed = new Map<string, number>();
  readonly #running: Promise<unknown>[] = [];
  #moment = 0;
  #isOver = false;
  #isAllPut = false;
  /** Requests that were answered OK. */
  answered = 0;

  constructor(say: PubsubTalker, topic: string) {
    this.#say = say;
    this.topic = topic;
  }

  async begin(publishers: readonly string[]): Promise<void> {
    for (const reader of readers) await this.subscribe(reader);
    for (const name of publishers) this.#running.push(this.#publish(name));
    for (const name of readers) this.#running.push(this.#read(name));
    // Whoever waits for `finish` hears of it there.
    for (const running of this.#running) running.catch(() => {});
  }

  async subscribe(sender: string): Promise<void> {
    await this.#say.ask({ name: "SUBSCRIBE", sender, topic: this.topic }, patienceMs);
    this.#subscribed.set(sender, this.#moment++);
    this.answered++;
  }

  /** Ends the publishers, lets every subscriber read all there is, and judges. */
  async finish(): Promise<string[]> {
    this.#isOver = true;
    await Promise.all(this.#running.slice(0, -readers.length));
    this.#isAllPut = true;
    await Promise.all(this.#running);
    for (const name of this.#subscribed.keys()) if (!readers.includes(name)) await this.#read(name);
    return this.problems();
  }

  problems(): string[] {
    const problems: string[] = [];
    const bodies = new Map<number, string>();
    const seen = (id: number, body: string) => {
      const other = bodies.get(id);
      if (other === undefined) bodies.set(id, body);
      else if (other !== body) problems.push(`the id ${id} was given to "${other}" and to "${body}"`);
    };
    for (const { id, body } of this.#puts) if (id !== null) seen(id, body);
    const first = new Set(this.#had.get("alice")?.map(({ id }) => id));
    for (const [name, had] of this.#had) {
      for (const { id, body } of had) seen(id, body);
      const own = new Set(had.map(({ body }) => body));
      if (own.size < had.length) problems.push(`${name} has had a message twice`);
      for (const [place, { id }] of had.entries()) {
        if (id <= (had[place - 1]?.id ?? 0)) problems.push(`${name} had ${id} out of order`);
      }
      const since = this.#subscribed.get(name) ?? Infinity;
      const wanted = this.#puts.filter(({ begunAt, isRefused }) => begunAt > since && !isRefused);
      const lost = wanted.filter(({ body }) => !own.has(body));
      const refused = this.#puts.filter(({ body, isRefused }) => isRefused && own.has(body));
      if (refused.length > 0) {
        problems.push(`${name} had ${refused.map(({ body }) => body).join(", ")}, which was refused`);
      }
      if (lost.length > 0) problems.push(`${name} misses ${lost.map(({ body }) => body).join(", ")}`);
      const alien = had.filter(({ id }) => !first.has(id));
      if (alien.length > 0) problems.push(`${name} had ${alien.map(({ body }) => body).join(", ")}, and alice had not`);
    }
    return [...problems, ...this.#disorder()];
  }

  /** Puts whose id is not above that of one that had returned before they began. */
  #disorder(): string[] {
    const problems: string[] = [];
    const done = [...this.#puts].sort((one, two) => one.doneAt - two.doneAt);
    let next = 0;
    let greatest: Put | null = null;
    for (const put of [...this.#puts].sort((one, two) => one.begunAt - two.begunAt)) {
      for (let before = done[next]; before !== undefined && before.doneAt < put.begunAt; before = done[++next]) {
        if (greatest === null || (before.id ?? 0) > (greatest.id ?? 0)) greatest = before;
      }
      const before: Put | null = greatest;
      if (before === null || (before.id ?? 0) < (put.id ?? Infinity)) continue;
      problems.push(`"${put.body}" has the id ${put.id}, and "${before.body}" before it ${before.id}`);
    }
    return problems;
  }

  get puts(): number {
    return this.#puts.length;
  }

  async #publish(sender: string): Promise<void> {
    const session = { number: 1, key: `key of ${sender}` };
    for (let counter = 1; !this.#isOver; counter++) {
      const put: Put = {
        body: `${sender} ${counter}`,
        begunAt: this.#moment++,
        doneAt: Infinity,
        id: null,
        isRefused: false,
      };
      this.#puts.push(put);
      const headers = { session, firstUnacked: counter };
      const message = { name: "PUT", sender, topic: this.topic, counter, body: bytesOf(put.body), headers } as const;
      const status = await this.#say.ask(message, patienceMs);
      put.isRefused = status.status === "FULL";
      if (put.isRefused) continue;
      if (status.status !== "OK") throw new Error(`${put.body}: ${status.status} ${textOf(status.body)}`);
      put.id = status.headers?.ids?.[0]?.first ?? status.messageId ?? null;
      put.doneAt = this.#moment++;
      this.answered++;
    }
  }

  async #read(sender: string): Promise<void> {
    const had: Got[] = [];
    this.#had.set(sender, had);
    let last = -1;
    for (;;) {
      const wasAllPut = this.#isAllPut;
      const headers = { max: 20, waitMs: wasAllPut ? 0 : 100 };
      const status = await this.#say.ask({ name: "GET", sender, topic: this.topic, last, headers }, patienceMs);
      if (status.status === "NO_MESSAGE" && wasAllPut) return;
      if (status.status === "NO_MESSAGE") continue;
      if (status.status !== "OK") throw new Error(`${sender} cannot get: ${status.status} ${textOf(status.body)}`);
      const ids = (status.headers?.ids ?? []).flatMap(({ first, last }) =>
        Array.from({ length: last - first + 1 }, (_, place) => first + place)
      );
      for (const [place, body] of (status.batch ?? []).entries()) {
        had.push({ body: textOf(body), id: ids[place] ?? -1 });
      }
      last = ids.at(-1) ?? last;
      this.answered++;
    }
  }
}
