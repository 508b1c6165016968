/** Builds the page of `baton ui`: the frame, and the view that the URL names. */
import { computed, signal, useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { actionParts } from "../ui/action_parts.ts";
import { countText, shownText, utcTimeText } from "../ui/shown_text.ts";
import type { UiTableName, UiTables } from "../ui/ui_rows.ts";
import { ActionDialog } from "./action_dialog.tsx";
import { attentionItems, countAttentionRows, longHeldLocks, unreachableTopics } from "./attention.ts";
import { ItemAge } from "./attention_list.tsx";
import { ChartPatterns, Spark } from "./charts.tsx";
import { CommandLine } from "./copy_button.tsx";
import { LetterGroups } from "./dead_letters.tsx";
import { DataTable, type TableColumn } from "./data_table.tsx";
import { Card, connectionText, Facts, isLive, openView, PageHead, Rail, TopBar } from "./frame.tsx";
import { Overview } from "./overview.tsx";
import { KeyHelp, watchPageKeys } from "./page_keys.tsx";
import { aboutProgram, pageTables, programNowMs, rowHref, streamState } from "./page_state.ts";
import { recordedPoints } from "./recorded_hour.ts";
import { type OpenRowKey, RowDialog } from "./row_details.tsx";
import { SchedulesView } from "./schedules.tsx";
import { LoadingView, LostView, NothingInUse, showsOldRows, TokenForm } from "./states.tsx";
import { rowsOfView, type ViewName, viewNames, viewTitles } from "./view_names.ts";
import * as views from "./views.tsx";

const openRow = signal<OpenRowKey | null>(null);

/** Names the table of a view in the URL: `#retry/…` opens a store. */
const rowTables: Partial<Record<string, OpenRowKey["table"]>> = { retry: "stores" };

export function startPageView(): void {
  const show = () => {
    const [name = "", ...key] = location.hash.slice(1).split("/");
    openView.value = viewNames.find((one) => one === name) ?? (name === "processes" ? "servers" : "overview");
    const table = rowTables[name] ?? (Object.keys(pageTables) as OpenRowKey["table"][]).find((one) => one === name);
    openRow.value = key.length === 0 || table === undefined ? null : { table, key: decodedKey(key.join("/")) };
    document.title = `baton: ${viewTitles[openView.value]}`;
  };
  addEventListener("hashchange", show);
  show();
  watchPageKeys();
}

function decodedKey(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a user has changed the URL
  }
}

function closeRow(): void {
  if (openRow.peek() !== null) location.hash = openView.peek();
}

/** How long the servers may be silent before the page says that the state is unknown, in milliseconds. */
const silentMsMax = 5000;
/** When the servers responded last; null before the first response. */
const lastLiveMs = signal<number | null>(null);
const isLost = computed(() => {
  if (isLive() || connectionText() === "connecting" || connectionText() === "reading") return false;
  return lastLiveMs.value === null || programNowMs.value - lastLiveMs.value > silentMsMax;
});

export function OperatorPage(): JSX.Element {
  useSignalEffect(() => {
    if (!isLive()) return;
    lastLiveMs.value = programNowMs.value;
    showsOldRows.value = false;
  });
  return (
    <>
      <a class="skip" href="#main" onClick={skipToMain}>Skip to the rows</a>
      <ChartPatterns />
      <div class="app">
        <Rail />
        <TopBar />
        <main id="main" tabIndex={-1}>
          <Content />
        </main>
      </div>
      <RowDialog open={openRow} onClose={closeRow} />
      <ActionDialog />
      <KeyHelp />
      <Announcements />
    </>
  );
}

function Content(): JSX.Element {
  if (streamState.value === "refused") return <TokenForm />;
  const since = lastLiveMs.value;
  const sinceText = since === null ? null : new Date(since).toISOString();
  if (isLost.value && !showsOldRows.value) return <LostView since={sinceText} />;
  if (lastLiveMs.value === null && openView.value === "overview") return <LoadingView />;
  return (
    <div class={isLost.value ? "old-rows" : ""}>
      {isLost.value && <p class="notice warn">These rows are old: they were read at {utcTimeText(since ?? 0)}.</p>}
      <View />
    </div>
  );
}

/** Moves the focus to the rows without changing the URL, because the URL names the view. */
function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

const isNothingInUse = computed(() => viewNames.every((view) => rowsOfView(view) === 0));

function View(): JSX.Element {
  const name = openView.value;
  if (name === "overview") {
    return isNothingInUse.value && attentionItems.value.length === 0 ? <NothingInUse /> : <Overview />;
  }
  if (name === "ticks") return <SchedulesView />;
  if (name === "servers") return <Servers />;
  const List = lists[name];
  return (
    <>
      <List key={name} />
      {name === "retry" && <DeadLetterCards />}
    </>
  );
}

/** The dead letters of each store, by reason. A group leads to the letters. */
function DeadLetterCards(): JSX.Element {
  const { keys, rows } = pageTables.stores;
  return (
    <>
      {keys.value.map((key) => {
        const store = rows.get(key)?.value;
        if (store === undefined || store.states.dead.count === 0) return null;
        return (
          <section key={key} class="card">
            <LetterGroups store={store} onShow={() => void (location.hash = rowHref("stores", key))} />
          </section>
        );
      })}
    </>
  );
}

