/** Shows the states without rows: while it connects, without servers, and while nothing is in use. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { countText, shownText, utcTimeText } from "../ui/shown_text.ts";
import { CommandLine } from "./copy_button.tsx";
import { Card, PageHead } from "./frame.tsx";
import { Mark } from "./marks.tsx";
import { aboutProgram, streamFailureReason, streamState } from "./page_state.ts";
import { readPageToken, reconnectRowStream, storePageToken } from "./read_stream.ts";
import { AgeText } from "./row_parts.tsx";
import { rowsOfView, viewNames, viewTitles } from "./view_names.ts";

/** True after the user chose to see the rows that were read before the connection was lost. */
export const showsOldRows = signal(false);

export function LoadingView(): JSX.Element {
  const servers = aboutProgram()?.servers ?? "";
  return (
    <>
      <PageHead
        title="Reading…"
        text={`${servers === "" ? "Connecting" : `Connecting to ${shownText(servers)}`}. Nothing is known yet.`}
      />
      <div class="grid" aria-hidden="true">
        <div class="card wide bones">{bones(7)}</div>
        <div class="card narrow bones">{bones(7)}</div>
        {[1, 2, 3, 4].map((tile) => <div key={tile} class="card tile bones">{bones(3)}</div>)}
      </div>
    </>
  );
}

const bones = (count: number) => Array.from({ length: count }, (_, index) => <i key={index} />);

/** `since`: the last time at which the servers responded; null if they never did. */
export function LostView({ since }: { readonly since: string | null }): JSX.Element {
  const state = aboutProgram();
  const isProgramLost = streamState.value === "lost";
  const servers = state?.servers ?? "";
  const why = isProgramLost ? [streamFailureReason.value] : state?.problems ?? [];
  const counted = viewNames.flatMap((name) => {
    const count = rowsOfView(name);
    return count === 0 ? [] : [`${viewTitles[name]} ${countText(count)}`];
  });
  return (
    <>
      <PageHead
        title={
          <span class="verdict">
            <Mark kind="bad" />
            {isProgramLost ? "baton ui does not respond" : "No coordination server responds"}
          </span>
        }
        text={
          <>
            {since !== null && (
              <>
                For <AgeText since={since} />.{" "}
              </>
            )}
            The current state is unknown, so no numbers are shown. The page connects again by itself.
          </>
        }
      />
      <div class="notice bad">
        <Mark kind="bad" />
        <div>
          <b>{[servers, ...why].filter((text) => text !== "").map(shownText).join(": ") || "No connection"}</b>
          <br />
          {isProgramLost
            ? "Locks do not depend on this page: they are held by the commands that took them."
            : "Holders keep their locks as long as their sessions last, then their commands are stopped."}
        </div>
      </div>
      <Card title="To find out why">
        <div class="commands">
          <p>Are the servers up and reachable?</p>
          <CommandLine text="baton doctor" />
          <p>Is the address right?</p>
          <CommandLine text="baton ui --servers HOST:PORT,…" />
        </div>
      </Card>
      {counted.length > 0 && (
        <p class="old">
          Last seen{since === null ? "" : ` at ${utcTimeText(Date.parse(since))}`}: {counted.join(", ")}.{" "}
          <button type="button" onClick={() => showsOldRows.value = true}>Show what was known then</button>
        </p>
      )}
    </>
  );
}

const firstSteps = [
  ["Run a command under a lock", "baton lock demo sleep 60"],
  ["The same once on many hosts", "baton lock --skip nightly /srv/backup.sh"],
  ["On a schedule, once across hosts", "baton lock --tick '0 3 * * *' nightly /srv/backup.sh"],
  ["Have one leader", "baton elect web ./serve.sh"],
  ["Retry a command until it succeeds", "baton retry-processor call -- ./deliver.sh"],
] as const;

export function NothingInUse(): JSX.Element {
  return (
    <>
      <PageHead title="Nothing is in use yet" text="The servers respond. This page fills itself when a command runs." />
      <Card title="First steps" more="each appears here within seconds">
        <div class="commands">
          {firstSteps.map((
            [what, command],
          ) => [<p key={what}>{what}</p>, <CommandLine key={command} text={command} />])}
        </div>
      </Card>
    </>
  );
}

/** Asks for the token if it is missing or wrong. */
export function TokenForm(): JSX.Element {
  const submit = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const token = new FormData(event.currentTarget).get("token");
    if (typeof token !== "string" || token.trim() === "") return;
    storePageToken(token.trim());
    reconnectRowStream();
  };
  return (
    <form class="token" onSubmit={submit}>
      <h1>Token</h1>
      <p>
        {readPageToken() === ""
          ? "Open the link that baton ui printed, or enter its token."
          : shownText(streamFailureReason.value)}
      </p>
      <label>
        Token <input name="token" type="password" autoComplete="off" required />
      </label>
      <button type="submit">Open</button>
    </form>
  );
}
