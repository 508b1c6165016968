/**
 * Limits for the memory that a peer can make this side use. The announced length of a frame is checked before memory is
 * allocated.
 */
export interface ZmtpLimits {
  /** The most bytes in all frames of a message. */
  readonly messageBytesMax: number;
  /** The most frames of a message. */
  readonly framesMax: number;
  /**
   * The most bytes in the body of a command. The longest commands are those of the handshake that contain properties.
   */
  readonly commandBytesMax: number;
}

/**
 * The memory that a frame uses in addition to its content, in bytes. Measured with a million messages of one byte, a
 * frame costs 97 to 147 bytes under Bun, 170 to 232 under Deno, and more if it is sealed.
 */
export const zmtpFrameOverheadBytes = 128;

export const zmtpLimitsDefault: ZmtpLimits = {
  // 64 MiB for a message and 64 KiB for its envelope.
  messageBytesMax: (64 << 20) + (64 << 10),
  framesMax: 10_000,
  commandBytesMax: 64 << 10,
};