/** The views that are one table. */
const lists: Readonly<Record<Exclude<ViewName, "overview" | "ticks" | "servers">, () => JSX.Element>> = {
  locks: list("locks", views.lockTableColumns, "No lock is held, and none is waited for."),
  elections: list("elections", views.electionTableColumns, "No election has candidates."),
  barriers: list("barriers", views.barrierTableColumns, "No barrier is in use, and no gate is closed."),
  pools: list("pools", views.poolTableColumns, "No pool runs, and no results are stored."),
  topics: list("topics", views.topicTableColumns, "There are no topics."),
  retry: list("stores", views.storeTableColumns, "This machine has no message stores of this user."),
};

function list<Name extends UiTableName>(
  name: Name,
  columns: readonly TableColumn<UiTables[Name]>[],
  empty: string,
): () => JSX.Element {
  return () => {
    const title = viewTitles[openView.value];
    const shown = isLive() ? empty : "Nothing was read yet.";
    return (
      <>
        <PageHead title={title} text={summaryText()} />
        <section class="card">
          <DataTable name={name} caption={title} columns={columns} empty={shown} />
        </section>
      </>
    );
  };
}

/** Says in one line what the view holds. */
function summaryText(): string {
  const items = countAttentionRows(openView.value);
  const count = rowsOfView(openView.value);
  if (count === 0) return "";
  const need = items === 0 ? "None needs" : `${countText(items)} ${items === 1 ? "needs" : "need"}`;
  const long = openView.value === "locks" ? longHeldLocks.value.size : 0;
  const hint = long === 0
    ? ""
    : ` ${countText(long)} ${long === 1 ? "is" : "are"} held longer than usual while others wait.`;
  return `${countText(count)} in all. ${need} attention.${hint}`;
}

function Servers(): JSX.Element {
  const state = aboutProgram();
  return (
    <>
      <PageHead title="Servers" text={<ServersVerdict />}>
        {offlineServers().map(({ key, action }) => (
          <CommandLine key={key} text={actionParts(action).command ?? action} />
        ))}
      </PageHead>
      <Facts
        facts={[
          ["Coordination servers", <code key="servers">{shownText(state?.servers ?? "") || "-"}</code>],
          ["Root", <code key="root">{shownText(state?.root ?? "") || "-"}</code>],
          ["Responds in", <ResponseTime key="time" />],
          ["baton", shownText(state?.version ?? "")],
        ]}
      />
      <TableCard
        title="Publish/subscribe"
        name="servers"
        columns={views.serverTableColumns}
        empty="There are no servers of publish/subscribe."
      />
      <TableCard
        title="Processes"
        name="processes"
        columns={views.processTableColumns}
        empty="No process that serves metrics is known; name some with --metrics."
      />
    </>
  );
}

const offlineShown = 3;
const topicsNamed = 5;
const offlineServers = () => attentionItems.value.filter(({ table }) => table === "servers").slice(0, offlineShown);

function topicsText(topics: readonly string[]): string {
  const more = topics.length - topicsNamed;
  return `topics ${shownText(topics.slice(0, topicsNamed).join(", "))}${more > 0 ? `, +${countText(more)}` : ""}`;
}

/** Says whether the servers are the reason if something does not work. */
function ServersVerdict(): JSX.Element {
  const ms = aboutProgram()?.responseMs ?? null;
  const offline = offlineServers();
  return (
    <>
      {ms === null ? "Coordination does not answer." : `Coordination answers in ${ms}\u00a0ms.`}
      {offline.length === 0 && " No server is offline."}
      {offline.map((item) => (
        <span key={item.key}>
          {" "}
          <b>{shownText(item.key)}</b> is offline <ItemAge item={item} />: {topicsText(unreachableTopics(item.key))}.
        </span>
      ))}
    </>
  );
}

/** The time that the coordination server takes to answer `baton ui`, now and over the past hour. */
function ResponseTime(): JSX.Element {
  const ms = aboutProgram()?.responseMs ?? null;
  return (
    <span class="charted">
      <span>{ms === null ? "-" : `${ms}\u00a0ms`}</span>
      <Spark what="Response time in milliseconds" points={recordedPoints("responseMs")} kind="busy" least={10} />
    </span>
  );
}

function TableCard<Name extends UiTableName>({ title, ...table }: {
  readonly title: string;
  readonly name: Name;
  readonly columns: readonly TableColumn<UiTables[Name]>[];
  readonly empty: string;
}): JSX.Element {
  return (
    <Card title={title}>
      <DataTable caption={title} {...table} />
    </Card>
  );
}

/**
 * How often a screen reader announces the connection and what needs attention, in milliseconds. Rows are never
 * announced.
 */
const announceEveryMs = 10_000;

function Announcements(): JSX.Element {
  const text = useSignal("");
  useEffect(() => {
    const announce = () => {
      const count = attentionItems.peek().length;
      const attention = `, ${countText(count)} ${count === 1 ? "thing needs" : "things need"} attention`;
      text.value = `${connectionText()}${count === 0 ? "" : attention}`;
    };
    announce();
    const timer = setInterval(announce, announceEveryMs);
    return () => clearInterval(timer);
  }, []);
  return <p class="unseen" role="status">{text}</p>;
}
