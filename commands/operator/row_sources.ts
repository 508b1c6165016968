/** Opens and reads the rows (locks, topics, processes …) of all products. */
import type { SettingTable } from "../../src/base/config/setting.ts";
import type { RowKind, RowReading } from "../../src/base/rows/row_kinds.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { Product, ProductView, RowRequest, RowSource, ViewCall } from "../product.ts";
import { openProcessRows, processSettings } from "./process_rows.ts";

export function loadViews(products: readonly Product[]): Promise<readonly ProductView[]> {
  return Promise.all(products.map((product) => product.view()));
}

/** Returns the options that name what to read, such as --store. */
export function sourceSettings(views: readonly ProductView[]): SettingTable & typeof processSettings {
  return Object.assign({ ...processSettings }, ...views.map(({ settings }) => settings));
}

/**
 * An open source, the kinds of its rows, and the view that opened the source. The view is null for rows of processes.
 */
export interface OpenSource {
  readonly kinds: readonly RowKind[];
  readonly source: RowSource;
  readonly view: ProductView | null;
}

export type SourcesCall = ViewCall<typeof processSettings>;

export class RowSources implements AsyncDisposable {
  readonly all: readonly OpenSource[];

  private constructor(all: readonly OpenSource[]) {
    this.all = all;
  }

  /** Opens the sources that have rows of the `wanted` kinds. Rejects with USAGE or CONFIG for invalid settings. */
  static async open(views: readonly ProductView[], call: SourcesCall, wanted: readonly RowKind[]): Promise<RowSources> {
    const opened: OpenSource[] = [];
    try {
      for (const view of views) {
        const { kinds } = view;
        if (kinds.some((kind) => wanted.includes(kind))) opened.push({ kinds, view, source: await view.open(call) });
      }
      const processes: OpenSource = {
        kinds: ["process"],
        view: null,
        source: openProcessRows(call, views),
      };
      return new RowSources(wanted.includes("process") ? [...opened, processes] : opened);
    } catch (thrown) {
      await new RowSources(opened)[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  /** Reads the rows of all sources. Rejects if the coordination service fails. */
  read(zk: ZooKeeper, request: RowRequest): Promise<RowReading> {
    return this.readFrom(this.all, zk, request);
  }

  /** Reads the rows of some sources. Rejects if the coordination service fails. */
  async readFrom(sources: readonly OpenSource[], zk: ZooKeeper, request: RowRequest): Promise<RowReading> {
    const readings = await Promise.all(sources.map(({ source }) => source.read(zk, request)));
    const { details, empty } = Object.assign({}, ...readings) as RowReading;
    return {
      rows: Object.assign({}, ...readings.map(({ rows }) => rows)),
      unused: readings.reduce((sum, { unused = 0 }) => sum + unused, 0),
      problems: readings.flatMap(({ problems = [] }) => problems),
      ...(details === undefined ? {} : { details }),
      ...(empty === undefined ? {} : { empty }),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { source } of this.all) await source[Symbol.asyncDispose]();
  }
}
