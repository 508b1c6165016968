/** Makes the rows of a list of message stores. */
import type { StoreRow } from "../../base/rows/store_row.ts";
import { formatUtcTimeOrNull } from "../dead_letters/dead_letter_record.ts";
import type { StoreLocation } from "../queue/open_retry_store.ts";
import { countRunningProcessors } from "../queue/machine_boot.ts";
import type { CommandStore } from "../queue/store_methods.ts";

export async function readStoreRow(store: CommandStore, { name, where }: StoreLocation): Promise<StoreRow> {
  const totals = await store.read("totals");
  const paused = await store.read("isPaused");
  const { oldestMs, nextMs } = await store.read("waitingTimes");
  const { count: pending, forwarded, error } = await store.read("deadLetterBacklog");
  const processors = await countRunningProcessors(store.read.bind(store));
  const { usedBytes, freeBytes } = await store.read("disk");
  return {
    name,
    folder: where,
    paused,
    states: { ...totals },
    oldest: formatUtcTimeOrNull(oldestMs),
    next: formatUtcTimeOrNull(nextMs),
    processors,
    dead_letters: { pending, forwarded, error },
    disk: { used_bytes: usedBytes, free_bytes: freeBytes },
  };
}
