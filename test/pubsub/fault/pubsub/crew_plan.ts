/** Who the clients of a campaign are: which topics, how hasty, how fickle. Drawn from a seed. Pure. */
import { seededRandom } from "../../../support/random.ts";

export interface ClientPlan {
  readonly id: string;
  readonly role: "publisher" | "subscriber";
  readonly topics: readonly string[];
  /** How long a request is tried in all, and one try, in milliseconds. */
  readonly timeoutMs: number;
  readonly attemptMs: number;
  /** publisher: messages of one chunk at most. subscriber: of one get. */
  readonly batch: number;
  /** publisher: messages a second. */
  readonly rate: number;
  /** subscriber: how likely it is, at each get, to unsubscribe and come again. */
  readonly churn: number;
  /** … and to seek. */
  readonly seeks: number;
  readonly seed: number;
}

/** What a worker process is told, as JSON. */
export interface WorkerPlan {
  /** Unique among all processes of a campaign. */
  readonly process: string;
  readonly history: string;
  readonly stateDir: string;
  readonly proxies: readonly string[];
  readonly clients: readonly ClientPlan[];
}

/** Names that are no names of files, and that differ only where encodings go wrong. `mark`: in each of them. */
export const crewTopics = (mark: string): string[] =>
  ["news", "a/b c", "a:1", "a_1", "../x%20ö"].map((name) => `${name} ${mark}`);

/** Ids, too. */
const odd = (number: number) => ["", ":1", "_1", " ä", "/.."][number % 5] ?? "";

export interface Crew {
  /** Worker by worker: who lives in one process. */
  readonly workers: readonly (readonly ClientPlan[])[];
}

/** `rate`: of all publishers together, in messages a second. */
export function planCrew(seed: number, { topics: all, publishers, subscribers, workers, rate, isFickle = true }: {
  readonly topics: readonly string[];
  readonly publishers: number;
  readonly subscribers: number;
  readonly workers: number;
  readonly rate: number;
  /** Some subscribers leave, come again, and seek. */
  readonly isFickle?: boolean;
}): Crew {
  const random = seededRandom(seed ^ 0xc4e3);
  const topicOf = (number: number): string => all[number % all.length] ?? "";
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const shape = () => ({ seed: Math.floor(random() * 2 ** 32), batch: pick([1, 16, 64, 256]) });
  const crew: ClientPlan[] = [];
  for (let number = 0; number < publishers; number++) {
    // Hasty ones often do not hear the end of a put.
    const [timeoutMs, attemptMs] = pick([[2000, 700], [10_000, 2500], [30_000, 5000]] as const);
    const topics = number % 3 === 0 ? [topicOf(number), topicOf(number + 2)] : [topicOf(number)];
    const more = { topics, timeoutMs, attemptMs, rate: rate / publishers, churn: 0, seeks: 0 };
    crew.push({ id: `pub${number}${odd(number)}`, role: "publisher", ...more, ...shape() });
  }
  for (let number = 0; number < subscribers; number++) {
    const topics = [topicOf(number), topicOf(number + 1)];
    const more = {
      topics,
      timeoutMs: pick([2000, 8000]),
      attemptMs: 1500,
      rate: 0,
      churn: isFickle && number % 4 === 3 ? 0.01 : 0,
      seeks: isFickle && number % 4 === 1 ? 0.01 : 0,
    };
    crew.push({ id: `sub${number}${odd(number)}`, role: "subscriber", ...more, ...shape() });
  }
  const hands = Array.from({ length: workers }, () => [] as ClientPlan[]);
  for (const [place, client] of crew.entries()) hands[place % workers]?.push(client);
  return { workers: hands };
}
