/** Sizes for people: `512 B`, `1.5 KiB`, `12 GiB`. */

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Formats a number of bytes with at most three digits and a binary unit. */
export function formatSize(bytes: number): string {
  let [size, unit] = [bytes, 0];
  for (; size >= 1023.5 && unit < units.length - 1; unit++) size /= 1024;
  return `${unit === 0 || size >= 99.95 ? Math.round(size) : Math.round(size * 10) / 10} ${units[unit]}`;
}
