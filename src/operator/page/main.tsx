/** Starts the page. */
import { render } from "preact";
import { OperatorPage, startPageView } from "./page.tsx";
import { tickPageClock } from "./page_state.ts";
import { followRecordedHour } from "./recorded_hour.ts";
import { followRowStream, takeTokenFromAddress } from "./read_stream.ts";

takeTokenFromAddress();
startPageView();
render(<OperatorPage />, document.body);
followRowStream();
followRecordedHour();
setInterval(() => document.hidden || tickPageClock(), 1000);
