/** The mark of a command's processes: a variable with a list of holder ids (cookies), one for each enclosing lock, the outermost first. */

export const cookieVariable = "BATON_LOCK_COOKIE";

/** The variable for a command: its own cookie after the inherited ones, so that the outer lock finds its processes, too. */
export function cookieEnvironment(cookie: string, inherited: string | undefined): Record<string, string> {
  return { [cookieVariable]: inherited ? `${inherited}:${cookie}` : cookie };
}

/** The cookies in `environ`, the text of /proc/pid/environ, outermost first. */
export function cookiesIn(environ: string): string[] {
  const prefix = `${cookieVariable}=`;
  const at = environ.startsWith(prefix) ? 0 : environ.indexOf(`\0${prefix}`) + 1;
  if (at === 0 && !environ.startsWith(prefix)) return [];
  const end = environ.indexOf("\0", at);
  return environ.slice(at + prefix.length, end < 0 ? undefined : end).split(":");
}
