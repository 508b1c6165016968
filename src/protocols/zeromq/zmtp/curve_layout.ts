/**
 * The layouts of the messages in CURVE's handshake: fields of fixed lengths, in order. RFC 26, "High-level Grammar".
 */
import { ZmtpError } from "./zmtp_error.ts";

type Lengths = Readonly<Record<string, number>>;
type Fields<L extends Lengths> = { readonly [Name in keyof L]: Uint8Array };

/** A sequence of fields. `L` has their lengths in bytes, in order. */
export interface CurveFieldLayout<L extends Lengths> {
  /** Returns the fields as views of `bytes`. Throws ZmtpError COMMAND if the length is wrong. */
  read(bytes: Uint8Array): Fields<L>;
  write(fields: Fields<L>): Uint8Array;
}

/** Creates a layout from lengths in bytes. If `openEnded` is true, the last field may be longer. */
function layout<const L extends Lengths>(name: string, lengths: L, openEnded = false): CurveFieldLayout<L> {
  const table = Object.entries(lengths);
  const total = table.reduce((sum, [, length]) => sum + length, 0);
  return {
    read(bytes) {
      const surplus = bytes.byteLength - total;
      if (surplus < 0 || (surplus > 0 && !openEnded)) {
        const wanted = openEnded ? `at least ${total}` : String(total);
        throw new ZmtpError("COMMAND", `${name} has ${bytes.byteLength} bytes, and ${wanted} are expected`);
      }
      let at = 0;
      const fields = table.map(([field, length], index) => {
        const end = index === table.length - 1 ? bytes.byteLength : at + length;
        const view = bytes.subarray(at, end);
        at = end;
        return [field, view];
      });
      return Object.fromEntries(fields) as Fields<L>;
    },
    write(fields) {
      const last = fields[table.at(-1)?.[0] ?? ""]?.byteLength ?? 0;
      const bytes = new Uint8Array(openEnded ? total - (table.at(-1)?.[1] ?? 0) + last : total);
      let at = 0;
      for (const [field, length] of table) {
        const value = fields[field] ?? new Uint8Array(0);
        if (value.byteLength < length) throw new RangeError(`${name}: ${field} has ${value.byteLength} bytes`);
        bytes.set(value, at);
        at += value.byteLength;
      }
      return bytes;
    },
  };
}

/** The fields of each command, after its name. A box is 16 bytes longer than its content. */
export const curveCommandLayouts = {
  HELLO: layout("HELLO", { version: 2, padding: 72, clientTransientKey: 32, nonce: 8, box: 80 }),
  WELCOME: layout("WELCOME", { nonce: 16, box: 144 }),
  INITIATE: layout("INITIATE", { cookie: 96, nonce: 8, box: 144 }, true),
  READY: layout("READY", { nonce: 8, box: 16 }, true),
} as const;

export const curveBoxLayouts = {
  WELCOME: layout("A WELCOME's box", { serverTransientKey: 32, cookie: 96 }),
  INITIATE: layout("An INITIATE's box", { clientKey: 32, vouch: 96, metadata: 0 }, true),
  cookie: layout("A cookie's box", { clientTransientKey: 32, serverTransientSecret: 32 }),
  vouch: layout("A vouch's box", { clientTransientKey: 32, serverKey: 32 }),
} as const;

/** The layout of a cookie and of a vouch: 16 random bytes of the nonce, followed by a box. */
export const curveLongNonceBoxLayout = layout("A cookie or a vouch", { nonce: 16, box: 80 });

export const curveVersion: Uint8Array = new Uint8Array([1, 0]);
/**
 * The padding of HELLO: 72 zero bytes, as in the grammar of RFC 26 and in all implementations. The RFC's text says 70
 * in one place.
 */
export const curveHelloPadding: Uint8Array = new Uint8Array(72);
/** The content of the box in HELLO: zeros. */
export const curveHelloSignature: Uint8Array = new Uint8Array(64);
