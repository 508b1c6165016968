/** The ways of being a bad client that keeper_attacks.ts knows. */
export const attackNames = [
  "garbage",
  "half frames",
  "tiny frames",
  "empty frames",
  "small reads",
  "never reads",
  "slow hello",
  "connections",
  "long watches",
  "many watches",
  "watches again",
  "giant multi",
  "giant creates",
  "many reads at once",
  "many children",
  "counting",
  "identities",
  "words",
  "data without end",
  "a deep path",
] as const;
export type AttackName = typeof attackNames[number];
