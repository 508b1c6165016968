/** What a driver does until it works or the time is over. */

/** Between two tries, in milliseconds. */
const retryEveryMs = 2;

/** Tries once at least, and tells each try how many milliseconds are left. False when none has worked in time. */
export async function retry(
  withinMs: number,
  attempt: (leftMs: number) => boolean | Promise<boolean>,
): Promise<boolean> {
  const deadlineMs = performance.now() + withinMs;
  for (;;) {
    if (await attempt(Math.max(0, Math.ceil(deadlineMs - performance.now())))) return true;
    if (performance.now() >= deadlineMs) return false;
    await new Promise((resolve) => setTimeout(resolve, retryEveryMs));
  }
}
