/**
 * The two frames that open a connection. Their last byte, readOnly, is missing in clients and servers before 3.4. A
 * server sends the byte if the client did.
 */
import type { ByteReader, ByteWriter } from "../../../base/wire/bytes.ts";
import type { JuteCodec, JuteCodecValue } from "../../../base/wire/record_codec.ts";
import * as records from "./zookeeper_records.ts";

function withReadOnly<T extends object>(body: JuteCodec<T>): JuteCodec<T & { readOnly: boolean | undefined }> {
  return {
    bytesMin: body.bytesMin,
    read(reader: ByteReader) {
      const value = body.read(reader);
      return { ...value, readOnly: reader.remaining > 0 ? reader.u8() !== 0 : undefined };
    },
    write(writer: ByteWriter, value) {
      body.write(writer, value);
      if (value.readOnly !== undefined) writer.u8(value.readOnly ? 1 : 0);
    },
  };
}

export const connectRequestCodec = withReadOnly(records.ConnectRequest);
export type ConnectRequest = JuteCodecValue<typeof connectRequestCodec>;
export const connectResponseCodec = withReadOnly(records.ConnectResponse);
