/** What a peer may make this side hold. Checked on what a frame claims, before anything is set aside for it. */
export interface ZmtpLimits {
  /** All frames of a message together, in bytes. */
  readonly messageBytesMax: number;
  /** Frames of a message. */
  readonly framesMax: number;
  /** The body of a command, in bytes: a handshake with its properties, a subscription. */
  readonly commandBytesMax: number;
}

/**
 * What a frame costs besides its bytes: the object that it is, its place in a message, and its part of that. Measured with a
 * million messages of one byte: 97 to 147 bytes a frame under Bun, 170 to 232 under Deno; sealed ones cost more.
 */
export const frameCostBytes = 128;

export const zmtpLimitsDefault: ZmtpLimits = {
  // 64 MiB of a message's own and 64 KiB for what goes before it.
  messageBytesMax: (64 << 20) + (64 << 10),
  framesMax: 10_000,
  commandBytesMax: 64 << 10,
};
