/** The machine's monotonic clock: what one process reads can be compared with what another one reads. */
import { dlopen, FFIType, ptr } from "bun:ffi";

const { symbols } = dlopen("libc.so.6", {
  clock_gettime: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
});
const CLOCK_MONOTONIC = 1;
/** struct timespec */
const time = new BigInt64Array(2);

/** Milliseconds, with nanoseconds behind the point. */
export function monotonicMs(): number {
  symbols.clock_gettime(CLOCK_MONOTONIC, ptr(time));
  return Number(time[0]) * 1000 + Number(time[1]) / 1e6;
}
