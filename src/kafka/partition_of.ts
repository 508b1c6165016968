/** Which partition a key goes to: the same one each time, as long as their number stays. Pure. */
import { crc32c } from "../wire/kafka/crc32c.ts";

export function partitionOf(key: string, partitions: number): number {
  return crc32c(new TextEncoder().encode(key)) % partitions;
}
