/** Whether the cost of a frame grows faster than its length, however it is cut. */
import { ZmtpFrameDecoder } from "../../../../src/protocols/zeromq/zmtp/frame_decoder.ts";
import { zmtpLimitsDefault } from "../../../../src/protocols/zeromq/zmtp/zmtp_limits.ts";
import { processorTimeMs } from "../../../support/processor_time.ts";

export interface Cost {
  readonly bytes: number;
  readonly chunkBytes: number;
  readonly ms: number;
}

/** Milliseconds of processor time for one frame of this length that comes in chunks of that. */
export function frameCost(bytes: number, chunkBytes: number): Cost {
  let messages = 0;
  const decoder = new ZmtpFrameDecoder(zmtpLimitsDefault, { onCommand: () => true, onMessage: () => ++messages > 0 });
  decoder.beginTraffic(null, null);
  const header = new Uint8Array(9);
  header[0] = 2;
  new DataView(header.buffer).setBigUint64(1, BigInt(bytes));
  const chunk = new Uint8Array(chunkBytes);
  const startMs = processorTimeMs();
  decoder.push(header);
  for (let sent = 0; sent < bytes; sent += chunkBytes) decoder.push(chunk);
  const ms = processorTimeMs() - startMs;
  if (messages !== 1) throw new Error(`${messages} messages came instead of 1`);
  return { bytes, chunkBytes, ms };
}

/** Milliseconds of processor time for so many frames of `bodyBytes` in one chunk, which is to be linear as well. */
export function manyFramesCost(frames: number, bodyBytes: number): Cost {
  let messages = 0;
  const decoder = new ZmtpFrameDecoder(zmtpLimitsDefault, { onCommand: () => true, onMessage: () => ++messages > 0 });
  decoder.beginTraffic(null, null);
  const chunk = new Uint8Array(frames * (2 + bodyBytes));
  for (let at = 1; at < chunk.length; at += 2 + bodyBytes) chunk[at] = bodyBytes;
  const startMs = processorTimeMs();
  decoder.push(chunk);
  const ms = processorTimeMs() - startMs;
  if (messages !== frames) throw new Error(`${messages} messages came instead of ${frames}`);
  return { bytes: chunk.length, chunkBytes: chunk.length, ms };
}
