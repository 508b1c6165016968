/** The properties that two peers exchange at the end of a handshake. RFC 37, "Connection Metadata". */
import { ByteReader, ByteWriter } from "../../../base/wire/bytes.ts";
import { ZmtpError } from "./zmtp_error.ts";

/** Names of properties, as in the specification. Their case does not matter. */
export const zmtpPropertyNames = { socketType: "Socket-Type", identity: "Identity", resource: "Resource" } as const;

/** The properties of a peer by their names in lower case; see `zmtpPropertyBytes`. */
export type ZmtpMetadata = ReadonlyMap<string, Uint8Array>;

const namePattern = /^[A-Za-z0-9\-_.+]{1,255}$/;

/** Returns the value of a property; undefined if the peer did not send it. */
export function zmtpPropertyBytes(metadata: ZmtpMetadata, name: string): Uint8Array | undefined {
  return metadata.get(name.toLowerCase());
}

/** Returns the value as text, one character per byte; empty if the peer did not send it. */
export function zmtpPropertyText(metadata: ZmtpMetadata, name: string): string {
  return String.fromCharCode(...(zmtpPropertyBytes(metadata, name) ?? []).slice(0, 255));
}

/** Encodes name, length and value of each property, in order. A value that is a text is written as ASCII. */
export function encodeZmtpMetadata(properties: readonly (readonly [string, Uint8Array | string])[]): Uint8Array {
  const writer = new ByteWriter();
  for (const [name, value] of properties) {
    if (!namePattern.test(name)) throw new RangeError(`"${name}" cannot be the name of a property`);
    writer.u8(name.length);
    writer.raw(new TextEncoder().encode(name));
    const bytes = typeof value === "string" ? new TextEncoder().encode(value) : value;
    writer.i32(bytes.byteLength);
    writer.raw(bytes);
  }
  return writer.finish();
}

/**
 * The most properties that a peer may send. A property of 8 bytes takes about 250 bytes of memory. libzmq sends two or
 * three properties.
 */
const propertiesMax = 256;

/**
 * Decodes properties; the values are copies. Throws ZmtpError PROPERTIES or LIMIT, or PROTOCOL if the bytes end too
 * early.
 */
export function decodeZmtpMetadata(bytes: Uint8Array): ZmtpMetadata {
  const properties = new Map<string, Uint8Array>();
  const reader = new ByteReader(bytes);
  while (reader.remaining > 0) {
    const name = String.fromCharCode(...reader.view(reader.u8()));
    if (!namePattern.test(name)) throw new ZmtpError("PROPERTIES", `A property has the name ${JSON.stringify(name)}`);
    const value = reader.view(reader.i32()).slice();
    const key = name.toLowerCase();
    if (properties.has(key)) throw new ZmtpError("PROPERTIES", `The property ${name} occurs twice`);
    if (properties.size === propertiesMax) {
      throw new ZmtpError("LIMIT", `The peer has more than ${propertiesMax} properties`);
    }
    properties.set(key, value);
  }
  return properties;
}
