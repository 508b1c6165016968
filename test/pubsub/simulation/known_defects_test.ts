import { describeMutants } from "../../world/mutants_suite.ts";
import { mutantsOf } from "../../world/mutant_table.ts";

describeMutants(mutantsOf.pubsub);
