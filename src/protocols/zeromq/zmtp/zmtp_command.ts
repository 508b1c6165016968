/**
 * Encodes and decodes ZMTP commands: the length of a name, the name, and data. RFC 37, "Commands" and "Connection
 * Heartbeating".
 */
import { ZmtpError } from "./zmtp_error.ts";

export interface ZmtpCommand {
  readonly name: string;
  /** The data of the command: a view that is valid only during the call that gets the command. */
  readonly data: Uint8Array;
}

const namePattern = /^[A-Za-z]{1,255}$/;

export function encodeZmtpCommand(name: string, data: Uint8Array): Uint8Array {
  const body = new Uint8Array(1 + name.length + data.byteLength);
  body[0] = name.length;
  for (let at = 0; at < name.length; at++) body[1 + at] = name.charCodeAt(at);
  body.set(data, 1 + name.length);
  return body;
}

/** Decodes the body of a command frame. Throws ZmtpError COMMAND. */
export function decodeZmtpCommand(body: Uint8Array): ZmtpCommand {
  const end = 1 + (body[0] ?? 0);
  if (body.byteLength > 0 && end > body.byteLength) {
    throw new ZmtpError("COMMAND", `A command of ${body.byteLength} bytes claims a name of ${end - 1}`);
  }
  const name = String.fromCharCode(...body.subarray(1, end));
  if (!namePattern.test(name)) throw new ZmtpError("COMMAND", `A command has the name ${JSON.stringify(name)}`);
  return { name, data: body.subarray(end) };
}

/** Encodes the body of an ERROR command. `reason` is cut to 255 printable ASCII characters. */
export function encodeZmtpError(reason: string): Uint8Array {
  const text = reason.replace(/[^\x21-\x7e]/g, " ").slice(0, 255);
  return encodeZmtpCommand("ERROR", new Uint8Array([text.length, ...new TextEncoder().encode(text)]));
}

/**
 * Returns the reason in an ERROR command's data, safe to print. Accepts any bytes, because an error about an ERROR
 * command does not help the user.
 */
export function zmtpErrorReason(data: Uint8Array): string {
  const text = String.fromCharCode(...data.subarray(1, 1 + (data[0] ?? 0)));
  return text.replace(/[^\x20-\x7e]/g, "?");
}

const contextBytesMax = 16;
const ttlMsMax = 0xffff * 100;

export interface ZmtpPing {
  /** The silence in milliseconds after which the peer wants to be considered dead; 0 for never. */
  readonly ttlMs: number;
  /** The bytes to send back in the PONG; a view of the command. */
  readonly context: Uint8Array;
}

/** Encodes the body of a PING. The longest time to live is 6553.5 s. */
export function encodeZmtpPing(ttlMs: number): Uint8Array {
  const ttl = Math.round(Math.min(ttlMs, ttlMsMax) / 100);
  return encodeZmtpCommand("PING", new Uint8Array([ttl >> 8, ttl & 0xff]));
}

/** Decodes the data of a PING. A context over 16 bytes is truncated, as in libzmq. Throws ZmtpError COMMAND. */
export function decodeZmtpPing({ data }: ZmtpCommand): ZmtpPing {
  const [high, low] = data;
  if (high === undefined || low === undefined) {
    throw new ZmtpError("COMMAND", `A PING has ${data.byteLength} bytes of data; its time to live takes 2`);
  }
  return { ttlMs: (high * 256 + low) * 100, context: data.subarray(2, 2 + contextBytesMax) };
}

/** Encodes the body of the PONG that responds to a PING with this context. */
export function encodeZmtpPong(context: Uint8Array): Uint8Array {
  return encodeZmtpCommand("PONG", context);
}
