/** Whether a store kept its promises in a round: what it says of each message, beside what its backend saw. Pure. */

/** One try as the backend saw it; times on one clock. */
export interface SeenTry {
  readonly startMs: number;
  /** Null: it was open to the end of the round. */
  readonly endMs: number | null;
  /** What it was answered with, the exit code of a command; null: it was cut off. */
  readonly answer: number | null;
}

export interface StoredEnd {
  readonly id: string;
  readonly state: string;
  readonly tries: number;
  readonly crashes: number;
  readonly reason: string | null;
}

export interface RoundFacts {
  readonly maxRetries: number;
  readonly intervalMs: number;
  /** What a successful and a final answer are. */
  readonly isDone: (answer: number) => boolean;
  readonly isFinal: (answer: number) => boolean;
  /** Ids, or counts, that submitters were told are stored. */
  readonly told: number;
  /**
   * Nobody was killed: just what was told is there, and each try that was counted, but as crashed, came to the backend.
   */
  readonly isExact?: boolean;
  readonly stored: readonly StoredEnd[];
  readonly seen: ReadonlyMap<string, readonly SeenTry[]>;
  /** Ids in the file of dead letters, in its order. */
  readonly letters: readonly string[];
  /** What verify complains of. */
  readonly problems: readonly string[];
}

/** Times are read by two processes: as much may be between them. */
const slackMs = 2;

export function judgeRound(facts: RoundFacts): string[] {
  const failures = [...facts.problems];
  if (facts.stored.length < facts.told || (facts.isExact === true && facts.stored.length > facts.told)) {
    failures.push(`${facts.told} were told to be stored, and ${facts.stored.length} are there`);
  }
  for (const one of facts.stored) failures.push(...judgeMessage(one, facts));
  const known = new Set(facts.stored.map(({ id }) => id));
  for (const id of facts.seen.keys()) if (!known.has(id)) failures.push(`${id} was tried, and is not in the store`);
  const dead = facts.stored.filter(({ state }) => state === "dead").map(({ id }) => id);
  if (new Set(facts.letters).size !== facts.letters.length) failures.push("a dead letter is in the file twice");
  if (facts.letters.length !== dead.length || dead.some((id) => !facts.letters.includes(id))) {
    failures.push(`${dead.length} messages are dead, and ${facts.letters.length} letters are in the file`);
  }
  return failures;
}

function judgeMessage({ id, state, tries, crashes, reason }: StoredEnd, facts: RoundFacts): string[] {
  const failures: string[] = [];
  const say = (what: string) => failures.push(`${id} is ${state} (${reason}) after ${tries}+${crashes} tries: ${what}`);
  const seen = [...facts.seen.get(id) ?? []].sort((a, b) => a.startMs - b.startMs);
  const answers = seen.flatMap(({ answer }) => (answer === null ? [] : [answer]));
  if (state !== "done" && state !== "dead") say("it is not at an end");
  if (tries > facts.maxRetries + 1) say(`more than ${facts.maxRetries + 1}`);
  if (seen.length > tries + crashes || (facts.isExact === true && seen.length < tries)) {
    say(`the backend saw ${seen.length}`);
  }
  if (state === "done" && !answers.some(facts.isDone)) say("no try of it was successful");
  if (state === "dead" && reason === "exhausted" && tries !== facts.maxRetries + 1) say("it had tries left");
  if (state === "dead" && reason === "final" && !answers.some(facts.isFinal)) say("no answer was final");
  for (const [at, next] of seen.entries()) {
    const last = at === 0 ? undefined : seen[at - 1];
    if (last === undefined) continue;
    if (last.endMs === null || next.startMs < last.endMs) say("two tries at once");
    else if (next.startMs - last.endMs < facts.intervalMs - slackMs) {
      say(`${(next.startMs - last.endMs).toFixed(1)} ms between two tries, and ${facts.intervalMs} are the least`);
    }
  }
  return failures;
}
