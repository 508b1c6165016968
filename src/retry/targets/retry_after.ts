/** The header Retry-After (RFC 9110, 10.2.3): a number of seconds, or a date. Pure. */

/** More is as good as never, and would be no number to reckon with: 31 years. */
const secondsMost = 1e9;

/** Milliseconds from `nowMs`; null for what is neither, or has no sense. A date that is over is 0. */
export function parseRetryAfter(written: string | null, nowMs: number): number | null {
  const text = written?.trim() ?? "";
  if (/^\d+$/.test(text)) return Math.min(Number(text), secondsMost) * 1000;
  // IMF-fixdate, and the two obsolete forms that a recipient has to accept; Date.parse knows more, such as bare numbers.
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return null;
  const atMs = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`);
  return Number.isFinite(atMs) ? Math.max(0, atMs - nowMs) : null;
}
