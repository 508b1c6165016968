/** Addresses and ranges as the `ip` scheme of an ACL writes them: `10.0.0.7`, `10.0.0.0/8`, `fd00::/8`. */

/** Whether `range` is an address, or an address and a prefix length. */
export function isAddressRange(range: string): boolean {
  return parseRange(range) !== null;
}

/** Whether `address` lies in `range`. */
export function addressMatches(address: string, range: string): boolean {
  const bytes = parseAddress(address);
  const parsed = parseRange(range);
  if (bytes === null || parsed === null || bytes.length !== parsed.bytes.length) return false;
  return bytes.every((byte, index) => {
    const bits = Math.min(8, Math.max(0, parsed.bits - index * 8));
    const mask = (0xff << (8 - bits)) & 0xff;
    return (byte & mask) === ((parsed.bytes[index] ?? 0) & mask);
  });
}

function parseRange(range: string): { bytes: number[]; bits: number } | null {
  const [address = "", prefix, ...rest] = range.split("/");
  const bytes = parseAddress(address);
  if (bytes === null || rest.length > 0) return null;
  if (prefix === undefined) return { bytes, bits: bytes.length * 8 };
  const bits = /^\d{1,3}$/.test(prefix) ? Number(prefix) : Infinity;
  return bits <= bytes.length * 8 ? { bytes, bits } : null;
}

function parseAddress(address: string): number[] | null {
  const mapped = address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(mapped)) {
    const bytes = mapped.split(".").map(Number);
    return bytes.every((byte) => byte <= 255) ? bytes : null;
  }
  const halves = mapped.split("%")[0]?.split("::") ?? [];
  if (!mapped.includes(":") || halves.length > 2) return null;
  const [head = [], tail = []] = halves.map((half) => half === "" ? [] : half.split(":"));
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  const groups = [...head, ...Array<string>(missing).fill("0"), ...tail];
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return null;
  return groups.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]);
}
