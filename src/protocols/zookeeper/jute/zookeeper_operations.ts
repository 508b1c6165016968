/** All operations of ZooKeeper's protocol with their codes, requests and responses, for the client and the keeper. */
import { type AnyJuteCodec, emptyJuteRecordCodec, type JuteCodecValue } from "../../../base/wire/record_codec.ts";
import * as records from "./zookeeper_records.ts";
import type { Acl } from "./zookeeper_records.ts";

export const zooKeeperOperations = {
  create: { code: 1, request: records.CreateRequest, response: records.PathResponse },
  delete: { code: 2, request: records.DeleteRequest, response: emptyJuteRecordCodec },
  exists: { code: 3, request: records.PathWatchRequest, response: records.StatResponse },
  getData: { code: 4, request: records.PathWatchRequest, response: records.GetDataResponse },
  setData: { code: 5, request: records.SetDataRequest, response: records.StatResponse },
  getAcl: { code: 6, request: records.PathRequest, response: records.GetAclResponse },
  setAcl: { code: 7, request: records.SetAclRequest, response: records.StatResponse },
  getChildren: { code: 8, request: records.PathWatchRequest, response: records.GetChildrenResponse },
  sync: { code: 9, request: records.PathRequest, response: records.PathResponse },
  ping: { code: 11, request: emptyJuteRecordCodec, response: emptyJuteRecordCodec },
  getChildren2: { code: 12, request: records.PathWatchRequest, response: records.GetChildren2Response },
  create2: { code: 15, request: records.CreateRequest, response: records.Create2Response },
  checkWatches: { code: 17, request: records.WatchesOfTypeRequest, response: emptyJuteRecordCodec },
  removeWatches: { code: 18, request: records.WatchesOfTypeRequest, response: emptyJuteRecordCodec },
  createContainer: { code: 19, request: records.CreateRequest, response: records.Create2Response },
  createTtl: { code: 21, request: records.CreateTtlRequest, response: records.Create2Response },
  auth: { code: 100, request: records.AuthPacket, response: emptyJuteRecordCodec },
  setWatches: { code: 101, request: records.SetWatchesRequest, response: emptyJuteRecordCodec },
  getEphemerals: { code: 103, request: records.GetEphemeralsRequest, response: records.GetEphemeralsResponse },
  getAllChildrenNumber: { code: 104, request: records.PathRequest, response: records.GetAllChildrenNumberResponse },
  setWatches2: { code: 105, request: records.SetWatches2Request, response: emptyJuteRecordCodec },
  addWatch: { code: 106, request: records.AddWatchRequest, response: records.ErrorResponse },
  whoAmI: { code: 107, request: emptyJuteRecordCodec, response: records.WhoAmIResponse },
  closeSession: { code: -11, request: emptyJuteRecordCodec, response: emptyJuteRecordCodec },
} as const satisfies Record<string, { code: number; request: AnyJuteCodec; response: AnyJuteCodec }>;

export type ZooKeeperOperationName = keyof typeof zooKeeperOperations;
export type ZooKeeperOperationRequest<Name extends ZooKeeperOperationName> = JuteCodecValue<
  (typeof zooKeeperOperations)[Name]["request"]
>;
export type ZooKeeperOperationResponse<Name extends ZooKeeperOperationName> = JuteCodecValue<
  (typeof zooKeeperOperations)[Name]["response"]
>;

/** The codes of multi and multiRead, which contain other operations; multi_request.ts encodes their bodies. */
export const multiOperationCode = 14;
export const multiReadOperationCode = 22;
/**
 * The code of an operation that may be sent only inside a multi: alone, it stops a 3.8.0 server permanently
 * (ZOOKEEPER-2623).
 */
export const checkOperationCode = 13;
export const reconfigOperationCode = 16;
export const saslOperationCode = 102;

/** The xids (request numbers) of replies that do not belong to a numbered request. */
export const specialXid = { event: -1, ping: -2, auth: -4, setWatches: -8 } as const;

export const watchEventType = {
  created: 1,
  deleted: 2,
  dataChanged: 3,
  childrenChanged: 4,
} as const;
export type WatchEventTypeName = keyof typeof watchEventType;

/** The state in all events that a server sends: KeeperState.SyncConnected. */
export const watchEventStateConnected = 3;

/** The permissions in an ACL: ZooDefs.Perms. */
export const aclPermission = { read: 1, write: 2, create: 4, delete: 8, admin: 16, all: 31 } as const;

/** The flags of create and create2: CreateMode. */
export const createFlag = {
  persistent: 0,
  ephemeral: 1,
  persistentSequential: 2,
  ephemeralSequential: 3,
  container: 4,
  persistentTtl: 5,
  persistentSequentialTtl: 6,
} as const;

/**
 * An ACL that gives all clients all permissions (ZooDefs.Ids.OPEN_ACL_UNSAFE). It must never be changed, because other
 * code compares this object by identity.
 */
export const openAcl: Acl[] = [{ perms: aclPermission.all, id: { scheme: "world", id: "anyone" } }];
