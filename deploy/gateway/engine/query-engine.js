#!/usr/bin/env node
'use strict'
// Stands in for Prisma's `query-engine` binary (5.17.0): same arguments, same HTTP interface.

// prisma-client-py 0.15 refuses an engine of another commit.
const COMMIT = '393aa359c9ad4a4bb28630fb5613f9c281cde053'
const PARENT_CHECK_MS = 2000
const STOP_MS = 2000

const argv = process.argv.slice(2)
if (argv.includes('--version') || argv.includes('-V')) {
  console.log('query-engine ' + COMMIT)
  process.exit(0)
}

const { Engine } = require('./wasm-engine')
const { makeServer } = require('./server')

const option = (...names) => {
  const at = argv.findIndex((word) => names.includes(word))
  return at < 0 ? undefined : argv[at + 1]
}

function stopWith(server, engine) {
  let stopping = false
  return () => {
    if (stopping) return
    stopping = true
    setTimeout(() => process.exit(0), STOP_MS).unref()
    server.close()
    server.closeAllConnections()
    engine.close().finally(() => process.exit(0))
  }
}

// LiteLLM's own end may be sudden; an engine without its proxy would keep connections for ever.
function dieWithParent(stop) {
  const parent = process.ppid
  setInterval(() => process.ppid !== parent && stop(), PARENT_CHECK_MS).unref()
}

async function main() {
  process.title = 'query-engine' // LiteLLM looks for leftover engines by this name
  const engine = await Engine.start(process.env)
  const server = makeServer(engine)
  const stop = stopWith(server, engine)
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  dieWithParent(stop)
  server.listen(Number(option('-p', '--port')), option('--host') ?? 'localhost')
}

main().catch((error) => {
  console.error(JSON.stringify({ is_panic: false, message: String((error && error.message) || error) }))
  process.exit(1)
})
