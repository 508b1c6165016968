/** Whether a seek to the start gave a subscriber all that was there. Pure. */
import type { Findings } from "./findings.ts";
import { isToldGone, type PassedOver, seeksOf } from "./gaps.ts";
import type { At, Operation } from "./history.ts";
import { at, deliveredBy, type TopicLog } from "./judge_puts.ts";
import type { Reader } from "./judge_readers.ts";

/** When any subscriber asked last for what brought it a message: the message was there until then. */
export function lastAskedOf(readers: readonly Reader[]): ReadonlyMap<number, At> {
  const asked = new Map<number, At>();
  for (const { operations } of readers) {
    for (const operation of operations) {
      if (operation.do !== "get") continue;
      for (const [id] of deliveredBy(operation)) asked.set(id, Math.max(asked.get(id) ?? 0, operation.invokedAt));
    }
  }
  return asked;
}

/** What others got later was there: the subscriber must get it, too, before what is behind it. */
export function judgeSeeks({ client, log, operations }: Reader, { lastAsked, gaps, findings }: {
  readonly lastAsked: ReadonlyMap<number, At>;
  readonly gaps: readonly PassedOver[];
  readonly findings: Findings;
}): void {
  for (const { invokedAt, doneBy, to, isSure } of seeksOf(operations)) {
    if (to !== "start" || !isSure) continue;
    const own = operations.find((operation) => operation.invokedAt === invokedAt);
    const got = own === undefined ? [] : gotAfter(operations, own);
    const greatest = Math.max(...got);
    for (const [id, askedAt] of lastAsked) {
      if (askedAt <= doneBy || id >= greatest || got.includes(id) || !wasThere(log, id, invokedAt)) continue;
      const message = log.byId.get(id);
      if (message === undefined || isToldGone(message, gaps) || log.lost.has(id)) continue;
      findings.add(
        "left out by a seek",
        () => `${client} went to the start of "${log.topic}" at ${at(doneBy)}, and got ${greatest}, without ${id}`,
      );
    }
  }
}

/** What the same session got after the seek, until it moved again. */
function gotAfter(operations: readonly Operation[], seek: Operation): number[] {
  const later = operations.slice(operations.indexOf(seek) + 1).filter(({ session }) => session === seek.session);
  const moved = later.findIndex(({ do: what }) => what !== "get");
  return later.slice(0, moved === -1 ? later.length : moved).flatMap((get) => [...deliveredBy(get)].map(([id]) => id));
}

function wasThere({ byId }: TopicLog, id: number, beforeAt: At): boolean {
  return (byId.get(id)?.returnedAt ?? Infinity) < beforeAt;
}
