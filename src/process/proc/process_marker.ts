/** The mark by which a job's processes are known: a list in the environment, one id per enclosing lock. */

export const cookieVariable = "BATON_LOCK_COOKIE";

/** The variable for a child: its own cookie after those it inherits, so that a sweep of an outer lock finds it too. */
export function cookieEnvironment(cookie: string, inherited: string | undefined): Record<string, string> {
  return { [cookieVariable]: inherited ? `${inherited}:${cookie}` : cookie };
}

/** Whether `environ`, the text of /proc/pid/environ, has `cookie` among its cookies. */
export function carriesCookie(environ: string, cookie: string): boolean {
  return cookiesIn(environ).includes(cookie);
}

/** The cookies in `environ`, outermost first. */
export function cookiesIn(environ: string): string[] {
  const prefix = `${cookieVariable}=`;
  const at = environ.startsWith(prefix) ? 0 : environ.indexOf(`\0${prefix}`) + 1;
  if (at === 0 && !environ.startsWith(prefix)) return [];
  const end = environ.indexOf("\0", at);
  return environ.slice(at + prefix.length, end < 0 ? undefined : end).split(":");
}
