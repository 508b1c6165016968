/**
 * Bytes that nobody may send, as somebody sends them: no greeting, broken frames, lengths beyond everything, nonsense
 * as messages. Pure.
 */
import { encodeZmtpGreeting } from "../../../../src/protocols/zeromq/zmtp/zmtp_greeting.ts";

const ready = Buffer.from("\x04\x26\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER", "latin1");

export function malformed(random: () => number): Uint8Array[] {
  const noise = (length: number) => Uint8Array.from({ length }, () => Math.floor(random() * 256));
  const greeting = encodeZmtpGreeting({ name: "NULL", asServer: false });
  const greeted = (...parts: Uint8Array[]) => Buffer.concat([greeting, readyCommand(), ...parts]);
  return [
    noise(1 + Math.floor(random() * 300)),
    greeting.subarray(0, Math.floor(random() * 64)),
    greeted(noise(1 + Math.floor(random() * 2000))),
    // A frame of 2^62 bytes, and one just over what a message may have.
    greeted(longHeader(2n ** 62n), noise(100)),
    greeted(longHeader(2n ** 63n + 5n), noise(100)),
    greeted(longHeader(80n << 20n), noise(1000)),
    // A header without an end; one that is all blanks; a message of very many frames; an envelope without an end.
    greeted(message("", "PUT ".repeat(500))),
    greeted(message("", " \r\n\r\n")),
    greeted(message("", ...Array.from({ length: 3000 }, () => "x"))),
    greeted(message(...Array.from({ length: 30 }, () => "x"))),
    greeted(message("", "PUT a b 99999999999999999999\r\n\r\nbody")),
    greeted(message("", "GET %zz %ff -1\r\nsession: 5/x\r\nsession: 6/x\r\n\r\n")),
    greeted(message("", "STATUS x OK\r\n\r\n")),
    greeted(
      message(
        "",
        "TRANSFER s9 news\r\nepoch: 99\r\nhash: x\r\nincarnation: b\r\nbase-offset: 0\r\npart: 0\r\n\r\nnonsense",
      ),
    ),
  ];
}

function readyCommand(): Uint8Array {
  return Buffer.concat([Uint8Array.of(4, ready.byteLength - 2), ready.subarray(2)]);
}

function longHeader(length: bigint): Uint8Array {
  const bytes = new Uint8Array(9);
  bytes[0] = 2;
  new DataView(bytes.buffer).setBigUint64(1, length);
  return bytes;
}

function message(...frames: string[]): Uint8Array {
  return Buffer.concat(frames.flatMap((text, place) => {
    const body = Buffer.from(text, "latin1");
    const more = place < frames.length - 1 ? 1 : 0;
    if (body.byteLength < 256) return [Uint8Array.of(more, body.byteLength), body];
    const header = longHeader(BigInt(body.byteLength));
    header[0] = 2 | more;
    return [header, body];
  }));
}
