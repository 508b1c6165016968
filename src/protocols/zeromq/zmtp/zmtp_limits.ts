/**
 * Limits for what a peer may make this side hold. The announced length of a frame is checked before memory is
 * allocated.
 */
export interface ZmtpLimits {
  /** Bytes of all frames of a message. */
  readonly messageBytesMax: number;
  /** Frames of a message. */
  readonly framesMax: number;
  /** Bytes of a command's body: a handshake with its properties, a subscription. */
  readonly commandBytesMax: number;
}

/**
 * Bytes of memory that a frame costs besides its content. Measured with a million messages of one byte: 97 to 147 bytes
 * per frame under Bun, 170 to 232 under Deno; more for sealed ones.
 */
export const frameCostBytes = 128;

export const zmtpLimitsDefault: ZmtpLimits = {
  // 64 MiB for the message and 64 KiB for its envelope.
  messageBytesMax: (64 << 20) + (64 << 10),
  framesMax: 10_000,
  commandBytesMax: 64 << 10,
};
