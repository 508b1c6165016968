#!/bin/sh
# client.sh PORT: sends Hello-0 … Hello-9 and prints what is answered.
set -eu
node -e '
  const socket = require("node:net").connect(Number(process.argv[1]), "127.0.0.1");
  for (let number = 0; number < 10; number++) socket.write(`Hello-${number}\n`);
  socket.end();
  socket.pipe(process.stdout);
  socket.on("error", (error) => { console.error(error.message); process.exit(1); });
' "$1"
