#!/usr/bin/env node
// Starts the binary of the package for this platform, which npm installs as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");

const name = `mcpact-${process.platform}-${process.arch}`;

let binary;
try {
  binary = require.resolve(`${name}/bin/mcpact`);
} catch {
  console.error(`error: mcpact has no package for this platform (\`${name}\`)`);
  console.error("  hint: if the platform is supported, install without `--omit=optional`");
  console.error("  hint: otherwise build it with `cargo install`; see the README");
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });

// A terminal sends Ctrl-C to both processes; a second one would end the gateway at once.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}

child.on("error", (error) => {
  console.error(`error: failed to start \`${binary}\`: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  // End in the same way as the binary.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
