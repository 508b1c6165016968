/**
 * A clock whose time goes faster than a second hand: waits that are long in life are short in a test, and keep their
 * order.
 */
import { type Clock, systemClock } from "../../src/base/support/clock.ts";

export function hastyClock(times: number): Clock {
  return {
    now: () => systemClock().now() * times,
    noticeSuspend: () => {},
    startTimer: (delayMs, callback) => systemClock().startTimer(delayMs / times, callback),
  };
}
